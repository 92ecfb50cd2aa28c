"""`resume` of a script whose checkpoints are not known says that it takes its steps again."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, write_heartbeat
from hpc_train.runs.script_saves import OwnSaves
from tests.cli.conftest import tell
from tests.cli.test_resume_notes import ended


def submitted_script(hpc, folder: Path, *words: str) -> RunDir:
    (folder / "main.py").write_text("import torch\nfor epoch in range(3):\n    print(epoch)\n")
    said = hpc("submit", "main.py", *words, "--json")
    assert said.code == 0, said
    return RunDir(Path(json.loads(said.out)["run_dir"]))


@pytest.mark.parametrize(
    ("words", "steps", "told"),
    [
        ([], 62, "takes the 62 steps again unless it finds a checkpoint by itself: script.resume"),
        ([], 1, "takes the step again unless it finds a checkpoint by itself: script.resume names"),
        (["script.resume.when=a.pt"], 62, "script.resume names a.pt, and none of this run is the"),
        ([], 0, ""),
    ],
)
def test_it_is_told_before_the_job_begins_anew(
    hpc, taken, tmp_path: Path, words: list[str], steps: int, told: str
) -> None:
    run = submitted_script(hpc, tmp_path, *words)
    tell(run, 0, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7")
    tell(
        run,
        0.5,
        EventKind.ATTEMPT_ENDED,
        attempt=0,
        outcome="cancelled",
        last_step=steps,
        saved_step=0,
    )
    ended(run)
    said = hpc("resume", "main", "--dry-run")
    assert said.code == 0, said
    assert ("again unless" in said.err) == bool(told)
    assert told in said.err


def test_the_file_that_it_saved_last_is_named(hpc, taken, tmp_path: Path) -> None:
    run = submitted_script(hpc, tmp_path)
    tell(run, 0, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7")
    more = {"outcome": "cancelled", "last_step": 5, "saved_step": 0}
    tell(run, 0.5, EventKind.ATTEMPT_ENDED, attempt=0, **more)
    ended(run)
    OwnSaves().with_unnamed(str(tmp_path / "out" / "a.pt"), tmp_path).write(run)
    named = "script.resume names none: script.resume.when=out/a.pt names what it saved last"
    assert named in hpc("resume", "main", "--dry-run").err
    said = hpc("resume", "main", "script.resume.when=out/a.pt", "--dry-run")
    assert said.code == 0, said


PARSED = """import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--resume")
for epoch in range(3):
    torch.save({}, "out/a.pt")
"""
WHOLE = "\"script.resume={when: out/a.pt, args: [--resume, '{newest}']}\""


def stopped_script(hpc, folder: Path, *words: str, text: str = PARSED) -> RunDir:
    """After five steps, of which the script has saved four."""
    run = submitted_script(hpc, folder, *words)
    (folder / "main.py").write_text(text)
    return stopped_at_five(run, folder)


def stopped_at_five(run: RunDir, folder: Path) -> RunDir:
    tell(run, 0, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7")
    more = {"outcome": "cancelled", "last_step": 5, "saved_step": 0}
    tell(run, 0.5, EventKind.ATTEMPT_ENDED, attempt=0, **more)
    ended(run)
    (folder / "out").mkdir()
    (folder / "out" / "a.pt").write_text("whole")
    OwnSaves().with_unnamed(str(folder / "out" / "a.pt"), folder, 4).write(run)
    return run


def test_what_is_told_names_the_script_s_own_option(hpc, taken, tmp_path: Path) -> None:
    stopped_script(hpc, tmp_path)
    assert f"script.resume names none: {WHOLE} names what it saved last" in (
        hpc("resume", "main", "--dry-run").err
    )
    said = hpc("resume", "main", WHOLE.strip('"'), "--dry-run")
    assert (said.code, said.err.count("again unless")) == (0, 0), said
    assert "goes on    from step 4" in said.out


def go_on(hpc, run: RunDir) -> str:
    told = [it for it in hpc("status", "main").out.splitlines() if it.startswith("  go on")]
    return told[0].removeprefix("  go on").strip().replace(run.run_id, "RUN") if told else ""


def test_what_status_tells_to_type_hands_the_script_what_it_saved(
    hpc, taken, tmp_path: Path
) -> None:
    run = stopped_script(hpc, tmp_path)
    typed = go_on(hpc, run)
    assert typed == f"hpc-train resume RUN {WHOLE}"
    said = hpc(*shlex.split(typed.replace("RUN", run.run_id))[1:], "--dry-run")
    assert (said.code, "again unless" in said.err) == (0, False), said
    assert "goes on    from step 4" in said.out


@pytest.mark.parametrize(
    ("text", "words", "behind"),
    [
        ("import torch\ntorch.save({}, 'out/a.pt')\n", [], " script.resume.when=out/a.pt"),
        (PARSED, ["script.resume.when=out/a.pt"], f" {WHOLE}"),
        (PARSED, [WHOLE.strip('"')], ""),
        ("import torch\ntorch.load('out/a.pt')\n", ["script.resume.when=out/a.pt"], ""),
    ],
)
def test_the_words_are_those_that_the_note_of_resume_has(
    hpc, taken, tmp_path: Path, text: str, words: list[str], behind: str
) -> None:
    (tmp_path / "main.py").write_text(text)
    said = hpc("submit", "main.py", *words, "--json")
    run = stopped_at_five(RunDir(Path(json.loads(said.out)["run_dir"])), tmp_path)
    assert go_on(hpc, run) == f"hpc-train resume RUN{behind}"
    assert behind.strip() in hpc("resume", "main", "--dry-run").err


def test_nothing_is_added_where_no_step_was_taken_or_nothing_saved(
    hpc, taken, tmp_path: Path
) -> None:
    run = submitted_script(hpc, tmp_path)
    ended(run)
    assert go_on(hpc, run) == "hpc-train resume RUN"


def test_who_cancels_a_script_that_trains_is_told_when_and_how_it_goes_on(
    hpc, taken, tmp_path: Path
) -> None:
    """The ranks save first, and `resume` is refused until they have left."""
    run = submitted_script(hpc, tmp_path)
    (tmp_path / "main.py").write_text(PARSED)
    tell(run, 0, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7")
    now = time.time()
    beat = Heartbeat(rank=0, node="n1", pid=1, time=now, moved=now, phase="train", step=5)
    run.latest.symlink_to("attempts/0")
    write_heartbeat(run.attempt(0), beat)
    OwnSaves().with_unnamed(str(tmp_path / "out" / "a.pt"), tmp_path, 4).write(run)
    taken.says("7|RUNNING|None|N/A")
    taken.has("scancel", "exit 0")
    said = hpc("cancel", "main")
    first = f"once hpc-train status {run.run_id} says cancelled, go on with: "
    assert said.err == f"{first}hpc-train resume {run.run_id} {WHOLE}\n"
    assert "is being cancelled: its ranks save first" in hpc("resume", "main").err


def test_a_checkpoint_that_the_script_is_not_handed_is_told(hpc, taken, tmp_path: Path) -> None:
    stopped_script(hpc, tmp_path)
    said = hpc("resume", "main", "script.resume.when=out/a.pt", "--dry-run")
    assert "again unless" not in said.err
    alone = "script.resume has no args, and main.py declares --resume: unless it finds out/a.pt by"
    assert f"{alone} itself, write {WHOLE}" in said.err


def test_nothing_is_told_of_a_script_that_finds_it_itself(hpc, taken, tmp_path: Path) -> None:
    stopped_script(hpc, tmp_path, text="import torch\ntorch.load('out/a.pt')\n")
    said = hpc("resume", "main", "script.resume.when=out/a.pt", "--dry-run")
    assert "note: " not in said.err.replace("note: the code", "")
    assert "goes on    from step 4" in said.out


def test_a_pattern_that_names_none_is_told_what_was_saved(hpc, taken, tmp_path: Path) -> None:
    words = "script.resume={when: out/ckpt_*.pt, args: [--resume, '{newest}']}"
    (tmp_path / "main.py").write_text(PARSED)
    said = hpc("submit", "main.py", words, "--json")
    run = RunDir(Path(json.loads(said.out)["run_dir"]))
    tell(run, 0, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7")
    more = {"outcome": "cancelled", "last_step": 5, "saved_step": 0}
    tell(run, 0.5, EventKind.ATTEMPT_ENDED, attempt=0, **more)
    ended(run)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.pt").write_text("whole")
    OwnSaves().with_unnamed(str(tmp_path / "out" / "a.pt"), tmp_path, 4).write(run)
    told = hpc("resume", "main", "--dry-run").err
    assert "names out/ckpt_*.pt, and none of this run is there: script.resume.when=out/a.pt" in told
    said = hpc("resume", "main", "script.resume.when=out/a.pt", "--dry-run")
    assert "goes on    from step 4" in said.out
    assert "again unless" not in said.err


def test_a_submission_to_this_machine_says_what_to_name_as_well(hpc, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(f"{PARSED}torch.load('x')\n")
    said = hpc("submit", "main.py", "--cluster", "local", "--dry-run")
    assert (
        f"main.py:5 saves out/a.pt by itself, and a job that follows begins anew: to go on from"
        f" that write {WHOLE}" in said.err
    )


@pytest.mark.parametrize("last", ["\n", ""])
def test_edits_that_are_not_committed_and_were_there_are_no_change(
    hpc, taken, tmp_path: Path, last: str
) -> None:
    def git(*words: str) -> None:
        argv = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path), *words]
        subprocess.run(argv, check=True, capture_output=True)

    helper = tmp_path / "pkg" / "util.py"
    helper.parent.mkdir()
    helper.write_text(f"def f():\n    return 1\n\n\ndef g():\n    return 2{last}")
    (tmp_path / "main.py").write_text("import pkg.util\nimport torch\nprint(pkg.util.f())\n")
    git("init", "-q")
    git("add", "main.py", "pkg")
    git("commit", "-qm", "1")
    helper.write_text(helper.read_text().replace("return 1", "return 3"))
    said = hpc("submit", "main.py", "--json")
    assert said.code == 0, said
    run = RunDir(Path(json.loads(said.out)["run_dir"]))
    ended(run)
    assert "the code is not" not in hpc("resume", run.run_id, "--dry-run").err
    helper.write_text(helper.read_text().replace("return 3", "return 4"))
    changed = "note: the code is not that of the first attempt: pkg/util.py\n"
    assert changed in hpc("resume", run.run_id, "--dry-run").err


EPOCHS = """\
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
"""


@pytest.mark.parametrize("words", [["trainer.max_epochs=6"], ["--", "--epochs", "6"]])
def test_other_arguments_are_told_with_the_runs_own_options(
    hpc, taken, tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "main.py").write_text(EPOCHS)
    own = ["main.py", "--nodes", "1", "--gpus", "2", "script.accelerator=cpu"]
    said = hpc("submit", *own, "--json", "--", "--epochs", "3")
    run = RunDir(Path(json.loads(said.out)["run_dir"]))
    tell(run, 0, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7")
    ended(run)
    said = hpc("resume", "main", *words)
    assert f"hpc-train submit {' '.join(own)} -- --epochs 6" in said.err
