"""The console script, as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hpc_train.store.events import Event, EventKind, append_event
from hpc_train.store.layout import RunDir


def call(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys\nfrom hpc_train.cli.entry import main\n"
        "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/nowhere"}
    argv = [sys.executable, "-c", code, *words]
    return subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)


def finished_run(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "runs" / "digits" / "id-1")
    run.path.mkdir(parents=True)
    run.plan.write_text("{}")
    append_event(run.events, Event(1.0, EventKind.SUBMITTED, {"job_id": "1", "backend": "slurm"}))
    data = {"state": "completed", "reason": "all done"}
    append_event(run.events, Event(2.0, EventKind.RUN_ENDED, data))


def test_the_second_list_says_the_same_without_click(tmp_path):
    finished_run(tmp_path)
    through_click = call(tmp_path, "list", "--active")
    first, second = call(tmp_path, "list"), call(tmp_path, "list")
    assert "no runs" in through_click.stderr
    assert first.stdout == second.stdout
    assert [line.split()[:3] for line in second.stdout.splitlines()[1:]] == [
        ["digits", "id-1", "completed"]
    ]
    modules = set(second.stderr.split())
    assert modules & {"click", "json", "dataclasses", "pathlib", "subprocess"} == set()


def test_nothing_to_list_is_said_and_no_error(tmp_path):
    said = call(tmp_path, "list", "--runs-dir", "missing")
    assert (said.returncode, said.stdout) == (0, "")
    assert said.stderr.startswith("no runs; hpc-train submit CFG makes one")


def test_a_reader_that_has_enough_is_no_error(tmp_path):
    finished_run(tmp_path)
    command = f"{sys.executable} -m hpc_train.cli list | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
