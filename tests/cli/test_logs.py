"""`hpc-train logs`: one rank, all of them, the last lines, and what there is not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from tests.training.launched import make_plan


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDir]:
    """A run that has ended, with what its ranks wrote, attempt after attempt."""

    def make(*attempts: Sequence[str], ranks: int = 2, ended: bool = True) -> RunDir:
        run = RunDir(tmp_path / "runs" / "digits" / "20261121-000000-0001")
        run.attempts.mkdir(parents=True)
        run.plan.write_text(make_plan(tmp_path, ranks_per_node=ranks).to_json())
        tell(run, EventKind.SUBMITTED, job_id="7", backend="slurm")
        for number, texts in enumerate(attempts):
            run.attempt(number).path.mkdir()
            run.latest.unlink(missing_ok=True)
            run.latest.symlink_to(f"attempts/{number}")
            tell(run, EventKind.ATTEMPT_STARTED, attempt=number, job_id="7")
            for rank, text in enumerate(texts):
                run.attempt(number).rank_log(rank).write_text(text)
        if ended:
            end(run)
        return run

    return make


def tell(run: RunDir, kind: EventKind, **data: object) -> None:
    append_event(run.events, Event(time.time(), kind, data))


def end(run: RunDir) -> None:
    tell(run, EventKind.RUN_ENDED, state="failed", reason="it broke")


def ten(rank: int) -> str:
    return "".join(f"line {number} of {rank}\n" for number in range(10))


@pytest.mark.parametrize("ranks", [1, 2, 12])
def test_all_ranks_are_shown_in_their_order_each_line_with_its_rank(hpc, slurm, make_run, ranks):
    make_run([f"hello from {rank}\nbye" for rank in range(ranks)], ranks=ranks)
    assert hpc("logs", "digits", "--all").out == "".join(
        f"[rank{rank}]: hello from {rank}\n[rank{rank}]: bye\n" for rank in range(ranks)
    )


@pytest.mark.parametrize(("lines", "first"), [("0", 10), ("1", 9), ("3", 7), ("10", 0), ("99", 0)])
def test_the_last_lines_are_those_of_each_rank(hpc, slurm, make_run, lines, first):
    make_run([ten(0), ten(1)])
    wanted = [f"line {number} of 1\n" for number in range(first, 10)]
    assert hpc("logs", "digits", "--rank", "1", "-n", lines).out == "".join(wanted)
    both = hpc("logs", "digits", "--all", "-n", lines).out.splitlines()
    assert both == [
        f"[rank{rank}]: line {number} of {rank}" for rank in (0, 1) for number in range(first, 10)
    ]


def test_another_attempt_is_shown_where_it_is_asked_for(hpc, slurm, make_run):
    make_run(["first\n", "a\n"], ["second\n", "b\n"])
    assert hpc("logs", "digits").out == "second\n"
    assert hpc("logs", "digits", "--attempt", "0").out == "first\n"
    assert hpc("logs", "digits", "--attempt", "0", "--all").out == "[rank0]: first\n[rank1]: a\n"


@pytest.mark.parametrize("follow", [[], ["-f"]])
@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        (["--rank", "7"], "has no rank 7", "it has 2: --rank R, of 0 to 1"),
        (["--rank", "2"], "has no rank 2", "it has 2: --rank R, of 0 to 1"),
        (["--attempt", "3"], "has no attempt 3", "--attempt K, of 0 to 1"),
    ],
)
def test_what_there_is_not_is_told_with_what_there_is(
    hpc, slurm, make_run, words, message, fix, follow
):
    make_run(["first\n", "a\n"], ["second\n", "b\n"])
    said = hpc("logs", "digits", *words, *follow)
    assert (said.code, said.out) == (2, "")
    assert message in said.err.splitlines()[0]
    assert fix in said.err.splitlines()[1]


def test_a_rank_of_an_earlier_larger_shape_is_shown(hpc, slurm, make_run):
    make_run(["a\n", "b\n", "c\n"], ["a\n", "b\n"])
    assert hpc("logs", "digits", "--rank", "2", "--attempt", "0").out == "c\n"


def test_a_run_that_has_ended_without_a_log_is_not_said_to_have_none_yet(hpc, slurm, make_run):
    make_run([])
    said = hpc("logs", "digits")
    assert said.code == 10
    assert "has left no log" in said.err
    assert "hpc-train status" in said.err
    assert "--attempt" not in said.err


@pytest.mark.parametrize("words", [[], ["--all"]])
def test_where_the_newest_attempt_has_left_none_the_one_that_has_is_named(
    hpc, slurm, make_run, words
):
    """As after a cancel in the first seconds of an attempt."""
    make_run(["a\n"], ["b\n"], [])
    said = hpc("logs", "digits", *words)
    assert said.code == 10
    assert "fix: attempt 1 has: --attempt 1; hpc-train status" in said.err


@pytest.mark.parametrize("words", [[], ["--all"]])
def test_a_run_that_waits_has_no_log_yet(hpc, slurm, make_run, words):
    make_run(ended=False)
    slurm.says("7|PENDING|Priority|N/A")
    said = hpc("logs", "digits", *words)
    assert "has no log yet" in said.err
    assert "-f" in said.err


@pytest.mark.parametrize("words", [["--all", "--rank", "1"], ["--supervisor", "--all"]])
def test_choices_that_exclude_one_another_are_refused(hpc, words):
    assert hpc("logs", "digits", *words).code == 2


@pytest.mark.parametrize("last", [[], ["-n", "1"]])
def test_following_all_ranks_gives_every_line_once_and_whole(hpc, slurm, make_run, last):
    run = make_run(["old\nbegun"], ended=False)
    slurm.says("7|RUNNING|None|N/A")

    def write() -> None:
        with run.attempt(0).rank_log(0).open("a") as log:
            log.write(" and ended\n")
        run.attempt(0).rank_log(1).write_text("one\ntwo\n")
        end(run)

    thread = threading.Timer(5.0, write)
    thread.start()
    out = hpc("logs", "digits", "-f", "--all", *last).out
    thread.join()
    told = out.splitlines()  # of two ranks in any order, of each in its own
    assert [it for it in told if it.startswith("[rank0]: ")] == [
        "[rank0]: old",
        "[rank0]: begun and ended",
    ]
    assert [it for it in told if it.startswith("[rank1]: ")] == ["[rank1]: one", "[rank1]: two"]
    assert len(told) == 4


@pytest.mark.parametrize(
    ("options", "number", "there"),
    [([], 0, True), ([], 1, True), (["--rank", "1"], 0, False), (["--all"], 1, True)],
)
def test_following_an_attempt_that_is_starting_says_so_once(
    hpc, slurm, make_run, options: list[str], number: int, there: bool
) -> None:
    run = make_run(*[["old\n", "old\n"]] * number, ["", ""] if there else [], ended=False)
    slurm.says("7|RUNNING|None|N/A")
    threading.Timer(5.0, end, [run]).start()  # three looks at the status later
    said = hpc("logs", "digits", "-f", *options)
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if not line.startswith("waiting for /")]
    who = {"--rank": "rank 1 has written nothing", "--all": "no rank has written anything"}
    does = who.get("".join(options[:1]), "rank 0 has written nothing")
    ends = f"{does} in attempt {number}; hpc-train status {run.run_id} says how it ended"
    assert lines == [f"attempt {number} is starting, and {does} yet", *[ends] * there]


def test_following_an_attempt_that_has_written_says_nothing_more(hpc, slurm, make_run) -> None:
    run = make_run(["begun\n"], ended=False)
    slurm.says("7|RUNNING|None|N/A")
    threading.Timer(3.0, end, [run]).start()
    said = hpc("logs", "digits", "-f")
    assert (said.out, said.err) == ("begun\n", "")


def test_every_commands_json_says_its_version(hpc, slurm, make_run, tmp_path):
    run = make_run(["a\n"])
    log = tmp_path / "nccl.log"
    log.write_text("node1:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n")
    (run.attempt(0).path / "preflight.json").write_text('{"schema_version": 1, "verdict": "go"}')
    for words in (
        ["list"], ["status"], ["status", "digits"], ["checkpoints", "digits"], ["nodes"],
        ["preflight", "digits"], ["preflight", "--explain", str(log)], ["cancel", "digits"],
        ["status", "no-such-run"], ["submit", "--dry-run", "no-such-file"],
    ):  # fmt: skip
        document = json.loads(hpc(*words, "--json").out)
        assert document["schema_version"] == 1, words


@pytest.mark.parametrize(
    ("options", "who", "written"),
    [
        ([], "rank 0", "has written nothing"),
        (["--rank", "1"], "rank 1", "has written nothing"),
        (["--all"], "no rank", "has written anything"),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_a_log_that_is_empty_yet_is_told_with_what_to_wait_for(
    hpc, slurm, make_run, options: list[str], who: str, written: str, number: int
) -> None:
    run = make_run(*[["old\n", "old\n"]] * number, ["", ""], ended=False)
    slurm.says("7|RUNNING|None|N/A")
    said = hpc("logs", "digits", *options)
    assert (said.code, said.out) == (0, "")
    assert said.err == f"attempt {number} is starting, and {who} {written} yet; -f waits for it\n"
    end(run)
    said = hpc("logs", "digits", *options)
    assert (said.code, said.out) == (0, "")
    ends = f"hpc-train status {run.run_id} says how it ended"
    assert said.err == f"{who} {written} in attempt {number}; {ends}\n"
    followed = hpc("logs", "digits", *options, "-f")
    assert (followed.code, followed.out, followed.err) == (0, "", said.err)


FAILED = {"outcome": "user_error", "error": "KeyError: 'label'", "where": "nets.py:19"}


@pytest.mark.parametrize("follow", [[], ["-f"]])
@pytest.mark.parametrize(
    ("first", "options", "typed"),
    [
        (1, [], "--rank 1"),
        (1, ["--attempt", "0"], "--rank 1 --attempt 0"),
        (3, ["--rank", "1"], "--rank 3"),
        (0, [], ""),
        (1, ["--rank", "1"], ""),
        (1, ["--all"], ""),
        (None, [], ""),
    ],
)
def test_the_rank_that_failed_first_is_named_below_the_log_of_another(
    hpc, make_run, first: int | None, options: list[str], typed: str, follow: list[str]
) -> None:
    run = make_run(["a\n", "b\n", "c\n", "d\n"], ranks=4, ended=False)
    tell(run, EventKind.ATTEMPT_ENDED, attempt=0, rank=first, **FAILED)
    end(run)
    said = hpc("logs", "digits", *options, *follow)
    told = f"rank {first} failed first (KeyError: 'label', nets.py:19): hpc-train logs {run.run_id}"
    assert said.code == 0
    assert said.err == (f"{told} {typed}\n" if typed else "")


def test_no_line_at_all_was_asked_for(hpc, slurm, make_run) -> None:
    make_run(["text\n"], ended=False)
    slurm.says("7|RUNNING|None|N/A")
    said = hpc("logs", "digits", "-n", "0")
    assert (said.out, said.err) == ("", "")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("rank 1", "--rank 1"),
        ("1", "--rank 1"),
        ("attempt 0", "--attempt 0"),
        ("all", "--all"),
        ("rank", "--rank VALUE"),
    ],
)
def test_an_option_without_its_dashes_is_told_with_them(hpc, slurm, make_run, typed, meant):
    make_run(["a", "b"])
    said = hpc("logs", "digits", *typed.split())
    assert (said.code, said.err.splitlines()[1]) == (2, f"  fix: write {meant}")
    if "VALUE" not in meant:
        assert hpc("logs", "digits", *meant.split()).code == 0


def test_without_a_run_the_newest_is_shown_and_named(hpc, slurm, make_run):
    none = hpc("logs")
    assert (none.code, none.out, "no runs" in none.err) == (5, "", True), none
    run = make_run(["epoch 1\n", "of rank 1\n"])
    said = hpc("logs")
    assert (said.code, said.out) == (0, "epoch 1\n")
    assert f"note: the newest run: digits/{run.run_id}" in said.err
    assert hpc("logs", "--rank", "1").out == "of rank 1\n"
