"""One run of the live page: its history and its logs; and the question before it is cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Static

from hpc_train.runs.log_tail import last_lines
from hpc_train.top.watched_run import LOG_LINES, WatchedRun, full_text, log_files


class RunScreen(Screen[None]):
    """Its history above, the end of one log below.

    Args:
        newest: The run's row as it is known now; None once it is gone.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "app.pop_screen", "Back"),
        ("right", "other_log(1)", "Next log"),
        ("left", "other_log(-1)", "Log before"),
        ("c", "app.cancel_run", "Cancel"),
    ]

    def __init__(self, newest: Callable[[], WatchedRun | None]) -> None:
        super().__init__()
        self._newest, self._log, self._shown = newest, 0, ""

    def compose(self) -> ComposeResult:
        """A text that scrolls, and the keys."""
        with VerticalScroll():
            yield Static(id="run", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Show it, and what is new about as often as the runs are read."""
        self.refresh_run()
        self.set_interval(2.0, self.refresh_run)

    @property
    def row(self) -> WatchedRun | None:
        """The run as it is known now."""
        return self._newest()

    def action_other_log(self, step: int) -> None:
        """Show the log of the next rank, or of the one before."""
        self._log += step
        self.refresh_run()

    def refresh_run(self) -> None:
        """Draw what has changed; at the end of the text it stays there."""
        row = self._newest()
        text = "the run's folder is gone" if row is None else "\n".join(self._text(row))
        if text == self._shown:
            return
        view = self.query_one(VerticalScroll)
        at_end = bool(self._shown) and view.is_vertical_scroll_end and view.max_scroll_y > 0
        self._shown = text
        self.query_one("#run", Static).update(text)
        if at_end:
            view.scroll_end(animate=False)

    def _text(self, row: WatchedRun) -> Iterator[str]:
        yield from full_text(row, time.time())
        logs = log_files(row)
        if not logs:
            return
        log = logs[self._log % len(logs)]
        lines = last_lines(log, LOG_LINES)
        yield ""
        yield f"{log.name} ({self._log % len(logs) + 1} of {len(logs)} logs, its last lines)"
        yield from (f"  {line}" for line in lines)


class CancelQuestion(ModalScreen[bool]):
    """Asks before a run is cancelled; everything but `y` is a no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "dismiss(True)", "Yes, cancel it"),
        ("n", "dismiss(False)", "No"),
        ("escape", "dismiss(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question and the two keys."""
        yield Static(f"{self._question}\n\ny  yes, cancel it      n  no", id="ask", markup=False)
