"""Failures that happened: torch, gloo, Python and the shell fail for real, and the log is read."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.diagnose.read_logs import diagnose_logs

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
# Who is to blame where two ranks left a log each; None where nobody can tell.
RANKS = {"gloo_timeout": 1, "barrier": 1, "collective_shapes": None}


def functions(name: str) -> list[str]:
    """The names in a tuple of `produced`, which imports torch."""
    tree = ast.parse((ROOT / "tests/diagnose/produced.py").read_text())
    found = [node.value for node in tree.body if isinstance(node, ast.Assign)
             and ast.unparse(node.targets[0]) == name]  # fmt: skip
    return [node.id for node in ast.walk(found[0]) if isinstance(node, ast.Name)]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("produced")
    argv = [sys.executable, "-m", "tests.diagnose.produced", str(folder)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return folder


def test_each_failure_of_one_process_is_told_by_its_cause(logs):
    names = functions("ALONE")
    assert len(names) == 17
    found = {name: diagnose_logs([str(logs / f"{name}.log")]).findings for name in names}
    assert {name: [item.name for item in told] for name, told in found.items()} == {
        name: [name] for name in names
    }
    assert {name for name, (told,) in found.items() if not told.is_known} == set()
    assert {told.step for (told,) in found.values()} == {12}


def test_of_two_ranks_the_one_that_did_not_come_is_named(logs):
    names = functions("TOGETHER")
    told = {name: diagnose_logs([str(logs / name)]).findings[0] for name in names}
    assert {name: (item.name, item.rank) for name, item in told.items()} == {
        name: (name, RANKS[name]) for name in names
    }


SHELL = {
    "wrong_cpu": "head -c 2000 /dev/zero > tool; chmod +x tool; ./tool",
    "permission": "echo > tool; ./tool",
    "command_missing": "a_program_that_nobody_has --version",
}


@pytest.mark.parametrize("name", SHELL)
def test_what_a_shell_says_is_read(name, tmp_path):
    with (tmp_path / "job.out").open("w") as log:
        argv = ["bash", "-c", f"{SHELL[name]}\n true"]
        subprocess.run(argv, cwd=tmp_path, stdout=log, stderr=log, check=True)
    (found,) = diagnose_logs([str(tmp_path / "job.out")]).findings
    assert found.name == name
