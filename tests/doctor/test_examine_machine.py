"""What the doctor says of versions, driver, limits and the folder of runs."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from hpc_train.doctor.examine_folder import check_folder, check_in_time, existing_parent
from hpc_train.doctor.examine_machine import check_limits
from hpc_train.doctor.torch_and_driver import DriverVersions, TorchBuild, ask_torch, check_torch
from hpc_train.preflight.checks.findings import Finding

PLENTY = {"MEMLOCK": -1, "NOFILE": 65536, "NPROC": 65536}
CUDA = TorchBuild(version="2.9.0+cu128", cuda="12.8", nccl="2.27.5", gpus=4)
CPU = TorchBuild(version="2.9.0+cpu")
DRIVER = DriverVersions(state="ok", driver="570.86.15", cuda=(12, 8))


def levels(findings: list[Finding]) -> dict[str, str]:
    return {item.check: item.level for item in findings}


@pytest.mark.parametrize(
    ("torch", "driver", "gpus", "level", "words"),
    [
        (CUDA, DRIVER, 4, "ok", "torch uses 4 GPUs"),
        # CUDA's minor versions are compatible, its major ones are not.
        (CUDA, DriverVersions(state="ok", driver="525.60", cuda=(12, 0)), 4, "ok", "torch uses 4"),
        (CUDA, DriverVersions(state="ok", driver="470.57", cuda=(11, 4)), 4, "fail", "CUDA 12.8"),
        (
            TorchBuild(version="2.9", cuda="11.8", nccl="2.2", gpus=1),
            DRIVER,
            1,
            "ok",
            "torch uses 1 GPU",
        ),
        (CPU, DRIVER, 4, "fail", "a build without CUDA"),
        (TorchBuild(version="2.9", cuda="12.8", nccl="2.27"), DRIVER, 4, "fail", "none of 4 GPUs"),
        (CUDA, DriverVersions(state="Driver/library version mismatch"), 0, "fail", "mismatch"),
        (CPU, DriverVersions(), 0, "ok", "without GPUs"),
        (CPU, DRIVER, 0, "ok", "no GPU is visible"),
    ],
)
def test_the_driver_has_to_serve_the_cuda_of_torch(torch, driver, gpus, level, words) -> None:
    found = {item.check: item for item in check_torch(torch, driver, gpus)}
    assert found["driver"].level == level
    assert words in found["driver"].evidence
    assert bool(found["driver"].fix) == (level == "fail")


def test_gpus_and_a_torch_without_nccl_fail() -> None:
    without = TorchBuild(version="2.9", cuda="12.8", gpus=2)
    assert levels(list(check_torch(without, DRIVER, 2)))["nccl"] == "fail"
    assert levels(list(check_torch(CPU, DriverVersions(), 0)))["nccl"] == "ok"


def python(folder: Path, text: str) -> str:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


def test_a_torch_that_cannot_be_imported_is_told_with_its_own_last_line(tmp_path: Path) -> None:
    broken = "echo 'ImportError: libcudart.so.12: cannot open shared object file' >&2; exit 1"
    found = list(check_torch(ask_torch(python(tmp_path, broken)), DRIVER, 4))
    assert levels(found) == {"torch": "fail"}
    assert "libcudart.so.12" in found[0].evidence


def test_an_import_of_torch_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    said = ask_torch(python(tmp_path, "exec sleep 60"), limit_s=0.2)
    assert said.error == "import torch takes more than 0.2 s"


@pytest.mark.torch
def test_torch_is_asked_in_a_process_of_its_own() -> None:
    before = "torch" in sys.modules
    said = ask_torch()
    assert (said.error, bool(said.version)) == ("", True)
    assert ("torch" in sys.modules) == before


@pytest.mark.parametrize(
    ("low", "fix"),
    [
        ({}, ""),
        ({"NOFILE": 1024}, "ulimit -n 4096"),
        ({"NPROC": 100, "NOFILE": 10}, "ulimit -n 4096; ulimit -u 4096"),
        ({"NOFILE": -1, "MEMLOCK": 65536}, ""),
    ],
)
def test_low_limits_are_told_with_the_command_that_raises_them(low, fix) -> None:
    (found,) = check_limits(PLENTY | low)
    assert found.fix.startswith(fix)
    assert found.level == ("warn" if fix else "ok")


def test_a_folder_of_runs_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    found = list(check_folder(tmp_path))
    assert {"runs folder", "rename", "locks", "clock", "free space"} == set(levels(found))
    assert {levels(found)[name] for name in ("rename", "locks", "clock")} == {"ok"}
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_in_memory_is_no_place_for_runs() -> None:
    (first, *_) = check_folder(Path("/dev/shm"))
    assert (first.level, "tmpfs" in first.evidence) == ("warn", True)


def test_a_folder_that_cannot_be_written_fails() -> None:
    found = [item for item in check_folder(Path("/proc")) if item.level == "fail"]
    assert [item.check for item in found] == ["runs folder"]
    assert found[0].fix


def test_a_folder_that_is_not_there_yet_is_tried_in_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert existing_parent(tmp_path / "runs" / "deep") == tmp_path
    assert existing_parent(Path("runs")) == tmp_path


def test_a_file_system_that_does_not_answer_is_a_line_of_its_own(tmp_path: Path) -> None:
    never = threading.Event()

    def blocked(folder: Path) -> list[Finding]:
        never.wait()
        return list(check_folder(folder))

    (found,) = check_in_time(tmp_path, 0.05, blocked)
    never.set()
    assert (found.check, found.level) == ("runs folder", "fail")
    assert "has not answered in 0.05 s" in found.evidence
    assert check_in_time(tmp_path)[0].check == "runs folder"
