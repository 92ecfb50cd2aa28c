"""A mode that takes the worst of a metric for the best, and two that do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load
from tests.config.test_model_notes import CONFIG, NETS, SAVING, STOPPING, notes_of


@pytest.mark.parametrize(
    "monitor",
    ["val_loss", "val_mse", "val/mae", "loss", "val_error", "perplexity", "val_rmse_epoch", "wer"],
)
def test_the_highest_of_what_is_to_be_low_is_noted(tmp_path: Path, monitor: str) -> None:
    """It stopped as soon as the patience was over, whatever the model had learned."""
    key = "9: trainer.callbacks.0.init_args.mode is max and monitor is"
    (note,) = notes_of(tmp_path, callback=STOPPING, words=f"monitor: {monitor}, mode: max")
    assert note == (
        f"{key} {monitor}: the highest counts as best, and EarlyStopping stops while it falls;"
        " write mode: min"
    )
    (note,) = notes_of(tmp_path, callback=SAVING, words=f"monitor: {monitor}, mode: max")
    assert note == (
        f"{key} {monitor}: the highest counts as best, and ModelCheckpoint keeps the worst;"
        " write mode: min"
    )


def test_a_written_min_of_what_is_to_be_high_is_noted(tmp_path: Path) -> None:
    (note,) = notes_of(tmp_path, callback=SAVING, words="monitor: val_acc, mode: min")
    assert note.endswith(
        "mode is min and monitor is val_acc: the lowest counts as best, and ModelCheckpoint keeps"
        " the worst; write mode: max"
    )


@pytest.mark.parametrize(
    "monitor",
    [
        *("neg_loss", "d_loss", "adv_loss", "val_minus_mse", "policy_loss", "win_loss", "elbo"),
        *("val_acc", "score", "ce", "losses", "mse_skill", "lossless", "whatever", "max_error"),
    ],
)
def test_of_a_name_that_does_not_tell_nothing_is_noted(tmp_path: Path, monitor: str) -> None:
    assert notes_of(tmp_path, words=f"monitor: {monitor}, mode: max") == []


def both(folder: Path, *callbacks: str) -> list[str]:
    (folder / "nets.py").write_text(NETS % "o")
    file = folder / "cfg.yaml"
    head, _, _ = (CONFIG % ("", STOPPING, "")).partition("  - ")
    head = head.partition("  callbacks")[0].partition("trainer:")[0]
    lines = "".join(f"  - {it}\n" for it in callbacks)
    file.write_text(f"{head}trainer:\n  max_epochs: 1\n  callbacks:\n{lines}")
    return [it.replace(f"{folder}/", "") for it in notes_on_code(load(file), workdir=folder)]


def of(class_path: str, words: str) -> str:
    return f"{{class_path: {class_path}, init_args: {{{words}}}}}"


def test_two_modes_of_one_metric_are_noted_where_one_of_them_stops(tmp_path: Path) -> None:
    stops, keeps = of(STOPPING, "monitor: val_q"), of(SAVING, "monitor: val_q, mode: max")
    (note,) = both(tmp_path, stops, keeps)
    assert "trainer.callbacks.1.init_args.mode: ModelCheckpoint has mode max for val_q, and" in note
    assert "trainer.callbacks.0.init_args.monitor: EarlyStopping has mode min, its default" in note
    assert note.count("cfg.yaml:") == 2
    assert note.endswith("one of them takes the worst for the best; write the same mode at both")


def test_what_its_name_tells_is_told_once(tmp_path: Path) -> None:
    stops, keeps = of(STOPPING, "monitor: val_acc"), of(SAVING, "monitor: val_acc, mode: max")
    for callbacks in ((stops, keeps), (keeps, stops)):
        (note,) = both(tmp_path, *callbacks)
        assert "EarlyStopping has" not in note
        assert note.endswith("the lowest counts as best; write mode: max beside it")


def test_the_best_and_the_worst_may_both_be_kept(tmp_path: Path) -> None:
    keeps = [of(SAVING, f"monitor: val_q, mode: {it}, filename: {it}") for it in ("max", "min")]
    assert both(tmp_path, *keeps) == []
    apart = of(STOPPING, "monitor: val_q"), of(SAVING, "monitor: val_r, mode: max")
    assert both(tmp_path, *apart) == []
