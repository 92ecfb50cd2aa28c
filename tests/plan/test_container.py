"""Words around the ranks' command lines, and what is refused before them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import hpc_train
from hpc_train.config.origins import NOWHERE
from hpc_train.config.schema import ContainerConfig
from hpc_train.errors import ConfigError
from hpc_train.plan.container import check_container, check_runtime, srun_options
from hpc_train.plan.payload import payload_of
from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import AttemptDir
from hpc_train.supervisor.launch import srun_argv
from tests.training.launched import make_plan

OWN = f"{Path(hpc_train.__file__).parent}:/opt/hpc-train/hpc_train:ro"


def contained(folder: Path, gpus: int = 2, **keys: object) -> Plan:
    plan = make_plan(folder, nodes=2, ranks_per_node=2)
    shape = dataclasses.replace(plan.shape, gpus_per_node=gpus)
    container = ContainerConfig(**{"image": "images/a.sif", **keys})  # type: ignore[arg-type]
    return dataclasses.replace(
        plan, shape=shape, container=container, workdir="/work", runs_dir="/runs"
    )


def test_apptainer_stands_around_a_rank_and_around_a_nodes_launcher(tmp_path: Path) -> None:
    plan = contained(
        tmp_path, mounts=["data", "/x:/y:ro"], python="python3", options=["--writable"]
    )
    words = payload_of(plan).rank_argv()
    until_image = words[: words.index("/work/images/a.sif")]
    assert until_image == [
        *("apptainer", "exec", "--nv", "--bind", "/work:/work", "--bind", "/runs:/runs"),
        *("--bind", "/work/data:/work/data", "--bind", "/x:/y:ro", "--bind", OWN),
        *("--pwd", "/work", "--writable"),
    ]
    assert words[-3:] == ["python3", "-m", "hpc_train.training"]
    launcher = payload_of(plan).node_argv(1, 4711)
    assert launcher[: len(until_image)] == until_image
    assert "--node-rank=1" in launcher


def test_without_gpus_there_is_no_nv_and_an_image_may_have_its_own_hpc_train(
    tmp_path: Path,
) -> None:
    words = payload_of(contained(tmp_path, gpus=0, mount_hpc_train=False)).rank_argv()
    assert "--nv" not in words
    assert OWN not in words
    assert words[-4:] == ["/work/images/a.sif", "python", "-m", "hpc_train.training"]


def test_pyxis_is_told_by_srun_and_its_words_come_before_the_command(tmp_path: Path) -> None:
    plan = contained(tmp_path, runtime="pyxis", image="registry.example#nvidia/pytorch:25.01-py3")
    words = srun_argv(plan, AttemptDir(tmp_path), ["n1", "n2"], {"n1": {"NCCL_IB_HCA": "mlx5_0"}})
    wanted = [
        "--container-image=registry.example#nvidia/pytorch:25.01-py3",
        f"--container-mounts=/work:/work,/runs:/runs,{OWN}",
        "--container-workdir=/work",
    ]
    assert words[0] == "srun"
    start = words.index(wanted[0])
    assert words[start : start + 3] == wanted
    assert words[start + 3] == "sh", "the node's own variables are set inside"
    assert "apptainer" not in words
    file = contained(tmp_path, runtime="pyxis", image="./a.sqsh")
    assert srun_options(file)[0] == "--container-image=/work/a.sqsh"
    with pytest.raises(ConfigError, match="not on Slurm"):
        check_runtime(plan, is_slurm=False)


def test_a_plan_keeps_its_container_and_one_without_has_no_such_key(tmp_path: Path) -> None:
    plan = contained(tmp_path)
    assert Plan.from_json(plan.to_json()) == plan
    assert "container" not in make_plan(tmp_path, nodes=1, ranks_per_node=1).to_json()


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"mounts": ["/a:/b:ro:x"]}, "'/a:/b:ro:x'"),
        ({"mounts": ["/a,/b"]}, "'/a,/b'"),
        ({"options": ["--cleanenv"]}, "--cleanenv keeps the variables of Slurm"),
        ({"image": "docker://pytorch/pytorch"}, "every rank of every attempt would fetch"),
    ],
)
def test_what_no_runtime_takes_is_refused(keys: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_container(ContainerConfig(**keys), NOWHERE)  # type: ignore[arg-type]
    assert told in caught.value.message
    assert caught.value.hint
