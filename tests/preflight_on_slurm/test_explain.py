"""`hpc-train preflight --explain`: exit codes, several logs, standard input, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEALTHY = (
    "NCCL version 2.21.5+cuda12.4\n"
    "node1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
)
FAILED = (
    "node2:1:2 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9"
    " bytes\n"
)


def hpc(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train.cli", "preflight", *words],
        cwd=folder, env=own, input=stdin, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize(
    ("text", "code"), [(HEALTHY, 0), (HEALTHY + FAILED, 3), (FAILED, 3), ("step 1\n", 1), ("", 1)]
)
def test_the_exit_code_tells_what_was_found(tmp_path: Path, text: str, code: int) -> None:
    (tmp_path / "a.log").write_text(text)
    assert hpc(tmp_path, "--explain", "a.log").returncode == code
    assert hpc(tmp_path, "--explain", "a.log", "--json").returncode == code
    assert hpc(tmp_path, "--explain", "-", stdin=text).returncode == code


def test_several_logs_a_folder_and_a_pattern_are_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(HEALTHY)
    (tmp_path / "logs" / "b.log").write_text("x\n" + FAILED)
    for words in (["logs/a.log", "logs/b.log"], ["logs"], ["logs/*.log"]):
        done = hpc(tmp_path, "--explain", *words)
        assert done.returncode == 3
        first, evidence, *rest = done.stdout.splitlines()
        assert first == "failed: /dev/shm is too small or full (on node2)"
        assert evidence.startswith("  logs/b.log:2: node2:1:2 [0] misc/shmutils.cc:72")
        assert "between nodes: NET/IB" in rest


def test_json_is_data(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(HEALTHY + FAILED)
    document = json.loads(hpc(tmp_path, "--explain", "a.log", "--json").stdout)
    assert document["schema_version"] == 1
    assert document["logs"] == ["a.log"]
    assert document["version"] == "2.21.5"
    assert document["cause"] == "/dev/shm is too small or full"
    assert document["evidence"] == [{"file": "a.log", "line": 3, "text": FAILED.strip()}]
    assert "--shm-size" in document["fix"]
    (way,) = document["transports"]
    assert (way["a"], way["b"], way["transport"], way["gdr"]) == ("node1", None, "NET/IB", True)


def test_a_log_without_its_option_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    for logs in (["a.log"], ["a.log", "b.log"], ["b.log", "a.log"]):
        done = hpc(tmp_path, *logs)
        assert done.returncode == 2
        assert "--explain" in done.stderr


def test_an_option_in_the_place_of_the_log_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    done = hpc(tmp_path, "--explain", "--full", "a.log")
    assert done.returncode == 2
    assert "--explain has no log behind it" in done.stderr
