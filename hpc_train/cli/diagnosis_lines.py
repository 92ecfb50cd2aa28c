"""What `status` and who waits for a run say of a bad end, beside the history."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.diagnose.stacks import APART
from hpc_train.plan.states import Outcome, RunState
from hpc_train.runs.history_text import WIDTH
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus

if TYPE_CHECKING:
    from hpc_train.diagnose.diagnosis import Culprit

# A fix that means other lines of diagnose's own screen.
_BESIDE_OTHERS = re.compile(
    r"(?<!folders )\babove\b(?! (?:all|\d))|\bbelow\b(?! (?:\d|the ))"
    r"|^what (?:it|the line|this line|the message) "
)
_BAD = (RunState.FAILED, RunState.TIMED_OUT, RunState.LOST)


def diagnosis_lines(status: RunStatus, indent: str = "") -> Iterator[str]:
    """The next command, and the cause and the fix of it where no log has to be read for them.

    What the run's reason says already is not said again, and a fix is whole, as it is typed.
    """
    if not status.state.ended:
        yield from _of_newest_end(status, indent)
    if status.state not in _BAD:
        return
    from hpc_train.diagnose.read_run import told_without_logs

    word = run_word(status.run_dir)
    try:
        found = told_without_logs(RunDir(Path(status.run_dir)), status, also_likely=True)
    except OSError:  # a part of the run that is not ours to read; diagnose says which
        found = None
    if found:
        first = found.findings[0]
        if sentence := _unsaid(found.sentence, first, status):
            yield from _cause(sentence, indent)
        fix = first.what_to_do
        is_how = fix.startswith(f"hpc-train resume {word} goes on")
        # The line `go on` tells how, and for how long.
        is_told = fix in status.reason or (is_how and status.state is RunState.TIMED_OUT)
        if fix and not is_told and stands_alone(fix):
            yield f"{indent}fix        {fix}"
    yield f"{indent}why        hpc-train diagnose {word}"


def _of_newest_end(status: RunStatus, indent: str) -> Iterator[str]:
    """Of a run that goes on: what may end its next attempt as it has ended the newest."""
    if not any(attempt.outcome is Outcome.NODE_FAILURE for attempt in status.attempts):
        return
    from hpc_train.diagnose.read_open_run import told_while_open

    if likely := told_while_open(RunDir(Path(status.run_dir)), status):
        attempt, found = likely
        yield from _cause(f"attempt {attempt.attempt}: {found.cause}", indent)
        yield f"{indent}fix        {found.what_to_do}"
        why = f"hpc-train diagnose {run_word(status.run_dir)} --attempt {attempt.attempt}"
        yield f"{indent}why        {why}"


def _cause(sentence: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        f"{indent}cause      {sentence}", WIDTH, subsequent_indent=f"{indent}{' ' * 11}"
    )


def stands_alone(fix: str) -> bool:
    """Whether a fix speaks of no other lines that diagnose shows beside it."""
    return not _BESIDE_OTHERS.search(fix)


def _unsaid(sentence: str, first: Culprit, status: RunStatus) -> str:
    """The sentence without what the reason says, where a rank's own words are the reason."""
    head, _, words = first.cause.partition(": ")
    if first.cause in status.reason:
        return ""
    if words and words in status.reason:
        if not status.attempts:  # its reason is of the job's log, and has the head as well
            return ""
        if APART in words:  # where each rank was stands in the reason, at length
            return ""
        if status.outcome is Outcome.USER_ERROR:
            # The words, which a sentence ends with where it quotes them, are the reason itself.
            return sentence.replace(first.cause, head.removesuffix(", and said"))
    return sentence
