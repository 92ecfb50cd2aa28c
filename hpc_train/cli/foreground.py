"""What a person sees of a training in the foreground: where it stands, and what rank 0 prints."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from hpc_train import api
from hpc_train.cli.following import LiveLine, one_part, running_line
from hpc_train.runs.ranks import read_heartbeat

POLL_S = 0.5
# What `training.loggers.ProgressLines` and the supervisor write of what the line says already.
PROGRESS_LINE = re.compile(r"step \d+(/\d+)?  epoch \d+  |[\d:]{8} hpc-train: step \d+ \(")


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
            view.line.clear()


class _View:
    """The line, and what is printed above it: one writer at a time."""

    def __init__(self, run: api.Run, out: TextIO) -> None:
        self.line = LiveLine()
        self._run = run
        self._out = out
        self._lock = threading.RLock()
        self._log = Path()
        self._offset = 0

    def look(self) -> None:
        """Print what rank 0 has printed since, and say where the training stands."""
        attempt = self._run.directory.latest_attempt
        with self._lock:
            for line in self._new_lines(attempt.rank_log(0)):
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


class _AboveTheLine(io.TextIOBase):
    """Standard output for who knows nothing of the line."""

    def __init__(self, view: _View) -> None:
        self._view = view
        self._begun = ""

    def write(self, text: str) -> int:
        whole, newline, self._begun = (self._begun + text).rpartition("\n")
        for line in f"{whole}{newline}".splitlines(keepends=True):
            self._view.write(line)
        return len(text)
