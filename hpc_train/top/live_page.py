"""The live page on a terminal: a table of all runs that is drawn anew as they go on."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.events import Resize
from textual.widgets import DataTable, Footer, Input, Static

from hpc_train.backends.cancel import cancel_one
from hpc_train.backends.sweep_jobs import cancel_sweep
from hpc_train.errors import HpcTrainError
from hpc_train.plan.sweep_plan import points_text
from hpc_train.runs.history_text import STATE_COLORS, printable
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word
from hpc_train.top.run_screen import CancelQuestion, RunScreen
from hpc_train.top.run_watcher import RunWatcher
from hpc_train.top.watched_run import (
    HEADER,
    RunsSnapshot,
    WatchedRun,
    brief_text,
    chosen,
    widths_for,
)

MOST_ROWS = 200  # that are drawn; a filter finds the others
AROUND = 4  # columns beside the cells: before the first one, behind the last, the scroll bar
COLORS = {state.value: f"ansi_{color}" for state, color in STATE_COLORS.items()}


def show_live_page(runs_dir: Path | None, text: str, *, active: bool) -> None:
    """Show it until `q`, Ctrl-C or the end of the terminal.

    Raises:
        NoSuchRunError: when `runs_dir` is no folder.
    """
    # Also where it is ignored: Textual would go on reading from a terminal that is gone.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    LivePage(runs_dir, text, active=active).run()


class LivePage(App[None]):
    """All runs in a table, with what the chosen one waits for below it."""

    CSS_PATH = "live_page.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        ("slash", "filter", "Filter"),
        ("a", "only_active", "Active"),
        ("c", "cancel_run", "Cancel"),
        ("escape", "whole", "All"),
    ]

    def __init__(self, runs_dir: Path | None, text: str = "", *, active: bool = False) -> None:
        super().__init__(ansi_color=True)
        self.watch_runs = RunWatcher(runs_dir, self._from_watch)
        self.theme = "ansi-dark"
        self._text, self._active = text, active
        self._rows: dict[str, WatchedRun] = {}
        self._widths: list[int] = []

    def compose(self) -> ComposeResult:
        """One line, the table, the chosen run, the keys."""
        yield Static("looking for runs ...", id="summary", markup=False)
        yield DataTable[Content](cursor_type="row")
        yield Static(id="chosen", markup=False)
        yield Input(placeholder="words of a name, id, job, state or reason", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to watch."""
        self.query_one(DataTable).focus()
        self.query_one("#filter").display = False
        self.watch_runs.start()

    def on_unmount(self) -> None:
        """Stop watching."""
        self.watch_runs.stop()

    def _from_watch(self) -> None:
        if self.is_running:
            self.call_later(self.redraw)

    def on_resize(self, _event: Resize) -> None:
        """Fit the columns anew."""
        self._widths = []
        self.redraw()

    def redraw(self) -> None:
        """Draw what is known now; only the cells that have changed, where rows and widths stay."""
        snapshot = self.watch_runs.newest
        if snapshot is None or not self.query(DataTable):  # before it is built, or at the end
            return
        found = chosen(snapshot, self._text, active=self._active)
        shown = found[:MOST_ROWS]
        table = self.query_one(DataTable)
        before, self._rows = self._rows, {row.status.run_dir: row for row in shown}
        widths = widths_for(shown, self.size.width - AROUND)
        if _have_room(self._widths, widths):  # a table that breathes is hard to read, and dear
            widths = self._widths
        if widths != self._widths or list(before) != list(self._rows):
            self._widths = widths
            self._rebuild(table)
        else:
            self._update(table, before)
        self.query_one("#summary", Static).update(self._summary(snapshot, len(found)))
        self._describe()

    def _rebuild(self, table: DataTable[Content]) -> None:
        at = self._chosen_key(table)
        table.clear(columns=True)
        for name, width in zip(HEADER, self._widths, strict=True):
            if width:
                table.add_column(name, width=width, key=name)
        for key, row in self._rows.items():
            table.add_row(*self._drawn(row).values(), key=key)
        if at in self._rows:
            table.move_cursor(row=list(self._rows).index(at))

    def _update(self, table: DataTable[Content], before: dict[str, WatchedRun]) -> None:
        for key, row in self._rows.items():
            if row is before[key]:
                continue
            old = self._drawn(before[key])
            for name, cell in self._drawn(row).items():
                if cell.plain != old[name].plain:
                    table.update_cell(key, name, cell)

    def _drawn(self, row: WatchedRun) -> dict[str, Content]:
        """The cells that have a place, by their column."""
        cells = zip(HEADER, row.cells_in(self._widths), self._widths, strict=True)
        return {
            name: Content.styled(cell, COLORS.get(cell, "")) for name, cell, width in cells if width
        }

    def _summary(self, snapshot: RunsSnapshot, found: int) -> str:
        wanted = [self._text and f"with {self._text!r}", self._active and "active only"]
        told = [", ".join(word for word in wanted if word)]
        told += [f"the first {MOST_ROWS} of {found:,}"] if found > MOST_ROWS else []
        first = "   ".join(word for word in (snapshot.summary, *told) if word)
        return "\n".join([first, *snapshot.notes])

    def _describe(self) -> None:
        row = self.chosen_run
        text = "\n".join(brief_text(row)) if row else "no such runs; Esc shows all"
        text = text if self.watch_runs.newest and self.watch_runs.newest.rows else ""
        self.query_one("#chosen", Static).update(text)

    @staticmethod
    def _chosen_key(table: DataTable[Content]) -> str:
        if not table.row_count:
            return ""
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)

    @property
    def chosen_run(self) -> WatchedRun | None:
        """The run under the cursor."""
        return self._rows.get(self._chosen_key(self.query_one(DataTable)))

    def on_data_table_row_highlighted(self) -> None:
        """Say more of it below the table."""
        if self.query(DataTable):  # the message may come while the page ends
            self._describe()

    def on_data_table_row_selected(self) -> None:
        """Open it."""
        row = self.chosen_run
        if row is not None:
            self.push_screen(RunScreen(partial(self._newest_of, row)))

    def _newest_of(self, row: WatchedRun) -> WatchedRun | None:
        rows = self.watch_runs.newest.rows if self.watch_runs.newest else ()
        return next((it for it in rows if it.entry.path == row.entry.path), None)

    def action_filter(self) -> None:
        """Ask for the words of a filter."""
        line = self.query_one(Input)
        line.display = True
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        self._text = event.value
        self.redraw()

    def on_input_submitted(self) -> None:
        """Go back to the table, filtered."""
        self.query_one(Input).display = False
        self.query_one(DataTable).focus()

    def action_whole(self) -> None:
        """Show all runs again."""
        self._active = False
        self.query_one(Input).value = self._text = ""
        self.on_input_submitted()
        self.redraw()

    def action_only_active(self) -> None:
        """Show what waits or trains alone, or all again."""
        self._active = not self._active
        self.redraw()

    def action_cancel_run(self) -> None:
        """Ask, and then cancel the run that is open or under the cursor."""
        row = self.screen.row if isinstance(self.screen, RunScreen) else self.chosen_run
        if row is None:
            return
        run = row.status
        if run.state.ended:
            self.notify(f"{run.name} ({run.run}) is {run.state.value} already", markup=False)
            return
        what = f"the sweep {run.name} with all of its points" if row.sweep else run.name
        job = f", job {run.job_id}" if run.job_id else ""
        question = (
            f"Cancel {printable(what)} ({run.run}{job}), {run.state.value} at step {run.step}?\n"
            f"What was saved stays; hpc-train resume {run_word(run.run_dir)} goes on."
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._cancel(row)

        self.push_screen(CancelQuestion(question), answered)

    @work(thread=True)
    def _cancel(self, row: WatchedRun) -> None:
        try:
            done = _cancelled(row)
        except (HpcTrainError, OSError) as error:
            hint = f"; {error.hint}" if isinstance(error, HpcTrainError) and error.hint else ""
            self.call_from_thread(
                self.notify, f"{error}{hint}", severity="error", timeout=30, markup=False
            )
        else:
            self.call_from_thread(self.notify, done, timeout=15, markup=False)


def _have_room(before: Sequence[int], needed: Sequence[int]) -> bool:
    """Whether the same columns are shown, and all of them are wide enough."""
    pairs = zip(before, needed, strict=False)
    return bool(before) and all(old >= new and bool(old) == bool(new) for old, new in pairs)


def _cancelled(row: WatchedRun) -> str:
    """End it, and say what was done."""
    if isinstance(row.entry, RunDir):
        return cancel_one([row.entry])[1]
    if row.sweep is None:
        job = f"scancel {row.status.job_id} ends its job" if row.status.job_id else ""
        raise HpcTrainError(f"{row.status.run} cannot be read: {row.status.reason}", job)
    return f"cancelling {points_text(len(cancel_sweep(row.entry, row.sweep)))}"
