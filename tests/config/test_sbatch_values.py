"""Options of sbatch as keys of `slurm`: what to write instead, with the value that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError

CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net}
data: {class_path: nets.Data}
slurm: {nodes: 2, gpus_per_node: 2, time: "0:10:00"%s}
"""
BESIDE = ", beside slurm and not below it"
EXTRA = "other options of sbatch go under slurm.extra: "
IN_FILE = "other options of sbatch go under extra: "


def hint(folder: Path, inside: str, *typed: str) -> str:
    (folder / "c.yaml").write_text(CONFIG % inside)
    with pytest.raises(ConfigError) as caught:
        load(folder / "c.yaml", typed)
    return caught.value.hint


@pytest.mark.parametrize(
    ("key", "value", "typed", "in_file"),
    [
        ("job-name", "foo", "write name=foo", f"write name: foo{BESIDE}"),
        ("job_name", '"my run"', "write 'name=my run'", f'write name: "my run"{BESIDE}'),
        ("job", "a1", "write name=a1", f"write name: a1{BESIDE}"),
        ("queue", "short", "write slurm.partition=short", "write partition: short"),
        (
            "signal",
            '"B:USR1@120"',
            "write slurm.signal_lead_s=120",
            "write signal_lead_s: 120",
        ),
        (
            "no-requeue",
            "1",
            "write requeue.enabled=false",
            f"write requeue: {{enabled: false}}{BESIDE}",
        ),
        ("switches", "1", f"{EXTRA}slurm.extra.switches=1", f"{IN_FILE}{{switches: 1}}"),
        ("wckey", '"a b"', f"{EXTRA}'slurm.extra.wckey=a b'", f'{IN_FILE}{{wckey: "a b"}}'),
        ("num_nodes", "2", "write slurm.nodes=2", "write nodes: 2"),
    ],
)
def test_the_fix_has_the_value(
    tmp_path: Path, key: str, value: str, typed: str, in_file: str
) -> None:
    """It was `write name`, which is nothing that can be typed."""
    assert hint(tmp_path, "", f"slurm.{key}={value}") == typed
    assert hint(tmp_path, f", {key}: {value}") == in_file


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("slurm.signal=USR1", "write slurm.signal_lead_s"),  # without a time
        ("slurm.gpus=all", "write slurm.gpus_per_node"),
        ("slurm.num_nodes=two", "write slurm.nodes"),
        ("slurm.batch=knl", "write global_batch_size"),  # features of nodes, and no number
        ("slurm.walltime=1:00:00", "write slurm.time"),  # read as a number of seconds
        ("slurm.mem_gb=4", f"{EXTRA}{{mem-gb: ...}}"),  # no option of sbatch
        ("slurm.J=foo", f"{EXTRA}{{J: ...}}"),
        ("slurm.export-file=vars", "write env.variables"),
        ("slurm.output=a.log", "write nothing: `hpc-train logs RUN` shows the ranks' logs"),
    ],
)
def test_a_value_that_does_not_fit_is_left_out(tmp_path: Path, word: str, said: str) -> None:
    assert hint(tmp_path, "", word) == said
