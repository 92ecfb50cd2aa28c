"""Which checkpoint of its own a script goes on from, and with which arguments."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plan import env_names
from hpc_train.plan.plan import ScriptPlan
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.layout import RunDir
from hpc_train.runs.script_saves import OwnSaves
from hpc_train.supervisor.script_resume import script_environment
from tests.training.launched import make_plan


def whole() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("data", "x" * 100)
    return stream.getvalue()


class Case:
    """A run whose script has `when` as its checkpoints."""

    def __init__(self, folder: Path, when: str) -> None:
        self.folder, self.run, self.said = folder, RunDir(folder / "run"), ""
        self.run.path.mkdir()
        self.plan = replace(
            make_plan(folder),
            script=ScriptPlan(
                "t.py", [], resume_when=when, resume_args=["--resume", "{newest}", "a b"]
            ),
        )

    def put(self, name: str, content: bytes, age_s: int = 0) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        for changed in (path, path.parent):
            os.utime(changed, (1e9 - age_s, 1e9 - age_s))
        return path

    def resume(self, attempt: int) -> dict[str, Any]:
        told: list[str] = []
        variable = script_environment(self.plan, self.run, attempt, told.append)
        self.said = " ".join(told)
        return json.loads(variable[env_names.SCRIPT_RESUME])


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path, "out/*.pt")


def test_the_newest_that_is_whole_is_taken_from_the_second_attempt_on(case: Case) -> None:
    assert case.resume(0)["args"] == []
    old = case.put("out/a.pt", whole(), age_s=20)
    torn = case.put("out/b.pt", whole()[:60], age_s=10)
    assert case.resume(1) == {"args": ["--resume", str(old), "a b"], "path": str(old), "step": 0}
    assert f"{torn} is torn" in case.said
    OwnSaves.of(case.run).noted(old, 40).write(case.run)
    assert case.resume(1)["step"] == newest_step(case.run) == 40
    new = case.put("out/c.pt", whole())
    assert case.resume(2)["path"] == str(new)
    assert case.resume(2)["step"] == 40, "one that nobody saw being written: at least that"
    for path in (old, torn, new):
        path.unlink()
    assert case.resume(3)["args"] == []
    assert "begins anew" in case.said
    assert newest_step(case.run) == 0


def test_what_another_run_has_left_there_is_never_gone_on_from(case: Case) -> None:
    path = case.put("out/a.pt", whole(), age_s=100)
    assert case.resume(0)["args"] == []
    assert f"{path} was there before this run" in case.said
    assert case.resume(1)["args"] == []
    case.put("out/a.pt", whole())
    assert case.resume(1)["path"] == str(path), "written anew, it is this run's"


def test_folders_count_by_what_is_in_them(tmp_path: Path) -> None:
    case = Case(tmp_path, "out/checkpoint-*")
    case.put("out/checkpoint-9/state", b"x")
    case.put("out/checkpoint-10/state", b"x", age_s=50)
    (tmp_path / "out" / "checkpoint-11").mkdir()
    assert case.resume(1)["path"].endswith("checkpoint-9")
    assert "checkpoint-11 is torn" in case.said


def test_a_plan_without_a_script_gets_nothing(tmp_path: Path) -> None:
    assert script_environment(make_plan(tmp_path), RunDir(tmp_path), 1, print) == {}
