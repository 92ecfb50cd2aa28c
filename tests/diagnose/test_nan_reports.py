"""A training that has diverged, and one that met a NaN and went on."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.read_logs import ReadLogs

FORMS = {
    "Megatron": " iteration {n:8d}/ 500 | learning rate: 1E-4 | loss scale: 1.0 | grad norm: {x} |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |",
    "transformers": "{{'loss': {x}, 'grad_norm': {x}, 'learning_rate': 5e-05, 'epoch': 0.{n}}}",
    "a loop": "iter {n}: loss {x}, time 300.1ms",
    "a loop with names": "Epoch [1][{n}/900] lr: 1.0e-03, loss: {x}, time: 0.3",
}
# transformers sets a loss that is NaN to 0 before it logs it.
FILTERED = "{{'loss': 0.0, 'grad_norm': {x}, 'learning_rate': 5e-05, 'epoch': 0.{n}}}"
NORM_ALONE = "{{'loss': 2.1, 'grad_norm': {x}, 'learning_rate': 5e-05, 'epoch': 0.{n}}}"


def said(tmp_path, form: str, values: str, between: str = "") -> list[str]:
    """The causes of a log whose reports are NaN where `values` has an x."""
    log = tmp_path / "a.log"
    reports = ("nan" if value == "x" else "1.25" for value in values)
    lines = [form.format(n=n, x=x) + between for n, x in enumerate(reports, 11)]
    log.write_text("\n".join(lines) + "\n")
    logs = ReadLogs()
    logs.read(str(log))
    return [item.cause for item in logs.findings()]


@pytest.mark.parametrize("form", [*FORMS.values(), FILTERED])
@pytest.mark.parametrize("between", ["", "\n  1%|1   | 10/1000\n"])
def test_reports_that_are_all_nan_at_the_end_are_a_training_gone_wrong(form, between, tmp_path):
    (cause,) = said(tmp_path, form, "..xx..xxxxx", between)
    assert cause.startswith("the training has diverged: the ")
    assert (
        cause.endswith("is NaN, in 5 reports in a row or more") or "from iteration 17 on" in cause
    )


@pytest.mark.parametrize("form", [*FORMS.values(), FILTERED])
@pytest.mark.parametrize("values", ["....x....", "x.x.x.x.x", "..xxxxx..", "......xx"])
def test_a_nan_among_finite_values_is_no_failure(form, values, tmp_path):
    assert said(tmp_path, form, values) == []


def test_a_norm_alone_may_be_a_loss_scaler_that_looks_for_its_scale(tmp_path):
    assert said(tmp_path, NORM_ALONE, "x" * 12) == []
    assert said(tmp_path, NORM_ALONE, "x" * 30) != []


def test_a_step_that_megatron_skipped_is_not_counted(tmp_path):
    skipped = FORMS["Megatron"].replace("iterations:   0 | number", "iterations:   1 | number")
    assert said(tmp_path, skipped, "x" * 9) == []


@pytest.mark.parametrize(
    "line", ["val_loss: nan", "eval loss: nan", "best loss: nan", "aux_loss: nan", "loss: nano"]
)
def test_what_is_no_loss_of_the_training_is_not_counted(line, tmp_path):
    assert said(tmp_path, f"step {{n}} {line} {{x}}", "." * 9) == []
