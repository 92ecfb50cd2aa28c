"""What of a fix is typed behind a config."""

from __future__ import annotations

import pytest

from hpc_train.config.meant_words.literal_fixes import fix_in_brackets, literal_fix


@pytest.mark.parametrize(
    ("fix", "typed"),
    [
        ("trainer.max_steps=16 or less; with trainer.max_epochs=null", "trainer.max_steps=16"),
        ("write trainer.precision: 16-mixed (no Apex)", "trainer.precision=16-mixed"),
        ("2 GPUs a node, or set slurm.gpus_per_node: 3; then", "slurm.gpus_per_node=3"),
        ("is it up? env.variables.WANDB_MODE=offline writes", "env.variables.WANDB_MODE=offline"),
        ("snapshot=none", "snapshot=none"),
        ("write global_batch_size: 8.", "global_batch_size=8"),
        ("write model.class_path=nets.Net", "model.class_path=nets.Net"),
        ("", ""),
        ("a number of batches, as in trainer.val_check_interval=500, or nothing", ""),
        ("a later line: env.variables.CUDA_LAUNCH_BLOCKING=1 names it", ""),
        ("env.variables.HOME=VALUE behind the command", ""),
        ("runs_dir=FOLDER on a file system that all nodes see", ""),
        ("write trainer.callbacks: [{class_path: x}]", ""),
        ("write trainer.max_steps=...", ""),
        ("write name: value pairs", ""),
        ("write trainer.limit: the share", ""),
        ("width=3", ""),
        ("write my_trainer.max_epochs=3", ""),
    ],
)
def test_the_first_value_of_a_fix_is_typed_where_it_is_one(fix: str, typed: str) -> None:
    assert literal_fix(fix) == typed


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        ("rank 0 failed: x (write seed=2)", "write seed=2"),
        ("rank 0: f(x) (a) is b (seed=2 (or more (or so)))", "seed=2 (or more (or so))"),
        ("rank 0 failed: x (a) and b", ""),
        ("x", ""),
    ],
)
def test_a_fix_stands_in_the_last_brackets_of_a_reason(reason: str, fix: str) -> None:
    assert fix_in_brackets(reason) == fix
