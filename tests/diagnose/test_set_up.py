"""A job whose environment was not activated, and what it then lacks: which is told first."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.diagnose.diagnosis import told
from hpc_train.diagnose.read_logs import diagnose_logs

SCRIPT = "/var/spool/slurmd/job12/slurm_script"
CONDA = f"{SCRIPT}: line 7: conda: command not found"
NOT_CONFIGURED = """
CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.
To initialize your shell, run

    $ conda init <SHELL_NAME>
"""
NOT_ACTIVATED = "the environment was not activated: the job's shell "
CONDA_FIX = (
    "source CONDA/etc/profile.d/conda.sh in the script before conda activate, with the folder of"
)


def raised(module: str, *frames: str) -> str:
    lines = [f'  File "{frame}", line 3, in <module>\n    import it' for frame in frames]
    head = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 3, in <module>'
    return "\n".join([head, *lines, f"ModuleNotFoundError: No module named '{module}'"])


def shown(tmp_path: Path, *parts: str) -> list[str]:
    (tmp_path / "job.log").write_text("\n".join(["step", *parts, ""]))
    found = [*told(diagnose_logs([str(tmp_path / "job.log")]))]
    return [line for line in found if line.startswith(("failed: ", "also: ", "  fix: "))]


@pytest.mark.parametrize(
    ("line", "cause", "fix"),
    [
        (CONDA, "does not find conda", CONDA_FIX),
        (f"{SCRIPT}: 7: mamba: not found", "does not find mamba", CONDA_FIX),
        ("bash: line 2: micromamba: command not found", "does not find micromamba", "shell hook"),
        (f"{SCRIPT}: line 7: module: command not found", "does not find module", "#!/bin/bash -l"),
        (f"{SCRIPT}: 4: source: not found", "has no source", "#!/bin/bash"),
        (
            f"{SCRIPT}: line 6: /home/u/venv/bin/activate: No such file or directory",
            "finds no /home/u/venv/bin/activate",
            "ls -l /home/u/venv/bin/activate on that node",
        ),
        (
            f"{SCRIPT}: 6: .: cannot open venv/bin/activate: No such file",
            "finds no venv/bin/activate",
            "ls -l venv/bin/activate on that node",
        ),
        (
            f"{SCRIPT}: line 6: activate: No such file or directory",
            "finds no activate",
            "conda activate NAME in place of source activate",
        ),
    ],
)
@pytest.mark.parametrize("module", ["pytorch_lightning", "torch", "yaml"])
def test_what_was_not_activated_is_told_before_the_package_that_is_missing(
    tmp_path: Path, line: str, cause: str, fix: str, module: str
) -> None:
    first, todo, also = shown(tmp_path, line, raised(module))
    assert first == f"failed: {NOT_ACTIVATED}{cause}"
    assert fix in todo
    assert also.startswith(f"also: Python found no module {module}")
    (alone,) = [it for it in shown(tmp_path, line) if it.startswith("failed")]
    assert alone.startswith(first)


def test_its_line_is_quoted_and_a_shell_that_conda_is_not_set_up_in_is_told_likewise(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.log").write_text(f"{CONDA}\n{raised('torch')}\n")
    lines = [*told(diagnose_logs([str(tmp_path / "job.log")]))]
    assert lines[1].endswith(f"job.log:1: {CONDA}")
    first, todo, also = shown(tmp_path, NOT_CONFIGURED, raised("torch"))
    assert first.startswith("failed: the environment of conda was not activated in the job's shell")
    assert "conda.sh in the script before conda activate" in todo
    assert also.startswith("also: Python found no module torch")


@pytest.mark.parametrize("command", ["torchrun", "python", "python3", "accelerate"])
def test_a_command_of_the_environment_that_is_missing_is_told_behind_it(
    tmp_path: Path, command: str
) -> None:
    missing = f"{SCRIPT}: line 9: {command}: command not found"
    first, _, also = shown(tmp_path, CONDA, missing)
    assert first == f"failed: {NOT_ACTIVATED}does not find conda"
    assert also == f"also: the shell does not find {command}"
    first, *_ = shown(tmp_path, missing)
    assert first.startswith(f"failed: the shell does not find {command}")


VENV = "/home/u/venv/lib/python3.11/site-packages/own/__init__.py"


@pytest.mark.parametrize("line", [CONDA, NOT_CONFIGURED])
@pytest.mark.parametrize(
    "missing",
    [
        raised("nets"),  # of the program's own, or of a package that is not known
        raised("torch.nm"),  # torch is there
        raised("datasets"),  # either
        raised("torch", VENV),
        "/home/u/venv/bin/python: No module named torch",
    ],
)
def test_a_module_of_ones_own_or_of_a_python_that_was_activated_is_told_first(
    tmp_path: Path, line: str, missing: str
) -> None:
    first, todo, also = shown(tmp_path, line, missing)
    assert first.startswith("failed: Python found no module ")
    assert "conda activate" not in todo
    assert "not activated" in also


@pytest.mark.parametrize(
    "frame",
    [
        "/usr/lib/python3/dist-packages/own/__init__.py",
        "/usr/lib64/python3.9/site-packages/own/__init__.py",
        "/home/u/.local/lib/python3.9/site-packages/own/__init__.py",
    ],
)
def test_the_systems_python_is_none_that_was_activated(tmp_path: Path, frame: str) -> None:
    assert shown(tmp_path, CONDA, raised("torch", frame))[0].startswith(f"failed: {NOT_ACTIVATED}")
    said = "/usr/bin/python3: No module named torch"
    assert shown(tmp_path, CONDA, said)[0].startswith(f"failed: {NOT_ACTIVATED}")


def test_what_failed_before_in_another_file_or_otherwise_has_nothing_to_do_with_it(
    tmp_path: Path,
) -> None:
    assert shown(tmp_path, raised("torch"), CONDA)[0].startswith("failed: Python found no module")
    steps = [f"step {n} loss 0.3" for n in range(30)]
    memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert not any("activated" in it for it in shown(tmp_path, CONDA, *steps, memory))
    (tmp_path / "a.log").write_text(f"{CONDA}\n")
    (tmp_path / "b.log").write_text(f"{raised('torch')}\n")
    first, *_ = told(diagnose_logs([str(tmp_path / name) for name in ("a.log", "b.log")]))
    assert first.startswith("failed: Python found no module torch")
