"""What a person sees of a training in the foreground: where it stands, and what rank 0 prints."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from hpc_train import api
from hpc_train.cli.following import LiveLine, one_part, running_line
from hpc_train.diagnose.stacks import is_installed, is_ours
from hpc_train.plan.states import RunState
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.ranks import ExitRecord, read_exits, read_heartbeat, read_notes
from hpc_train.runs.status import RunStatus

POLL_S = 0.5
# What `training.loggers.ProgressLines` and the supervisor write of what the line says already.
PROGRESS_LINE = re.compile(r"step \d+(/\d+)?  epoch \d+  |[\d:]{8} hpc-train: step \d+ \(")
# The supervisor's words of an end, whose reason the run's last lines tell where it is the last one.
_ENDED = re.compile(r"([\d:]{8} hpc-train: attempt \d+ ended: (?!completed)[\w ]+): ")
_STOPS = re.compile(r"[\d:]{8} hpc-train: decided: stop: ")
_LAST_WORDS = ("error: ", "  fix: ")
_NOTE = "note: "
_FRAME = '  File "'
_FRAMES = re.compile(r'^(?=  File ")', re.MULTILINE)
_BEHIND = re.compile(r"^\S", re.MULTILINE)
_FEW = 4
_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))


@contextlib.contextmanager
def shown(run: api.Run) -> Iterator[None]:
    """Show `run` while it trains in this process; standard output is shared with the supervisor."""
    view = _View(run, sys.stdout)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(POLL_S):
            view.look()

    thread = threading.Thread(target=look, name="hpc-train progress", daemon=True)
    with contextlib.redirect_stdout(_AboveTheLine(view)):
        view.look()
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            view.look()
            view.end()


def words_of_culprit(run: RunDir, status: RunStatus) -> str:
    """The traceback of the rank that failed first; empty for rank 0.

    Rank 0's own words are on the screen, as it lost the others.
    """
    last = status.attempts[-1] if status.attempts else None
    if last is None or not last.rank or status.state is not RunState.FAILED:
        return ""
    attempt = run.attempt(last.attempt)
    exits = [item for item in read_exits(attempt) if item.traceback]
    told = next((item for item in exits if item.rank == last.rank), None)
    if told is None:
        return ""
    shown = [(item.error, item.where) for item in exits if item.rank == 0]
    if (told.error, told.where) in shown:
        return f"rank {last.rank} on {told.node}: the same error at the same place\n"
    return f"rank {last.rank} on {told.node}:\n{_in_short(told, attempt)}"


def _in_short(failed: ExitRecord, attempt: AttemptDir) -> str:
    """Its traceback without the frames of libraries and of hpc-train between the user's own.

    The last frame of all is shown, as it says where the exception was raised: not hpc-train's,
    where the rank tells what to do, or a disk is full. Else the error may be hpc-train's, and all
    its frames are shown.
    """
    head, *pieces = _FRAMES.split(failed.traceback)
    files = [piece.split('"')[1] for piece in pieces]
    is_full = any(words in failed.error for words in _FULL)
    is_users = bool(failed.fix) or is_full or not files or not is_ours(files[-1])
    shown, left_out = [], []
    for file, piece in zip(files, pieces, strict=True):
        behind = _BEHIND.search(piece)  # what a traceback ends with, behind its last frame
        if file == failed.where.rpartition(":")[0] or not is_installed(file):
            is_shown = True
        else:
            is_shown = bool(behind) if not is_ours(file) else not is_users
        shown.append(piece if is_shown else piece[behind.start() :] if behind else "")
        left_out += [] if is_shown else [file]
    if len(left_out) < _FEW and not any(map(is_ours, left_out)):
        return failed.traceback
    of = "hpc-train" if all(map(is_ours, left_out)) else "libraries"
    few = f"{len(left_out)} frame{'s' if left_out[1:] else ''} of {of}"
    are = "are" if left_out[1:] else "is"
    return "".join([head, f"  ({few} {are} left out: {attempt.rank_log(failed.rank)})\n", *shown])


class _View:
    """The line, and what is printed above it: one writer at a time."""

    def __init__(self, run: api.Run, out: TextIO) -> None:
        self.line = LiveLine()
        self._run = run
        self._out = out
        self._lock = threading.RLock()
        self._log = Path()
        self._offset = 0
        self._held = ""  # the supervisor's line of an end, until the next one says what follows

    def look(self) -> None:
        """Print what rank 0 has printed since, and say where the training stands."""
        attempt = self._run.directory.latest_attempt
        with self._lock:
            for line in _without_libraries(self._new_lines(attempt.rank_log(0)), attempt):
                if not _is_told_again(line, attempt):
                    self.write(line)
            if (beat := read_heartbeat(attempt.heartbeat(0))) is not None:
                self.line.show(
                    *running_line(f"{one_part(self._run.directory.name)}  running", beat)
                )

    def write(self, text: str) -> None:
        """A line, for standard output."""
        if text and not PROGRESS_LINE.match(text):
            with self._lock:
                self.line.clear()
                self._out.write(text)
                self._out.flush()

    def say(self, text: str) -> None:
        """A line of the supervisor's."""
        with self._lock:
            held, self._held = self._held, ""
            ended = _ENDED.match(held)
            self.write(f"{ended[1]}\n" if ended and _STOPS.match(text) else held)
            if _ENDED.match(text):
                self._held = text
            else:
                self.write(text)

    def end(self) -> None:
        """Nothing comes any more."""
        self.say("")
        self.line.clear()

    def _new_lines(self, log: Path) -> list[str]:
        path = log.resolve()
        lines = self._rest_of(self._log)
        if path != self._log:
            self._log, self._offset = path, 0
            lines += self._rest_of(path)
        return lines

    def _rest_of(self, log: Path) -> list[str]:
        try:
            with log.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except OSError:
            return []  # not there yet
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.decode(errors="replace").splitlines(keepends=True)


def _without_libraries(lines: list[str], attempt: AttemptDir) -> list[str]:
    """New lines of rank 0, its traceback in short where they have all of it."""
    if not any(line.startswith(_FRAME) for line in lines):
        return lines
    text = "".join(lines)
    for failed in read_exits(attempt):
        if failed.rank == 0 and failed.traceback:
            text = text.replace(failed.traceback, _in_short(failed, attempt))
    return text.splitlines(keepends=True)


def _is_told_again(line: str, attempt: AttemptDir) -> bool:
    """Whether it is a note, or of the last lines of a rank that failed.

    Notes of a rank are the supervisor's as well; the rank's traceback said the same as its last
    lines, or the run's last lines do.
    """
    if line.startswith(_NOTE):
        return line.removeprefix(_NOTE).strip() in read_notes(attempt)
    if not line.startswith(_LAST_WORDS):
        return False
    said = line.split(": ", 1)[1].strip()
    failed = [item for item in read_exits(attempt) if item.rank == 0]
    told = [item for item in failed if item.traceback or item.kind == "check"]
    return any(said.removesuffix(f" ({item.where})") in item.error for item in told)


class _AboveTheLine(io.TextIOBase):
    """Standard output for who knows nothing of the line."""

    def __init__(self, view: _View) -> None:
        self._view = view
        self._begun = ""

    def write(self, text: str) -> int:
        whole, newline, self._begun = (self._begun + text).rpartition("\n")
        for line in f"{whole}{newline}".splitlines(keepends=True):
            self._view.say(line)
        return len(text)
