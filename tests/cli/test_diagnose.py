"""`hpc-train diagnose`: what a word means, what is printed, and the exit code."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.backends.observe import SlurmAnswer, observe
from hpc_train.cli.following import print_end
from hpc_train.plan.states import Outcome
from hpc_train.runs.events import EventKind
from hpc_train.runs.ranks import ExitRecord, write_exit
from tests.report.made import BEGAN, MadeRun, make_run

OOM = "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
LOG = f"step 119\n2026-11-21 08:04:50 step 120 loss 0.3\n{OOM}\nstep 121\n"


@pytest.fixture
def failed(tmp_path: Path):
    """A run that hung, in ./runs."""
    made = make_run(tmp_path)
    made.tell(0, EventKind.SUBMITTED, job_id="4711", backend="local")
    made.attempt(0, 10, steps=(0, 20), outcome="hang", reason="nothing moved for 300 s")
    made.end(100, state="failed")
    return made


WORDS = ["digits", "4711", "20261118-100000-0000", "the folder", "runs/digits", "runs", ""]


@pytest.mark.parametrize("word", WORDS)
def test_a_run_is_found_by_what_a_person_remembers(hpc, failed, word):
    word = str(failed.run.path) if word == "the folder" else word
    said = hpc("diagnose", *([word] if word else []))
    assert said.code == 3
    assert "failed: it hung: nothing moved for 300 s" in said.out
    assert "  fix: " in said.out
    assert said.err == ""


def test_a_log_of_anything_is_told_with_rank_time_and_step(hpc, tmp_path):
    (tmp_path / "slurm-1.out").write_text(LOG)
    said = hpc("diagnose", "slurm-1.out")
    assert said.code == 3
    lines = said.out.splitlines()
    assert lines[0].startswith("failed: a GPU ran out of memory")
    assert lines[1] == "  rank 5, after 2026-11-21 08:04:50, step 120"
    assert lines[2] == f"  slurm-1.out:3: {OOM}"
    assert lines[3].startswith("  fix: less memory a rank")


def test_the_document_has_the_culprit_first(hpc, tmp_path):
    (tmp_path / "a.log").write_text(LOG)
    said = hpc("diagnose", "a.log", "--json")
    document = json.loads(said.out)
    assert said.code == 3
    moment = time.mktime((2026, 11, 21, 8, 4, 50, 0, 0, -1))
    told = {name: document[name] for name in ("name", "rank", "time", "step", "known", "node")}
    assert told == {
        "name": "torch_oom", "rank": 5, "time": moment, "step": 120, "known": True, "node": None,
    }  # fmt: skip
    assert document["evidence"] == [{"file": "a.log", "line": 3, "text": OOM}]
    assert document["schema_version"] == 1
    assert document["findings"][0]["cause"] == document["cause"]


def test_a_healthy_log_is_none_and_an_empty_one_is_nothing_to_read(hpc, tmp_path):
    (tmp_path / "a.log").write_text("step 1 loss 2\nstep 2 loss 1\n")
    (tmp_path / "empty.log").write_text("")
    said = hpc("diagnose", "a.log")
    assert (said.code, said.out) == (0, "no failure is recognised in a.log\n")
    document = json.loads(hpc("diagnose", "a.log", "--json").out)
    assert (document["cause"], document["findings"]) == (None, [])
    said = hpc("diagnose", "empty.log")
    assert said.code == 1
    assert said.err.startswith("error: empty.log: there is nothing in it")
    assert hpc("diagnose", "empty.log", "a.log").code == 0


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["nothing-like-it"], 5, "no run answers to 'nothing-like-it', and it is no file"),
        (["12345"], 5, "no run answers to '12345', and it is no file"),
        (["*.nothing"], 2, "*.nothing: No such file or folder"),
        (["digits", "a.log"], 2, "one RUN at a time"),
        (["a.log", "--attempt", "1"], 2, "--attempt is of a RUN"),
        (["digits", "--attempt", "7"], 2, "--attempt 7: there is none"),
    ],
)
def test_what_is_neither_is_refused_with_a_fix(hpc, failed, tmp_path, words, code, error):
    (tmp_path / "a.log").write_text(LOG)
    said = hpc("diagnose", *words)
    assert said.code == code
    assert said.err.startswith(f"error: {error}")
    assert "  fix: " in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("word", ["pipe", "binary.log", "pictures", "-", "none"])
def test_what_is_no_log_ends_at_once_with_one_line(tmp_path, word):
    os.mkfifo(tmp_path / "pipe")
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9
    (tmp_path / "binary.log").write_bytes(picture)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(picture)
    (tmp_path / "none").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train.cli", "diagnose", word],
        cwd=tmp_path,
        # A run of the user's own may have such a name.
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    error, fix = done.stderr.splitlines()
    assert done.returncode in (1, 2)
    assert error.startswith(f"error: {'standard input' if word == '-' else word}")
    assert fix.startswith("  fix: ")


def test_a_pipe_with_a_writer_and_a_log_with_a_hole_are_read(hpc, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"echo '{OOM}' > pipe"], cwd=tmp_path):
        reader = os.open(tmp_path / "pipe", os.O_RDONLY)  # from now on it has a writer
        assert hpc("diagnose", f"/dev/fd/{reader}").code == 3
        os.close(reader)
    (tmp_path / "hole.log").write_bytes(b"\0" * 600 + b"\nstep 1\n")
    assert hpc("diagnose", "hole.log").code == 0


def test_without_a_run_there_is_nothing_to_tell(hpc):
    said = hpc("diagnose")
    assert said.code == 5
    assert "no runs in " in said.err


def test_folders_patterns_and_packed_logs_are_read(hpc, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "rank-0.log").write_text("step 1\nRuntimeError: Connection closed by peer\n")
    with gzip.open(folder / "rank-7.log.gz", "wt") as stream:
        stream.write(OOM.removeprefix("[rank5]: ") + "\n")
    for word in ("logs", "logs/rank-*"):
        document = json.loads(hpc("diagnose", word, "--json").out)
        assert (document["name"], document["rank"]) == ("torch_oom", 7)
    (folder / "wide.log").write_text(LOG, encoding="utf-16")
    document = json.loads(hpc("diagnose", "logs/wide.log", "--json").out)
    assert (document["name"], document["rank"], document["step"]) == ("torch_oom", 5, 120)


def test_of_several_ranks_the_first_in_time_is_the_culprit(hpc, tmp_path):
    for rank, second in ((0, 9), (1, 3), (2, 7)):
        (tmp_path / f"rank-{rank}.log").write_text(
            f"step 1\n2026-11-21 08:04:0{second} step {second}\n"
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'a'\n"
        )
    document = json.loads(hpc("diagnose", ".", "--json").out)
    assert (document["name"], document["rank"], document["step"]) == ("missing_module", 1, 3)


def test_the_end_of_a_bad_run_names_the_command_and_the_same_sentence(hpc, failed):
    said = hpc("status", "digits")
    lines = said.out.splitlines()
    assert lines[-1] == "  go on      hpc-train resume 20261118-100000-0000"
    assert lines[-2] == "  why        hpc-train diagnose 20261118-100000-0000"
    sentence = lines[-3].removeprefix("  cause      ")
    assert sentence.startswith("it hung: nothing moved for 300 s")
    assert json.loads(hpc("diagnose", "digits", "--json").out)["cause"] in sentence
    assert hpc("diagnose", "digits").out.splitlines()[1] == f"failed: {sentence.split(' (')[0]}"


def test_a_run_that_completed_says_nothing_of_it(hpc, tmp_path):
    made = make_run(tmp_path)
    made.attempt(0, 10, steps=(0, 20))
    made.end(100)
    assert "diagnose" not in hpc("status", "digits").out
    said = hpc("diagnose", "digits")
    assert said.code == 0
    assert "completed" in said.out


def test_a_log_that_cannot_be_read_is_named(hpc, tmp_path):
    said = hpc("diagnose", "/proc/self/mem")  # nobody reads it from its beginning
    assert said.code == 1
    assert said.err.startswith("error: /proc/self/mem cannot be read: Input/output error")
    (tmp_path / "a.log").write_text(LOG)
    said = hpc("diagnose", "/proc/self/mem", "a.log")
    assert said.code == 3
    assert said.out.splitlines()[-1].startswith("note: /proc/self/mem cannot be read")


def test_who_waits_for_a_run_is_told_the_same(hpc, failed, capfd):
    (status,) = observe([failed.run], BEGAN + 500, answer=SlurmAnswer())
    print_end(status)
    lines = capfd.readouterr().out.splitlines()
    told = {line.partition(" ")[0]: line.partition(" ")[2].strip() for line in lines}
    assert told["why"] == "hpc-train diagnose 20261118-100000-0000"
    assert told["cause"].startswith("it hung: nothing moved for 300 s")


SHAPES = (
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x3)",
    "nn.Linear(9, 3) for that layer",
)
TARGET = (
    "RuntimeError: expected target dtype to be Long or Byte, but got Float",
    "y.long() in that line",
)


@pytest.fixture
def broken(tmp_path: Path) -> Callable[..., MadeRun]:
    """A run of which a rank's own code failed."""

    def make(error: str, rank: int = 0) -> MadeRun:
        made = make_run(tmp_path)
        where = "/home/u/nets.py:34"
        reason = f"rank {rank} on n1 failed at step 3: {error} ({where})"
        made.tell(0, EventKind.SUBMITTED, job_id="7", backend="local")
        made.tell(10, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7", nodes=["n1"])
        made.tell(50, EventKind.ATTEMPT_ENDED, attempt=0, outcome="user_error", reason=reason,
                  rank=rank, node="n1", where=where)  # fmt: skip
        made.tell(51, EventKind.RUN_ENDED, state="failed", reason=Outcome.USER_ERROR.follows.reason)
        trace = (
            "Traceback (most recent call last):\n"
            '  File "/env/lib/python3.11/site-packages/pytorch_lightning/a.py", line 3, in fit\n'
            f'    run()\n  File "/home/u/nets.py", line 34, in training_step\n    f(x)\n{error}\n'
        )
        record = ExitRecord(rank=rank, node="n1", time=BEGAN + 50, code=1, step=3, error=error,
                            where=where, traceback=trace)  # fmt: skip
        write_exit(made.run.attempt(0), record)
        return made

    return make


@pytest.mark.parametrize(("error", "fix"), [SHAPES, TARGET])
def test_after_a_failure_of_the_users_code_each_screen_has_the_fix_and_no_sentence_twice(
    hpc, broken, capfd, error, fix
):
    made = broken(error)
    (status,) = observe([made.run], BEGAN + 500, answer=SlurmAnswer())
    print_end(status)
    ended = "".join(capfd.readouterr())
    for screen in (ended, hpc("status", "digits").out):
        assert screen.count(error) == 1
        (line,) = [line for line in screen.splitlines() if line.split()[0] == "fix"]
        assert fix in line
        assert screen.index("cause ") < screen.index("fix ") < screen.index("why ")
    told = hpc("diagnose", "digits").out.splitlines()
    assert told[1].startswith("failed: ")
    assert told[1].endswith("(/home/u/nets.py:34)")
    assert json.loads(hpc("diagnose", "digits", "--json").out)["findings"][0]["where"] == (
        "/home/u/nets.py:34"
    )


def test_a_fix_that_means_other_lines_of_diagnose_is_left_to_it(hpc, failed):
    assert "stacks above" in hpc("diagnose", "digits").out
    assert "stacks above" not in hpc("status", "digits").out


@pytest.mark.parametrize("said", ["no data: set DATA_DIR", "done"])
def test_what_a_program_said_as_it_ended_itself_is_what_to_do(hpc, broken, capfd, said):
    made = broken(f"SystemExit: {said}")
    (status,) = observe([made.run], BEGAN + 500, answer=SlurmAnswer())
    print_end(status)
    ended = "".join(capfd.readouterr())
    for screen in (ended, hpc("status", "digits").out):
        lines = {line.split()[0]: line for line in screen.splitlines() if line.strip()}
        assert f"as it says: {said}; to end a training early" in lines["fix"]
        assert "and said (" not in screen
        assert "exit(), quit() or sys.exit() (rank 0" in " ".join(screen.split())


def test_what_often_kills_a_rank_from_outside_is_told_beside_the_history(hpc, tmp_path):
    made = make_run(tmp_path)
    reason = "rank 1 on n2 was killed by SIGKILL first, by something outside the training"
    made.tell(0, EventKind.SUBMITTED, job_id="7", backend="local")
    made.tell(10, EventKind.ATTEMPT_STARTED, attempt=0, job_id="7", nodes=["n1", "n2"])
    made.tell(50, EventKind.ATTEMPT_ENDED, attempt=0, outcome="node_failure", reason=reason,
              rank=1, node="n2", error="was killed by SIGKILL")  # fmt: skip
    made.tell(51, EventKind.RUN_ENDED, state="failed", reason="4 failures in a row")
    screen = " ".join(hpc("status", "digits").out.split())
    assert (
        "cause rank 1 on n2 was killed from outside (SIGKILL): often for the host's mem" in screen
    )
    assert "fix more memory for the job (slurm.mem" in screen
