"""Other runs of the name that a command was given: it means the newest, and that is said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from hpc_train.cli.common import print_notes
from hpc_train.config.words import NEWEST
from hpc_train.runs.events import read_events
from hpc_train.runs.history import has_ended
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import folders, matching_runs
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import sweep_of

_MOST_SHOWN = 3


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


def others_that_go_on(word: str, run: RunDir, runs_dir: Path | None) -> str:
    """That older runs of the name have not ended either; empty without any.

    Args:
        word: As it was typed; empty where the newest run was meant.
        run: The one that is shown.
        runs_dir: Where runs are looked for.
    """
    if word != run.name:
        return ""
    others = _others(word, matching_runs(word, folders(runs_dir)))
    open_ones = [it for it in others if not has_ended(read_events(it.events))]
    going = [it for it in _seen(open_ones[:_MOST_SHOWN]) if not it.state.ended]
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


def _seen(runs: Sequence[RunDir]) -> list[RunStatus]:
    if not runs:
        return []
    from hpc_train.backends.sweep_jobs import observe_all

    return [it for it in observe_all(runs, time.time()) if isinstance(it, RunStatus)]


def _told(status: RunStatus) -> str:
    return f"{status.run} ({status.state.value.replace('_', ' ')}, step {status.step})"
