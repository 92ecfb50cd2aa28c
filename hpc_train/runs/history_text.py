"""The history of a run as a person reads it: lines of plain text, the same in a pipe."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.plan.hostlist import folded
from hpc_train.plan.states import RunState
from hpc_train.runs.history import AttemptRecord
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat
from hpc_train.runs.status import RunStatus

EARLY = "it was ended before its last step, and counts as complete"

# As click and CSS name them.
STATE_COLORS = {
    RunState.PENDING: "yellow",
    RunState.RUNNING: "blue",
    RunState.COMPLETED: "green",
    RunState.FAILED: "red",
    RunState.TIMED_OUT: "red",
    RunState.LOST: "red",
    RunState.CANCELLED: "magenta",
}
PHASES = {"start": "starting", "validate": "validating", "save": "saving", "end": "ending"}
WIDTH = 200
WHOLE = 1000  # of the one sentence that tells why a run ended: its fix stands last
MOST_LINES = 3
LONG = 120  # of an explanation, from which on it is told once
INDENT = " " * 13
_NO_BREAK = "\N{NO-BREAK SPACE}"


def history_lines(status: RunStatus, now: float, width: int = WIDTH) -> Iterator[str]:
    """When, where, what happened, what was decided and why, steps lost.

    Args:
        width: Of the terminal, for where a run stands; what is to be copied is left to it.
    """
    yield from _first_lines(status, width)
    yield from (f"  {line}" for line in status.moved)
    yield f"  run        {status.run}"
    yield f"  folder     {status.run_dir}"
    yield f"  job        {status.job_id or '-'} ({status.backend or 'not submitted'})"
    if status.last_words:
        yield f"  job log    {RunDir(Path(status.run_dir)).job_log(status.job_id)}"
        for line in (line for line in status.last_words if line not in status.reason):
            yield from textwrap.wrap(f"{INDENT}{line}", WIDTH, subsequent_indent=f"{INDENT}  ")
    if status.start_estimate:
        yield f"  starts     {status.start_estimate} (Slurm's estimate)"
    if status.forecast:
        warning = f"; {status.forecast.warning}" if status.forecast.warning else ""
        yield f"  limit      in {duration(status.forecast.limit_in_s)}{warning}"
    yield from _training_lines(status)
    for attempt in status.attempts:
        yield from _attempt_lines(attempt, status, now)


def _training_lines(status: RunStatus) -> Iterator[str]:
    """What it began with, how far it is, and what has come out of it."""
    if status.weights:
        left_out = ", ".join(status.attempts[0].weights_left_out)
        but = f", without {left_out} (init_leave_out)" if left_out else ""
        yield f"  weights    {'of ' if status.evaluates else 'began with '}{status.weights}{but}"
    if not status.evaluates:
        yield f"  step       {status.step}"
    if status.failed_saves:
        yield shortened(f"  saves      {status.failed_saves}", WIDTH)
    if status.metrics:
        yield shortened(f"  metrics    {metrics_text(status.metrics)}", WIDTH)
    for model in status.best_models:
        yield f"  best       {model.metric_text}  step {model.step}  {model.path}"
    if newest := status.newest_model:
        yield f"  newest     step {newest.step}  {newest.path}"
    for model in status.torn_models:
        metric = f"{model.metric_text}  " if model.monitor else ""
        yield f"  not whole  {metric}step {model.step}  {model.path}: {model.why_torn}"


def _first_lines(status: RunStatus, width: int) -> list[str]:
    """Where it stands: while it trains, no number is parted from its name at a line's end."""
    if status.state is RunState.RUNNING and not status.silence:
        waits = f": {status.waiting}" if status.waiting else ""
        parts = [status.name, status.state.value, *progress_text(status.beat).split("  ")]
        whole = "  ".join(part.replace(" ", _NO_BREAK) for part in parts)
        lines = textwrap.wrap(
            shortened(whole + waits, WHOLE), width, subsequent_indent="  ", break_on_hyphens=False
        )
        return [line.replace(_NO_BREAK, " ") for line in lines]
    meaning = f" ({status.meaning})" if status.meaning else ""
    why = f": {status.reason}{meaning}" if status.reason else ""
    told = shortened(f"{status.name}  {status.state.value}{why}", WHOLE)
    # A command or a path that is broken at a hyphen cannot be copied.
    return textwrap.wrap(
        told, WIDTH, subsequent_indent="  ", drop_whitespace=False, break_on_hyphens=False
    )


def history_html(status: RunStatus, now: float) -> str:
    """The same for a notebook, with the state in its colour."""
    import html

    first, *rest = (html.escape(line) for line in history_lines(status, now))
    state, color = status.state.value, STATE_COLORS[status.state]
    name = html.escape(status.name)
    first = first.removeprefix(f"{name}  {state}")
    head = f'<b>{name}  <span style="color:{color}">{state}</span></b>{first}'
    return "<pre>" + "\n".join([head, *rest]) + "</pre>"


def progress_text(beat: Heartbeat | None) -> str:
    """`step 281/512  epoch 4/8  16 it/s  ETA 14 s  train_loss 0.28`, without what is not known."""
    if beat is None:
        return "no rank has begun yet"
    if beat.phase == "start":
        return PHASES["start"]
    parts = [f"step {_of(beat.step, beat.steps)}"]
    if beat.epoch is not None:
        parts.append(f"epoch {_of(beat.epoch, beat.epochs)}")
    if beat.steps_per_s:
        parts.append(pace_text(beat.steps_per_s))
    if beat.eta_s is not None:
        parts.append(f"ETA {duration(beat.eta_s)}")
    if beat.phase in PHASES:
        parts.append(PHASES[beat.phase])
    return "  ".join([*parts, metrics_text(beat.metrics)]).rstrip()


def _of(count: int, total: int | None) -> str:
    return str(count) if total is None else f"{count}/{total}"


def pace_text(steps_per_s: float | None) -> str:
    """`16 it/s`, or `2.5 s/it` where a step takes longer than a second; empty without a pace."""
    if not steps_per_s:
        return ""
    number, unit = (steps_per_s, "it/s") if steps_per_s >= 1 else (1 / steps_per_s, "s/it")
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"


def metrics_text(metrics: Mapping[str, Any]) -> str:
    """The metrics as `name value` pairs, four digits."""
    pairs = (
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in metrics.items()
    )
    return "  ".join(pairs)


def clock(seconds: float) -> str:
    """Local date and time to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def duration(seconds: float) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _attempt_lines(attempt: AttemptRecord, status: RunStatus, now: float) -> Iterator[str]:
    ended = attempt.ended if attempt.ended is not None else now
    running = attempt.ended is None and not status.state.ended
    how = attempt.outcome.value.replace("_", " ") if attempt.outcome else ""
    yield (
        f"  attempt {attempt.attempt}  {clock(attempt.started)}  "
        f"{'running for' if running else how + ' after' if how else 'left no end,'}"
        f" {duration(ended - attempt.started)}  job {attempt.job_id}"
    )
    yield from _told("nodes", [folded(attempt.nodes)])
    if attempt.unused:
        yield from _told("not used", textwrap.wrap(attempt.unused, WIDTH - len(INDENT)))
    for note in attempt.notes:
        yield from _told("note", textwrap.wrap(note, WIDTH - len(INDENT)))
    if attempt.preflight:
        yield from _told("network", _network(attempt))
    for item in attempt.damaged:
        text = f"step {item.step} is damaged ({item.reason}): goes on from {attempt.first_step}"
        yield from _told("damaged", textwrap.wrap(text, WIDTH - len(INDENT)))
    if what := _untold(attempt, status):
        yield from _told("what", textwrap.wrap(what, WIDTH - len(INDENT)))
    if attempt.ended is not None and not status.evaluates:
        yield (
            f"    steps    {attempt.first_step} to {attempt.last_step}, {attempt.steps_lost} lost"
        )
    if attempt.failed_saves and attempt.failed_saves != status.failed_saves:
        yield from _told("saves", textwrap.wrap(attempt.failed_saves, WIDTH - len(INDENT)))
    if attempt.decision:
        is_early = attempt is status.attempts[-1] and status.early_end and attempt.verb == "fit"
        why = f"{attempt.decision}: {EARLY if is_early else attempt.decision_reason}"
        yield from _told("decided", textwrap.wrap(why, WIDTH - len(INDENT)))
    if attempt.went_on_as and attempt.went_on_as != attempt.job_id:
        yield f"    went on  as job {attempt.went_on_as}"


def _untold(attempt: AttemptRecord, status: RunStatus) -> str:
    """Of what happened, what neither the first line has, whole, nor an attempt before, at length.

    A hang that comes again has other seconds, and the same long explanation.
    """
    head = f"{status.name}  {status.state.value}: {status.reason}"
    above = [status.reason] if len(head) <= WHOLE else []
    if any(attempt.reason in told for told in above):
        return ""
    above += [earlier.reason for earlier in status.attempts if earlier.attempt < attempt.attempt]
    parts = attempt.reason.split("; ")
    new = [part for part in parts if not any(part in told for told in above)]
    if len(attempt.reason) - len("; ".join(new)) < LONG:
        return attempt.reason
    return "; ".join([*new, "else as told above"]) if new else "as told above"


def _network(attempt: AttemptRecord) -> list[str]:
    lines = attempt.preflight.splitlines()
    if len(lines) <= MOST_LINES and max(map(len, lines)) <= WIDTH - len(INDENT):
        return lines
    more = f"all of it: hpc-train preflight RUN --attempt {attempt.attempt}"
    return [*lines[: MOST_LINES - 1], more]


def _told(what: str, lines: Sequence[str]) -> Iterator[str]:
    """At most three lines, none of them longer than a person reads."""
    for number, line in enumerate(lines[:MOST_LINES]):
        label = f"    {what:<9}" if number == 0 else INDENT
        cut = number == MOST_LINES - 1 and len(lines) > MOST_LINES
        yield shortened(f"{label}{line} ..." if cut else f"{label}{line}", WIDTH)


def printable(text: str) -> str:
    """One line that a terminal shows as it is: whatever would move its cursor is a space."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def shortened(text: str, width: int) -> str:
    """The text in at most `width` characters, with a sign that it was cut."""
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."[:width]
