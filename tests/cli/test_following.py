"""Staying with a run: what is said meanwhile, how often, and the one document at the end."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.backends import follow, observe
from hpc_train.cli import following, foreground
from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import FailedSaves, Heartbeat, read_heartbeat, write_heartbeat
from tests.cli.conftest import DIGITS, Slurm

ENDED = '{"time": 9e9, "event": "run_ended", "state": "%s", "reason": "%s"}'


@pytest.fixture
def says_in_turn(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """squeue gives one answer after another to a follower in a hurry; then the run ends."""
    monkeypatch.setattr(follow, "ASK_SLURM_EVERY_S", 0.0)
    monkeypatch.setattr(follow, "POLL_S", 0.0)
    slurm.has("sbatch", "echo Submitted batch job 7")
    for program in ("srun", "scontrol", "sinfo"):
        slurm.has(program, "exit 1")

    def say(*answers: str, state: str = "cancelled", reason: str = "somebody") -> None:
        (slurm.folder / "answers").write_text("".join(f"{answer}\n" for answer in answers))
        (slurm.folder / "end").write_text(ENDED % (state, reason) + "\n")
        slurm.has(
            "squeue",
            f"cd {slurm.folder}; echo >> asked; n=$(wc -l < asked)\n"
            f"sed -n ${{n}}p answers\n"
            f"[ $n -le $(wc -l < answers) ] || tail -n 1 answers\n"
            f"[ $n -le $(wc -l < answers) ] || for run in {slurm.folder.parent}/runs/*/*; do\n"
            f"cat end >> $run/events.jsonl; done",
        )

    return say


@pytest.mark.parametrize("answers", [1, 2, 7])
def test_of_a_job_that_does_not_start_that_is_said_once_with_the_command_that_ends_it(
    hpc, says_in_turn, answers
):
    says_in_turn(*["7|PENDING|PartitionDown|N/A"] * answers)
    said = hpc("submit", DIGITS, "--follow")
    run = next(Path.cwd().glob("runs/*/*")).name
    way = "cancel it, change the key, submit again"
    passes = "`sinfo -s` shows those that are up; it starts when that has passed"
    trouble = f"slurm.partition is down: {passes}, or {way}"
    assert said.err.splitlines() == [
        f"warning: the job does not start: {trouble}",
        f"  end it with: hpc-train cancel {run}",
        "digits  pending  does not start",
        "cancelled  somebody",
    ]
    assert said.code == 12


def test_slurms_reason_is_said_once_and_again_when_it_changes(hpc, says_in_turn):
    reasons = ["Priority"] * 3 + ["Resources"] * 2 + ["Priority"]
    says_in_turn(*(f"7|PENDING|{reason}|N/A" for reason in reasons))
    said = hpc("submit", DIGITS, "--follow")
    assert said.err.splitlines()[:-1] == [
        "digits  pending  Priority (other jobs are in front of it)",
        "digits  pending  Resources (nodes that it could have are taken by other jobs)",
        "digits  pending  Priority (other jobs are in front of it)",
    ]


def test_that_a_run_is_slower_than_its_baseline_is_said_once(hpc, says_in_turn, monkeypatch):
    told = ["", "23 % slower than its baseline", "25 % slower than its baseline", ""]
    monkeypatch.setattr(following, "slower_text", lambda _: told.pop(0) if told else "")
    says_in_turn(*["7|RUNNING|None|N/A"] * 5)
    said = hpc("submit", DIGITS, "--follow")
    slow = [line for line in said.err.splitlines() if "slower" in line]
    assert slow == ["slow: 23 % slower than its baseline"]


@pytest.mark.parametrize("word", ["--wait", "--follow"])
def test_what_a_run_goes_on_in_spite_of_is_said_once(hpc, says_in_turn, monkeypatch, word):
    says_in_turn(*["7|RUNNING|None|N/A"] * 5)
    noted = {"attempt": 0, "text": "env.setup.0 (`ls /x`) exited with 2"}

    def begin_and_note(run: RunDir) -> None:
        if not run.latest.is_symlink():
            begin(run, 0)
            tell(run, EventKind.NOTE, **noted)
        failed = FailedSaves(count=3, since_step=5, error="No space left on device")
        beat = read_heartbeat(run.attempt(0).heartbeat(0))
        write_heartbeat(run.attempt(0), dataclasses.replace(beat, failed_saves=failed))

    seen = follow.observe

    def observed(runs, *args, **more):
        begin_and_note(runs[0])
        return seen(runs, *args, **more)

    monkeypatch.setattr(follow, "observe", observed)
    said = hpc("submit", DIGITS, word)
    notes = [line for line in said.err.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: {noted['text']}", "note: saves fail: No space left on device"]


def test_what_is_noted_of_an_earlier_attempt_is_not_told_of_the_next(hpc, says_in_turn) -> None:
    """The code was put back, and the resumed run was said to train with other code."""
    says_in_turn("7|PENDING|None|N/A")
    for number, words in enumerate((("submit", DIGITS), ("resume", "digits"))):
        said = hpc(*words, "--wait")
        (run,) = (RunDir(path) for path in Path("runs/digits").iterdir())
        begin(run, number)
        tell(run, EventKind.NOTE, attempt=number, text=f"the code is not that of {number}")
        tell(run, EventKind.ATTEMPT_ENDED, attempt=number, outcome="user_error", reason="x")
        tell(run, EventKind.RUN_ENDED, state="failed", reason="x")
        assert "note: the code" not in said.err
    assert hpc("status", "digits").out.count("the code is not that of") == 2


@pytest.mark.parametrize("word", ["--wait", "--follow"])
@pytest.mark.parametrize(("state", "code"), [("completed", 0), ("failed", 10)])
def test_json_is_one_document_at_the_end_with_the_runs_state(hpc, says_in_turn, word, state, code):
    says_in_turn("7|PENDING|Priority|N/A", state=state, reason="all of it")
    said = hpc("submit", DIGITS, word, "--json")
    document = json.loads(said.out)
    assert said.code == code
    told = {name: document[name] for name in ("schema_version", "state", "job_id", "reason")}
    assert told == {"schema_version": 1, "state": state, "job_id": "7", "reason": "all of it"}
    assert {"run", "run_dir", "metrics", "attempts"} <= document.keys()
    assert document["cluster"] == "slurm"
    assert said.err.startswith("submitted  job 7\n")
    assert f"{state}  all of it" in said.err
    assert said.err.count("pending") == (word == "--follow")


def test_resume_in_json_is_one_document_too(hpc, says_in_turn):
    says_in_turn("7|PENDING|Priority|N/A", state="failed")
    run = json.loads(hpc("submit", DIGITS, "--json", "--wait").out)["run"]
    said = hpc("resume", run, "--json")
    assert json.loads(said.out)["job_id"] == "7"
    hpc("status", run)  # while Slurm is asked it ends again
    again = json.loads(hpc("resume", run, "--json", "--wait").out)
    assert (again["run"], again["job_id"]) == (run, "7")


@pytest.mark.parametrize("words", [[], ["--wait"], ["--follow"]])
def test_who_stays_is_told_why_it_ended(hpc, says_in_turn, words):
    says_in_turn("7|PENDING|Priority|N/A", state="failed", reason="the disk is full")
    said = hpc("submit", DIGITS, *words)
    assert ("failed  the disk is full" in said.err) == bool(words)


@pytest.fixture
def waiting(slurm: Slurm, tmp_path: Path) -> RunDir:
    """A run whose job waits."""
    run = RunDir(tmp_path / "runs" / "digits" / "20261121-000000-0001")
    run.path.mkdir(parents=True)
    run.plan.write_text("{}")
    tell(run, EventKind.SUBMITTED, job_id="7", backend="slurm")
    slurm.says("7|PENDING|Resources|N/A")
    return run


def tell(run: RunDir, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(time.time(), kind, data))


def begin(run: RunDir, attempt: int) -> None:
    tell(run, EventKind.ATTEMPT_STARTED, attempt=attempt, job_id="7")
    run.attempt(attempt).path.mkdir(parents=True)
    run.latest.unlink(missing_ok=True)
    run.latest.symlink_to(f"attempts/{attempt}")
    beat = Heartbeat(rank=0, node="n", pid=1, time=1.0, moved=1.0, phase="train", step=61)
    write_heartbeat(run.attempt(attempt), beat)


def test_a_job_that_has_begun_is_not_said_to_wait_until_slurm_is_asked_again(waiting, slurm):
    statuses = api.Run(waiting).follow()
    assert next(statuses).state is RunState.PENDING
    slurm.says("7|RUNNING|None|N/A")
    begin(waiting, 0)
    status = next(statuses)
    assert (status.state, status.beat.step) == (RunState.RUNNING, 61)


def test_slurm_is_not_asked_again_while_nothing_happens(waiting, slurm):
    statuses = api.Run(waiting).follow()
    for _ in range(3):
        next(statuses)
    assert slurm.asked() == 1


@pytest.mark.parametrize(("tells_each_s", "at_most"), [(None, 14), (1, 60), (30, 40)])
def test_slurm_is_asked_once_in_ten_seconds_at_most_and_ever_more_seldom(
    waiting, monkeypatch, tells_each_s, at_most
):
    now, asked = [0.0], []
    monkeypatch.setattr(follow.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(follow.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(observe, "query_jobs", lambda jobs, **_: asked.append(now[0]) or {})
    statuses = api.Run(waiting).follow()
    for second in range(600):
        now[0] = second
        if tells_each_s and second % tells_each_s == 0:
            tell(waiting, EventKind.NOTE, text="something")
        next(statuses)
    assert min(b - a for a, b in itertools.pairwise(asked)) >= 10
    assert 10 <= len(asked) <= at_most


def test_a_requeued_job_waits_and_says_where_it_goes_on(waiting, slurm, monkeypatch, capfd):
    monkeypatch.setattr(follow, "ASK_SLURM_EVERY_S", 0.0)
    begin(waiting, 0)
    slurm.says("7|RUNNING|None|N/A")
    statuses = api.Run(waiting).follow()
    assert next(statuses).state is RunState.RUNNING
    tell(waiting, EventKind.ATTEMPT_ENDED, attempt=0, outcome="preempted", last_step=61)
    slurm.says("7|PENDING|BeginTime|N/A")
    status = next(statuses)
    assert status.state is RunState.PENDING
    line = following.LiveLine()
    line.show(*following.line_of(status, 5.0))
    said = capfd.readouterr().err
    assert said.startswith("digits  pending  goes on from step 61  BeginTime (not before its")


def test_in_a_pipe_a_training_has_a_line_a_minute(monkeypatch, capfd):
    now = [0.0]
    monkeypatch.setattr(following.time, "monotonic", lambda: now[0])
    line = following.LiveLine()
    for second in range(181):
        now[0] = second
        line.show("digits  running", f"step {second}")
    lines = capfd.readouterr().err.splitlines()
    assert lines == [f"digits  running  step {second}" for second in (0, 60, 120, 180)]


def beat(step: int, **told: object) -> Heartbeat:
    always = {"rank": 0, "node": "n", "pid": 1, "time": 1.0, "moved": 1.0, "phase": "train"}
    return Heartbeat(**{**always, "step": step, **told})


def test_the_first_steps_are_told_at_once_also_in_a_pipe(capfd):
    line = following.LiveLine()
    beats = [None, beat(0, phase="start"), beat(0), beat(0), beat(2), beat(3, steps_per_s=2.0)]
    for one in [*beats, beat(5, steps_per_s=2.0), beat(5, steps_per_s=2.0, phase="validate")]:
        line.show(*following.running_line("digits  running", one))
    assert capfd.readouterr().err.splitlines() == [
        "digits  running  no rank has begun yet",
        "digits  running  starting",
        "digits  running  step 0",
        "digits  running  step 2",
        "digits  running  step 3  2.0 it/s",
    ]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ("200", "digits  running  step 5/90  2.0 it/s  ETA 42 s  loss 0.5  val_acc 0.9"),
        ("70", "digits  running  step 5/90  2.0 it/s  ETA 42 s  loss 0.5  val_acc 0.9"),
        ("69", "digits  running  step 5/90  2.0 it/s  ETA 42 s  loss 0.5"),
        ("50", "digits  running  step 5/90  2.0 it/s  ETA 42 s"),
        ("7", "digits"),
        ("5", "d..."),
    ],
)
def test_on_a_terminal_the_line_is_drawn_anew_with_what_there_is_room_for(
    monkeypatch, capfd, columns, shown
):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(following.sys.stderr, "isatty", lambda: True)
    line = following.LiveLine()
    told = {"steps": 90, "steps_per_s": 2.0, "metrics": {"loss": 0.5, "val_acc": 0.9}}
    for _ in range(2):
        line.show(*following.running_line("digits  running", beat(5, **told)))
    line.clear()
    drawn = "\r\x1b[K"
    assert capfd.readouterr().err == f"{drawn}{shown}{drawn}{shown}{drawn}"


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        (40, ["step 281/512"]),
        (60, ["step 281/512", "epoch 4/8", "16 it/s"]),
        (80, ["step 281/512", "epoch 4/8", "16 it/s", "ETA 14 s"]),
        (120, ["step 281/512", "epoch 4/8", "16 it/s", "ETA 14 s", "train_loss 0.0436"]),
    ],
)
@pytest.mark.parametrize("length", [14, 28, 64, 200])
def test_a_long_name_takes_no_place_from_where_the_training_stands(
    monkeypatch, capfd, columns, parts, length
):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(following.sys.stderr, "isatty", lambda: True)
    name = ("a-name-that-goes-on-until-it-fills-the-line-" * 5)[:length]
    at = {"steps": 512, "epoch": 4, "epochs": 8, "steps_per_s": 16.0}
    one = beat(281, **at, metrics={"train_loss": 0.0436})
    following.LiveLine().show(*following.running_line(f"{name}  running", one))
    line = capfd.readouterr().err.removeprefix("\r\x1b[K")
    shown, *rest = line.split("  ")
    assert len(line) < columns
    assert rest == ["running", *parts]
    assert shown == name or (shown.endswith("...") and name.startswith(shown[:-3]))
    assert len(shown) >= min(length, 14)


def test_a_name_with_two_spaces_is_one_part_of_the_line(waiting, slurm, monkeypatch, capfd):
    begin(waiting, 0)
    slurm.says("7|RUNNING|None|N/A")
    status = dataclasses.replace(api.Run(waiting).status(), name="a  name of  mine")
    assert following.line_of(status, 1.0)[0] == "a name of mine  running  step 61"


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run in the foreground, and rank 0 that has begun."""
    monkeypatch.setattr(foreground, "POLL_S", 0.01)
    run = RunDir(tmp_path / "runs" / "digits" / "20261121-000000-0001")
    run.path.mkdir(parents=True)
    begin(run, 0)
    return run


def test_a_run_in_the_foreground_shows_what_rank_0_prints_and_where_it_stands(training, capfd):
    log = training.attempt(0).rank_log(0)
    log.write_text("before\nstep 3/90  epoch 0  loss 0.5  64 samples/s\nhalf of ")
    with foreground.shown(api.Run(training)):
        print("12:00:00 hpc-train: attempt 0: 2 ranks on a, b")
        print("12:00:10 hpc-train: step 3 (train)")
        with log.open("a") as more:
            more.write("a line\nstep by step\n")
        begin(training, 1)
        training.attempt(1).rank_log(0).write_text("again\nand not yet at its end")
    said = capfd.readouterr()
    assert sorted(said.out.splitlines()) == sorted([
        "before", "half of a line", "step by step", "again",
        "12:00:00 hpc-train: attempt 0: 2 ranks on a, b",
    ])  # fmt: skip
    assert "digits  running  step 61" in said.err
    print("here again")
    assert capfd.readouterr().out == "here again\n"


def test_what_fails_in_the_foreground_is_not_hidden_by_what_shows_it(training, capfd):
    def fail() -> None:
        with foreground.shown(api.Run(training)):
            training.attempt(0).rank_log(0).write_text("the last words\n")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert capfd.readouterr().out == "the last words\n"


def test_a_training_goes_on_being_shown_while_slurm_does_not_answer(waiting, slurm, monkeypatch):
    monkeypatch.setattr(follow, "ASK_SLURM_EVERY_S", 0.0)
    begin(waiting, 0)
    slurm.says("7|RUNNING|None|N/A")
    statuses = api.Run(waiting).follow()
    assert following.line_of(next(statuses), 1.0) == ("digits  running  step 61", "")
    slurm.has("squeue", "echo Unable to contact >&2; exit 1")
    tell(waiting, EventKind.NOTE, text="something")  # so it asks again
    silent = following.line_of(next(statuses), 2.0)
    assert silent == ("digits  running  (Slurm does not answer)  step 61", "")


@pytest.mark.parametrize("word", ["--wait", "--follow"])
def test_a_folder_that_is_removed_is_told_and_no_command_for_it_is_named(
    hpc, says_in_turn, monkeypatch, word
):
    says_in_turn(*["7|RUNNING|None|N/A"] * 5)
    seen, looks = follow.observe, itertools.count()

    def observed(runs, *args, **more):
        found = seen(runs, *args, **more)
        if next(looks) == 2:
            shutil.rmtree(runs[0].path)
        return found

    monkeypatch.setattr(follow, "observe", observed)
    said = hpc("submit", DIGITS, word)
    assert said.code == 5
    assert "the folder of digits (" in said.err
    assert "is gone, with its checkpoints: " in said.err
    assert "submit it again; scancel 7 ends its job, where it has not ended" in said.err
    assert "hpc-train resume" not in said.err
