"""Flags of sbatch where `slurm.extra` has pairs: the keys that are told to be written are taken."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from hpc_train.plan.sbatch_options import extra_options

CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net}
data: {class_path: nets.Data}
slurm:
  nodes: 2
"""
NORMAL = '["--exclusive", "--qos=normal"]'
FLAGS = [
    (
        NORMAL,
        "write slurm.exclusive: true and slurm.qos: normal in place of extra",
        "write slurm.exclusive=true slurm.qos=normal",
    ),
    (
        '"--nice=100 --hint=nomultithread"',
        "write extra: {nice: 100, hint: nomultithread}",
        "write slurm.extra.nice=100 slurm.extra.hint=nomultithread",
    ),
    ('"-p short"', "write slurm.partition: short in place of extra", "write slurm.partition=short"),
    (
        "[-pshort, --contiguous]",
        "write slurm.partition: short and slurm.extra: {contiguous: true}",
        "write slurm.partition=short slurm.extra.contiguous=true",
    ),
    (
        "[--time, '1:00:00', --mem, 4000]",
        "write slurm.time: '1:00:00' and slurm.mem: 4000M in place of extra",
        "write slurm.time=1:00:00 slurm.mem=4000M",
    ),
    (
        '"--no-requeue -J a"',
        "write requeue.enabled: false and name: a in place of extra",
        "write requeue.enabled=false name=a",
    ),
    (
        '"--gres=gpu:a100:2,nvme:1 -c 4"',
        (
            "write slurm.gpus_per_node: 2, slurm.gpu_type: a100, slurm.cpus_per_gpu: 4 and"
            " slurm.extra: {gres: 'nvme:1'}"
        ),
        (
            "write slurm.gpus_per_node=2 slurm.gpu_type=a100 slurm.cpus_per_gpu=4"
            " slurm.extra.gres=nvme:1"
        ),
    ),
    (
        "\"--wckey='a b'\"",
        "write extra: {wckey: a b}",
        "write 'slurm.extra.wckey=a b'",
    ),
    ("--nicee=3", "write extra: {nice: 3}", "write slurm.extra.nice=3"),
]


def hint(folder: Path, below: str, *typed: str) -> str:
    (folder / "c.yaml").write_text(f"{CONFIG}{below}")
    with pytest.raises(ConfigError, match=r"slurm\.extra is no mapping") as caught:
        load(folder / "c.yaml", typed)
    return caught.value.hint


@pytest.mark.parametrize(("value", "in_file", "typed"), FLAGS)
def test_an_option_with_a_key_goes_there_and_the_others_into_extra(
    tmp_path: Path, value: str, in_file: str, typed: str
) -> None:
    """All went into extra, where those with a key are refused, and one text was one option."""
    assert hint(tmp_path, f"  extra: {value}\n") == in_file
    assert hint(tmp_path, "", f"slurm.extra={value}") == typed


@pytest.mark.parametrize("typed", [it[2].removeprefix("write ") for it in FLAGS])
def test_what_is_told_is_taken(tmp_path: Path, typed: str) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    loaded = load(tmp_path / "c.yaml", shlex.split(typed))
    extra_options(loaded.config.slurm.extra, loaded.origins)


def test_a_list_below_dashes_is_the_same(tmp_path: Path) -> None:
    below = "  extra:\n  - --exclusive\n  - --nice=100\n"
    wanted = "write slurm.exclusive: true and slurm.extra: {nice: 100}"
    assert hint(tmp_path, below) == wanted


def test_an_option_that_has_no_key_is_told_with_its_reason(tmp_path: Path) -> None:
    said = hint(tmp_path, '  extra: "--output=x.log --nice=1 --exclusive=x"\n')
    assert said == (
        "write extra: {nice: 1}; --output=x.log: logs are in the run directory:"
        " `hpc-train logs RUN`; --exclusive=x: write slurm.exclusive"
    )


@pytest.mark.parametrize("who", ["user", "mcs", "topo"])
def test_who_may_share_the_nodes_has_the_same_key(tmp_path: Path, who: str) -> None:
    wanted = f"write slurm.exclusive: {who} in place of extra"
    assert hint(tmp_path, f'  extra: "--exclusive={who}"\n') == wanted
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert load(tmp_path / "c.yaml", [f"slurm.exclusive={who}"]).config.slurm.exclusive == who


@pytest.mark.parametrize("value", ["nice", '"--exclusive foo"', "5", '"--nice=\'1"', '"-Z 3"'])
def test_what_is_no_flag_gets_the_form_alone(tmp_path: Path, value: str) -> None:
    assert hint(tmp_path, f"  extra: {value}\n") == "write key: value pairs below it"


def test_a_pair_that_has_a_key_is_told_with_its_value(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f"{CONFIG}  extra: {{qos: normal}}\n")
    loaded = load(tmp_path / "c.yaml", [])
    with pytest.raises(ConfigError, match=r"slurm\.extra\.qos: hpc-train sets --qos") as caught:
        extra_options(loaded.config.slurm.extra, loaded.origins)
    assert caught.value.hint == "write slurm.qos: normal"
