"""An exception's message that rich, or a terminal, wrapped over lines is read as a whole."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.diagnosis import told
from hpc_train.diagnose.read_logs import diagnose_logs

BATCH = (
    "AssertionError: Check batch related parameters. train_batch_size is not",
    "equal to micro_batch_per_gpu * gradient_acc_step * world_size 96 != 6 *",
    "8 * 1",
)
FRAME = 'Traceback (most recent call last):\n  File "/w/train.py", line 7, in main\n    run()\n'


def diagnosed(tmp_path, text: str):
    (tmp_path / "a.log").write_text(text)
    return diagnose_logs([str(tmp_path / "a.log")])


@pytest.mark.parametrize("before", ["", "step 1 loss 0.3\n" * 200_000])
@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_deepspeeds_batch_rule_is_told_with_its_numbers(tmp_path, prefix, before):
    text = "".join(f"{prefix}{line}\n" for line in (*FRAME.splitlines(), *BATCH))
    (found,) = diagnosed(tmp_path, f"{before}{text}step 2\n").findings
    assert found.name == "deepspeed_batch"
    assert "train_batch_size 96 is not 6 * 8 * 1 (" in found.cause
    assert "deepspeed or torchrun" in found.fix
    assert found.evidence[0].text.endswith("96 != 6 * 8 * 1")


def test_a_message_that_no_rule_knows_is_quoted_whole(tmp_path):
    lines = ["OddError: the first part of what the program says of this odd", "case, which goes on"]
    (found,) = diagnosed(tmp_path, FRAME + "\n".join(lines) + "\n").findings
    assert found.cause.endswith(" ".join(lines))


@pytest.mark.parametrize(
    "after",
    [
        "step 3 loss 0.2",
        "wandb: Synced 5 files",
        "12:03:04 worker has ended",
        "srun: error: n1: task 0: Exited with exit code 1",
        "E0101 00:00:00.000000 1 api.py:8] failed (exitcode: 1) local_rank: 0 (pid: 9)",
        "Epoch 3 begins",
        " 33%|###   | 1/3",
    ],
)
def test_a_line_of_another_kind_is_not_taken_with_it(tmp_path, after):
    error = "OddError: the first part of what the program says of this odd case, a long one"
    found = diagnosed(tmp_path, f"{FRAME}{error}\n{after}\n").findings
    assert f"a process raised {error}" in [item.cause for item in found]


def test_a_fix_that_is_the_line_itself_does_not_stand_below_a_part_of_it(tmp_path):
    what = "the strategies " + "of saving and evaluation differ, " * 12 + "see the page"
    error = f"ValueError: --load_best_model_at_end requires {what}"
    whole = diagnosed(tmp_path, f"{FRAME}{error[:90]}\n")
    assert "  fix: what the line says" in [*told(whole)]
    cut = diagnosed(tmp_path, f"{FRAME}{error}\n")
    assert "fix: what the line" not in "\n".join(told(cut))
