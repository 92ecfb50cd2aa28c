"""What is said of a variable that a class reads in its rank and that is not set."""

from __future__ import annotations

import os

import pytest

from hpc_train.training.rank_failure import failure_of

NOT_HERE = "a variable of Slurm's or of MPI's, which is not set here: "
CONFIG_SETS_IT = "a variable that is not set: "


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("LOCAL_RANK", "write self.trainer.local_rank, in setup() or later (in __init__ there"),
        ("RANK", "write self.trainer.global_rank"),
        ("WORLD_SIZE", "write self.trainer.world_size"),
        ("NODE_RANK", "write self.trainer.node_rank"),
        ("LOCAL_WORLD_SIZE", "write self.trainer.num_devices"),
        ("SLURM_PROCID", "which Slurm or MPI sets, and a training by Trainer does not need: write"),
        ("SLURM_LOCALID", "write self.trainer.local_rank, in setup() or later"),
        ("SLURM_GPUS", NOT_HERE + 'write os.environ.get("SLURM_GPUS", VALUE), with what is to'),
        ("SLURM_NODELIST", NOT_HERE + 'write os.environ["MASTER_ADDR"] for the address'),
        ("HPC_TRAIN_X", "a variable of Slurm's or the launcher's, which is not set here"),
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


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("SLURM_PROCID", "RANK"),
        ("SLURM_LOCALID", "LOCAL_RANK"),
        ("SLURM_NTASKS", "WORLD_SIZE"),
        ("SLURM_NPROCS", "WORLD_SIZE"),
        ("SLURM_NODEID", "NODE_RANK"),
        ("OMPI_COMM_WORLD_RANK", "RANK"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"),
        ("OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"),
    ],
)
def test_a_script_is_told_what_is_set_instead(
    monkeypatch: pytest.MonkeyPatch, name: str, instead: str
) -> None:
    monkeypatch.setenv(instead, "0")  # as for each rank of a script
    monkeypatch.delenv(name, raising=False)
    write = f'{NOT_HERE}write os.environ["{instead}"], which hpc-train sets everywhere'
    with pytest.raises(KeyError) as caught:
        os.environ[name]
    assert failure_of(caught.value).error == f"KeyError: '{name}', {write}"
    assert os.environ[instead]
    with pytest.raises(TypeError) as none:
        int(os.environ.get(name))  # type: ignore[arg-type]
    # The name stands in no constant, so that the line alone does not tell it.
    assert "not set here" not in failure_of(none.value).error


TASKS = os.environ.get("SLURM_NTASKS")


def test_what_is_none_for_want_of_a_variable_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    write = f'{NOT_HERE}write os.environ["RANK"], which hpc-train sets everywhere'
    with pytest.raises(TypeError) as caught:
        int(os.environ.get("SLURM_PROCID"))  # type: ignore[arg-type]
    assert failure_of(caught.value).error.endswith(f"'NoneType', as of SLURM_PROCID, {write}")
    number = os.getenv("OMPI_COMM_WORLD_RANK")
    with pytest.raises(TypeError) as caught:
        int(number)  # type: ignore[arg-type]
    assert failure_of(caught.value).error.endswith(f"as of OMPI_COMM_WORLD_RANK, {write}")
    with pytest.raises(TypeError) as caught:
        int(TASKS)  # type: ignore[arg-type]
    assert "SLURM_NTASKS, a variable" in failure_of(caught.value).error
    with pytest.raises(TypeError) as caught:
        os.path.join(os.environ.get("DATA_ROOT"), "x")  # type: ignore[arg-type]  # noqa: PTH118
    assert "env.variables.DATA_ROOT=VALUE" in failure_of(caught.value).error


def test_another_none_is_not_told_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "0")
    nothing = None
    with pytest.raises(TypeError) as caught:
        int(os.environ.get("SLURM_PROCID")) + nothing  # type: ignore[operator, arg-type]
    assert "SLURM" not in failure_of(caught.value).error


def test_a_key_of_another_mapping_is_no_variable() -> None:
    with pytest.raises(KeyError) as caught:
        {}["LOCAL_RANK"]
    assert failure_of(caught.value).error == "KeyError: 'LOCAL_RANK'"


@pytest.mark.parametrize("name", ["global_rank", "local_rank", "world_size", "num_devices"])
def test_the_trainer_has_what_is_named(name: str) -> None:
    from pytorch_lightning import Trainer

    assert hasattr(Trainer, name)
    assert hasattr(Trainer, "node_rank")
