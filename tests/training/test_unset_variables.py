"""What is said of a variable that a class reads in its rank and that is not set."""

from __future__ import annotations

import os

import pytest

from hpc_train.training.rank_failure import failure_of

CONFIG_SETS_IT = "a variable that is not set: "


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("LOCAL_RANK", "write self.trainer.local_rank, in setup() or later (in __init__ there"),
        ("RANK", "write self.trainer.global_rank"),
        ("WORLD_SIZE", "write self.trainer.world_size"),
        ("NODE_RANK", "write self.trainer.node_rank"),
        ("LOCAL_WORLD_SIZE", "write self.trainer.num_devices"),
        ("SLURM_GPUS", "a variable of Slurm's or the launcher's, which is not set here"),
        ("DATA_ROOT", CONFIG_SETS_IT + "write env.variables.DATA_ROOT=VALUE behind the command"),
        ("MY_TOKEN", CONFIG_SETS_IT + "list it in env.passthrough: [MY_TOKEN], and set it in"),
    ],
)
def test_a_config_is_named_only_for_what_it_may_set(
    monkeypatch: pytest.MonkeyPatch, name: str, fix: str
) -> None:
    monkeypatch.delenv(name, raising=False)
    with pytest.raises(KeyError) as caught:
        os.environ[name]
    said = failure_of(caught.value).error
    assert fix in said, said
    assert (CONFIG_SETS_IT in said) == fix.startswith(CONFIG_SETS_IT)


def test_a_key_of_another_mapping_is_no_variable() -> None:
    with pytest.raises(KeyError) as caught:
        {}["LOCAL_RANK"]
    assert failure_of(caught.value).error == "KeyError: 'LOCAL_RANK'"


@pytest.mark.parametrize("name", ["global_rank", "local_rank", "world_size", "num_devices"])
def test_the_trainer_has_what_is_named(name: str) -> None:
    from pytorch_lightning import Trainer

    assert hasattr(Trainer, name)
    assert hasattr(Trainer, "node_rank")
