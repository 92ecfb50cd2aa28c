"""A script that submits jobs by submitit is told to start what it starts."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpc_train.cli.translate_command import command
from hpc_train.config.load import load
from hpc_train.config.scripts.inner_launchers import inner_launcher_notes
from hpc_train.config.scripts.submitting_scripts import submits_jobs, submitted_script
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.files import write
from tests.plan.configs import config

LAUNCHER = """\
import argparse
import train
import submitit
class Trainer:
    def __call__(self):
        import train
        train.main()
def main():
    args = argparse.ArgumentParser().parse_args()
    executor = submitit.AutoExecutor(folder="out")
    executor.update_parameters(nodes=2)
    job = executor.submit(Trainer())
if __name__ == "__main__":
    main()
"""
SAID = "submits a job by itself (submitit.AutoExecutor), and each rank would submit one"
FIX = "submit train.py itself, with its arguments behind --"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "def main(): pass\nif __name__ == '__main__':\n    main()\n", "train.py")
    write(tmp_path, "x = 1\n", "nets.py")
    return tmp_path


def told(folder: Path, text: str) -> tuple[int, str, str]:
    return submits_jobs(write(folder, text, "go.py"))


def test_it_is_told_with_what_it_starts(folder: Path) -> None:
    assert told(folder, LAUNCHER) == (12, SAID, FIX)
    assert told(folder, LAUNCHER.replace("import train", "import nets"))[2] == (
        "submit the script that it starts itself, with its arguments behind --"
    )
    arrays = LAUNCHER.replace("submit(Trainer())", "map_array(print, [1])")
    assert told(folder, arrays.replace("executor =", "ex =").replace("executor.", "ex."))[0] == 12


@pytest.mark.parametrize("launcher", ["srun", "none"])
def test_it_is_noted_at_submission(folder: Path, launcher: str) -> None:
    write(folder, LAUNCHER, "go.py")
    made = config()
    script = replace(made.script, path="go.py", launcher=launcher)
    (note,) = inner_launcher_notes(replace(made, script=script), folder)
    assert note == f"go.py:12 {SAID}: {FIX}: hpc-train submit --nodes 2 train.py"


def test_translate_tells_it_as_well(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    write(folder, LAUNCHER, "go.py")
    said = CliRunner().invoke(command, ["python go.py --nodes 2"]).output
    assert f"# go.py: line 12 {SAID}: {FIX}\n" in said
    assert "submits" not in CliRunner().invoke(command, ["python other.py --nodes 2"]).output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    main()", "    main() if 1 else 2"),
        ("    job = executor", "    if args.submit:\n        job = executor"),
        ("executor.submit(Trainer())", "submitit.JobEnvironment()"),
        ("executor.submit(Trainer())", "pool.submit(Trainer())"),
        ("import submitit\n", "import other as submitit\n"),
        ("submitit.AutoExecutor", "ThreadPoolExecutor"),
    ],
)
def test_what_may_train_itself_is_not(folder: Path, old: str, new: str) -> None:
    assert told(folder, LAUNCHER.replace(old, new))[0] == 0


OPTIONS = """\
import argparse, submitit, train
P = argparse.ArgumentParser("x", parents=[train.options()])
P.add_argument("--ngpus", default=8, type=int)
P.add_argument("--nodes", default=2)
P.add_argument("--partition", default="learnfair")
P.add_argument("--comment")
P.add_argument("--use_volta32", action="store_true")
executor = submitit.AutoExecutor("logs")
executor.submit(train.main)
"""


@pytest.mark.parametrize(
    ("words", "command_line", "left_out"),
    [
        ("", "--nodes 2 --gpus 8 train.py", ""),
        ("--nodes 4 --ngpus=4 --lr 1", "--nodes 4 --gpus 4 train.py -- --lr 1", ""),
        (
            "--lr 1 --use_volta32 --comment 'my job' --partition fast --x",
            "--nodes 2 --gpus 8 --partition fast train.py -- --lr 1 --x",
            "--use_volta32 --comment my job",
        ),
    ],
)
def test_the_command_of_what_it_starts_is_told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    command_line: str,
    left_out: str,
) -> None:
    monkeypatch.chdir(folder)
    write(folder, OPTIONS, "go.py")
    made = config()
    script = replace(made.script, path="go.py", args=shlex.split(words))
    (note,) = inner_launcher_notes(replace(made, script=script), folder)
    assert note == f"go.py:9 {SAID}: {FIX}: hpc-train submit {command_line}"
    said = CliRunner().invoke(command, [f"python go.py {words}"]).output
    assert "path: train.py" in said
    assert ("nodes: 4" if "--nodes" in words else "nodes: 2") in said
    assert f"# {left_out}: left out: it is of go.py alone\n" in said or not left_out
    assert "go.py" not in said.partition("# the command")[2]
    if "fast" not in words:
        assert f"hpc-train submit {command_line}\n" in said


def test_what_it_starts_is_named_as_its_own_path(folder: Path) -> None:
    write(folder, OPTIONS, "go.py")
    found = submitted_script(folder / "go.py", "tools/go.py", ["--nodes", "many"])
    assert found is not None
    assert found.command() == "hpc-train submit --gpus 8 tools/train.py"
    several = OPTIONS.replace('"--comment"', '"--comment", nargs=2')
    assert submitted_script(write(folder, several, "go.py"), "go.py", []) is None
    none = OPTIONS.replace("import argparse, submitit, train", "import argparse, submitit, nets")
    assert submitted_script(write(folder, none, "go.py"), "go.py", []) is None


FUNCTION = """\
import submitit
from old_train import main
ex = submitit.AutoExecutor(folder="logs/%j")
ex.update_parameters(gpus_per_node=2, tasks_per_node=2, slurm_partition="gpu")
job = ex.submit(main, lr=0.01, epochs=3)
print(job.job_id)
"""
OLD = "def main(lr=0.1, epochs=1):\n    pass\n"
STARTED = f'{OLD}if __name__ == "__main__":\n    main()\n'
CALL = 'write at the end of old_train.py: if __name__ == "__main__": main(lr=0.01, epochs=3)'
OWN = "hpc-train submit --gpus 2 --partition gpu old_train.py"


def refused(folder: Path, text: str, more: str = "") -> ConfigError | None:
    (folder / "old_train.py").write_text(more or OLD)
    write(folder, text, "launch.py")
    cfg = write(folder, "script: {path: launch.py}\n", "cfg.yaml")
    try:
        check(load(cfg), workdir=folder)
    except ConfigError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("imports", "given"),
    [
        ("from old_train import main", "main"),
        ("from old_train import main as run", "run"),
        ("import old_train", "old_train.main"),
    ],
)
def test_a_launcher_of_an_own_function_is_refused_with_its_file(
    folder: Path, imports: str, given: str
) -> None:
    text = FUNCTION.replace("from old_train import main", imports).replace("(main,", f"({given},")
    error = refused(folder, text)
    assert error is not None
    said = "launch.py:5 submits main of old_train.py as a job (submitit.AutoExecutor)"
    assert said in error.message
    assert error.message.endswith("and trains nothing itself: each rank would submit that job")
    assert error.hint == f"{CALL}; then {OWN}"
    error = refused(folder, text, STARTED)
    assert error is not None
    assert error.hint == OWN


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('folder="logs/%j"', 'folder="logs/%j", cluster="debug"'),
        ("job = ex", "if not done:\n    job = ex"),
        ("print(job.job_id)", "main(1)\ntrainer.fit(model)"),
        ("ex.submit(main", "ex.submit(print"),
        ("from old_train import main", "from elsewhere import main"),
    ],
)
def test_one_that_may_train_is_not_refused(folder: Path, old: str, new: str) -> None:
    error = refused(folder, FUNCTION.replace(old, new))
    assert error is None or "as a job" not in error.message


def test_translate_prints_the_command_of_its_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    refused(folder, FUNCTION)
    said = CliRunner().invoke(command, ["python launch.py"]).output
    assert f" {SAID}: {CALL}, and submit old_train.py" in said
    assert "hpc-train submit --gpus 2 " in said
    assert "path: old_train.py" in said
    assert "partition: gpu" in said
