"""Lines of env.setup that activate a venv: without it the job would train in another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.plan.script import render_script
from tests.plan.test_script import FAKE_PYTHON, make, run


def with_venv(folder: Path, last: str = "true") -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").write_text(FAKE_PYTHON)
    (folder / "bin/python").chmod(0o755)
    (folder / "bin/activate").write_text(f"export PATH={folder}/bin:$PATH\n{last}\n")


LINES = ["source ~/v/bin/activate", ". $HOME/v/bin/activate", "  source ${HOME}/v/bin/activate "]


@pytest.mark.parametrize("line", [*LINES, "source v/bin/activate", "source ./v/bin/activate"])
def test_a_venv_that_the_node_has_not_ends_the_job_with_a_fix(tmp_path: Path, line: str) -> None:
    """The job went on in the Python that was first on the PATH, and was complete."""
    script = render_script(make(env={"setup": ["ulimit -c 0", line, "true"]}))
    ran = run(script, tmp_path, HOME=str(tmp_path))
    assert ran.done.returncode == 1
    command = line.strip()
    assert f"hpc-train: error: env.setup.1: `{command}` exited with 1\n" in ran.done.stderr
    fix = "that node has no such file: name a venv that the nodes see; if it may be absent:"
    assert f"  fix: {fix} {command} || true\n" in ran.done.stderr
    assert not (tmp_path / "arguments").exists()


@pytest.mark.parametrize("last", ["true", "false"])
@pytest.mark.parametrize("line", LINES)
def test_a_venv_that_is_there_is_activated_whatever_its_last_line_says(
    tmp_path: Path, line: str, last: str
) -> None:
    with_venv(tmp_path / "v", last)
    ran = run(render_script(make(env={"setup": [line]})), tmp_path, HOME=str(tmp_path))
    assert ran.done.returncode == 0, ran.done.stderr
    assert (tmp_path / "arguments").exists()


def test_what_may_be_absent_goes_on(tmp_path: Path) -> None:
    with_venv(tmp_path / "v")
    lines = [f"{LINES[0]} || true", "[ -e w/bin/activate ] && source w/bin/activate", "true"]
    other = "source /nowhere/w/bin/activate || source v/bin/activate"
    ran = run(render_script(make(env={"setup": [*lines, other]})), tmp_path, HOME="/nowhere")
    assert ran.done.returncode == 0, ran.done.stderr
