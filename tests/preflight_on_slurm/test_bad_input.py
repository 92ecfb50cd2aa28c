"""What cannot be meant, or is not there: one clear line each, on a machine without Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.config.load import load


def hpc(
    folder: Path, *words: str, code: int, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    left_out = ("SLURM_", "HPC_TRAIN_", "NCCL_", "GLOO_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train.cli", "preflight", *words],
        cwd=folder, env={**own, **(env or {})}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    return done


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    return errors[0]


def test_a_host_without_infiniband_gpus_or_slurm_is_looked_at_alone(tmp_path: Path) -> None:
    document = json.loads(hpc(tmp_path, "--json", code=0).stdout)
    assert document["verdict"] in ("go", "go-degraded")
    assert len(document["use_nodes"]) == 1
    skipped = {item["part"]: item["reason"] for item in document["skipped"]}
    assert skipped["pairs"] == "one node: nobody to talk to"
    assert "no HCA on any node" in skipped["port_state"]
    assert "gpu_health" in skipped
    assert not list(tmp_path.iterdir())


def test_nodes_without_slurm_say_what_is_missing(tmp_path: Path) -> None:
    done = hpc(tmp_path, "--nodes", "3", code=4, env={"PATH": "/nonexistent"})
    assert "salloc" in complaint(done)


@pytest.mark.parametrize("value", ["0", "-1", "nan"])
def test_no_time_at_all_is_refused(tmp_path: Path, value: str) -> None:
    done = hpc(tmp_path, "--budget", value, code=3)
    assert "leaves no time" in complaint(done)


@pytest.mark.parametrize(
    ("word", "code", "told"),
    [
        ("memlock=1", 3, "no such threshold"),
        ("min_gbps=fast", 2, "no NAME=NUMBER"),
        ("min_gbps=-1", 3, "is -1"),
        ("min_gbps=nan", 3, "is nan"),
    ],
)
def test_thresholds_that_cannot_be_meant_are_refused(
    tmp_path: Path, word: str, code: int, told: str
) -> None:
    assert told in complaint(hpc(tmp_path, "--threshold", word, code=code))


@pytest.mark.parametrize("content", [b"hello\nworld\n", b"", bytes(range(256)) * 40])
def test_what_is_no_nccl_log_is_told_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    done = hpc(tmp_path, "--explain", "log", code=1)
    assert "log" in complaint(done)
    assert "hpc-train diagnose" in done.stderr


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [("nothing-there", 2, "No such file"), (".", 1, "no line of NCCL's")],
)
def test_a_log_that_cannot_be_read_is_told_so(
    tmp_path: Path, name: str, code: int, told: str
) -> None:
    assert f"{name}: {told}" in complaint(hpc(tmp_path, "--explain", name, code=code))


def test_an_nccl_log_is_explained(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "node1:10:11 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"
        "node1:10:11 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
        "node1:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
    )
    said = hpc(tmp_path, "--explain", "log", code=0).stdout
    assert "NET/Socket" in said
    assert "2.21.5" in said


def test_contradictory_variables_are_told_on_one_host_too(tmp_path: Path) -> None:
    env = {"NCCL_IB_DISABLE": "1", "NCCL_NET": "IB"}
    document = json.loads(hpc(tmp_path, "--json", code=3, env=env).stdout)
    assert "contradict each other" in " ".join(document["summary"])


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        ("preflight: off", "off"),
        ('preflight: "off"', "off"),
        ("preflight: full", "full"),
        ("preflight: {mode: off}", "off"),
        ("preflight: {mode: quick}", "quick"),
    ],
)
def test_off_needs_no_quotes_though_yaml_reads_it_as_false(
    tmp_path: Path, lines: str, mode: str
) -> None:
    digits = Path(__file__).parents[2] / "configs" / "digits.yaml"
    text = "\n".join(x for x in digits.read_text().splitlines() if not x.startswith("preflight"))
    (tmp_path / "run.yaml").write_text(f"{text}\n{lines}\n")
    assert load(tmp_path / "run.yaml").config.preflight.mode == mode
