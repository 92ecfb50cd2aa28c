"""Other runs of the name that a command was given: it means the newest, and that is said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from hpc_train.cli.common import print_notes
from hpc_train.config.words import NEWEST
from hpc_train.runs.events import Event, read_events
from hpc_train.runs.history import has_ended
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import folders
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import Entry, SweepDir, others_of_name, sweep_of
from hpc_train.runs.sweep_status import SweepStatus

_MOST_SHOWN = 3
_MOST_ASKED = 20  # all of them by one query of Slurm


def tell_newest_of_name(word: str, matches: Sequence[RunDir]) -> None:
    """Say which run is changed, and which others have its name.

    Args:
        word: As it was typed.
        matches: What it means, the newest first.
    """
    if told := newest_of_name(word, matches):
        print_notes([told])


def newest_of_name(word: str, matches: Sequence[RunDir]) -> str:
    """Which run a name means, and which others have it; empty where it has no other.

    Args:
        word: As it was typed.
        matches: What it means, the newest first.
    """
    others = _others(word, matches)
    if not others:
        return ""
    run, shown = matches[0], ", ".join(map(_told, _seen(others[:_MOST_SHOWN])))
    more = f" and {len(others) - _MOST_SHOWN} more" if others[_MOST_SHOWN:] else ""
    the = "the other" if len(others) == 1 else "the others"
    named = f"{len(others) + 1} runs are named {run.name}"
    return f"{named}, and this is the newest, {run.run_id}; {the}: {shown}{more}"


def others_that_go_on(word: str, shown: Entry, runs_dir: Path | None) -> str:
    """That older runs and sweeps of the name have not ended either; empty without any.

    Args:
        word: As it was typed; empty where the newest run was meant.
        shown: The run or the sweep that is shown.
        runs_dir: Where runs are looked for.
    """
    if word != shown.name or word in NEWEST:
        return ""
    named = others_of_name(shown, folders(runs_dir))
    beside = [it for it in named if it.path.parent == shown.path.parent]
    # Of a sweep only the history of each point tells that it has ended.
    maybe = [it for it in beside if isinstance(it, SweepDir) or not has_ended(_history(it))]
    open_ones = [it for it in _seen(maybe[:_MOST_ASKED]) if not it.state.ended]
    if not open_ones:
        return ""
    from hpc_train.backends.twins import goes_on

    going = [it for it in open_ones if goes_on(it)][:_MOST_SHOWN]
    if not going:
        return ""
    go = "go" if len(going) > 1 else "goes"
    return f"of this name {' and '.join(map(_told, going))} {go} on as well"


def _others(word: str, matches: Sequence[RunDir]) -> list[RunDir]:
    """Those beside the newest in its folder, where a name has led to them; no points of a sweep."""
    run = matches[0]
    if Path(word).name != run.name or word in NEWEST:
        return []
    beside = (it for it in matches[1:] if it.path.parent == run.path.parent)
    return [it for it in beside if sweep_of(it) is None]


def _history(entry: Entry) -> list[Event]:
    return read_events(entry.events)


def _seen(entries: Sequence[Entry]) -> list[RunStatus | SweepStatus]:
    if not entries:
        return []
    from hpc_train.backends.sweep_jobs import observe_all

    return observe_all(entries, time.time())


def _told(status: RunStatus | SweepStatus) -> str:
    if isinstance(status, SweepStatus):
        return f"{status.sweep} (a sweep of {status.summary})"
    return f"{status.run} ({status.state.value.replace('_', ' ')}, step {status.step})"
