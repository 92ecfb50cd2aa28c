"""Which runs may be removed, and removing them so that one that is interrupted is still a run."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from hpc_train.backends.sweep_jobs import observe_all
from hpc_train.errors import HpcTrainError, NoSuchRunError, UsageError
from hpc_train.plan.states import RunState
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.copies import copied_from
from hpc_train.runs.disk_use import DiskUse, disk_use, entry_id, folders_of
from hpc_train.runs.layout import RunDir
from hpc_train.runs.lock import is_held
from hpc_train.runs.ownership import not_yours
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import PATTERN, folders, matching_runs, refuse_part_of_ids
from hpc_train.runs.run_word import run_word
from hpc_train.runs.sweep_dir import Entry, SweepDir, entries, find_sweep, others_of_name
from hpc_train.runs.this_folder import is_own, of_another_folder

ALIVE_S = 60.0  # a heartbeat this young: the run goes on where this machine does not see it
# Removed last, so that what is left of a run is found by its id, and can be removed again.
_LAST = ("events.jsonl", "sweep.json", "plan.json")
_SEPARATORS = re.compile(r'[/"\s]+')


@dataclass(frozen=True)
class Removal:
    """A run or a sweep that may be removed.

    Attributes:
        step: Of its newest checkpoint; None where it has saved nothing.
    """

    entry: Entry
    state: RunState
    use: DiskUse
    step: int | None


@dataclass(frozen=True)
class Removals:
    """What is to be removed, and what a pattern means as well and is kept: why, by id."""

    removed: tuple[Removal, ...]
    kept: dict[str, str]


def plan_removals(
    words: Sequence[str], runs_dir: Path | None, only: Collection[str] = ()
) -> Removals:
    """Find what the words mean, by one query of Slurm for all; nothing is removed.

    Args:
        only: The states of those that are meant; all where it is empty.

    Raises:
        NoSuchRunError: a word means no run.
        UsageError: a name means several.
        HpcTrainError: one that is named may not be removed.
    """
    where = folders(runs_dir)
    known = entries(where)
    chosen: dict[Path, tuple[Entry, bool]] = {}
    for word in words:
        is_pattern = PATTERN.search(word) is not None
        for entry in _matching(word, known, where) if is_pattern else [_meant(word, where)]:
            chosen.setdefault(entry.path, (entry, is_pattern))
    wanted = {entry_id(entry): entry for entry, _ in chosen.values()}  # a path may have two names
    users = _users(list(wanted), known)
    wanted |= {user: entry for found in users.values() for user, entry in found.items()}
    seen = observe_all(list(wanted.values()), time.time())
    states = {run: status.state for run, status in zip(wanted, seen, strict=True)}
    removed, kept = [], {}
    shared: set[tuple[int, int]] = set()
    for entry, is_pattern in chosen.values():
        run = entry_id(entry)
        if only and states[run].value not in only:
            continue
        using = {user: states[user] for user in users[run]}
        why, fix = _why_kept(entry, states[run], using)
        if why and not is_pattern:
            raise HpcTrainError(f"{entry.name} ({run}) {why}", fix)
        if why:
            kept[run] = why
            continue
        use = disk_use(folders_of(entry), shared)
        removed.append(Removal(entry, states[run], use, _newest_step(entry)))
    return Removals(tuple(removed), kept)


def _matching(word: str, known: Iterable[Entry], where: Sequence[Path]) -> list[Entry]:
    """The runs and sweeps of this folder that a pattern names."""

    def names(entry: Entry) -> tuple[str, ...]:
        run = entry_id(entry)
        return entry.name, run, f"{entry.name}/{run}"

    found = [entry for entry in known if any(fnmatchcase(name, word) for name in names(entry))]
    if not found:
        raise NoSuchRunError(f"no run matches {word!r}", "hpc-train list --all shows all")
    own = [entry for entry in found if is_own(entry, where)]
    if not own:
        raise of_another_folder(word, found)
    return own


def _meant(word: str, where: Sequence[Path]) -> Entry:
    """The run or the sweep that an id, a folder, a job id or the name of one run means."""
    path = Path(os.path.normpath(Path(word).absolute()))  # RUN/.. is no run of the folder's
    begun = (path / "events.jsonl").exists() or (path / "attempts").is_dir()
    is_run = begun and not (path / "sweep.json").exists() and path.parent.parent in where
    if is_run or path.is_symlink():
        return RunDir(path)  # also where its plan is gone
    sweep = find_sweep(word, where, to_change=True)
    found: Sequence[Entry]
    if sweep is None:
        found = runs = matching_runs(word, where, to_change=True, copies=True)
        refuse_part_of_ids(word, runs)
    else:
        found = [sweep, *(others_of_name(sweep, where) if word == sweep.name else [])]
    if word != (name := found[0].name) and Path(word).resolve() == found[0].path.parent:
        one, hint = run_word(found[0].path), f"all of that name by '{name}/*', or --state failed"
        is_known = one == entry_id(found[0])
        hint = f"name one run by its id, {hint}" if is_known else f"name one by its folder: {one}"
        raise NoSuchRunError(f"no run answers to {word!r}, which holds runs of {name}", hint)
    if not _is_ours(found[0], where):
        what = f"{found[0].path} is in no folder of runs, and its plan is none that hpc-train wrote"
        raise NoSuchRunError(what, "name a run: `hpc-train list --all` shows all")
    if len(found) > 1 and len({entry_id(it) for it in found}) == 1:
        paths = ", ".join(str(it.path) for it in found[:5]) + (" ..." if found[5:] else "")
        hint = f"name one by its folder: hpc-train rm {shlex.quote(str(found[-1].path))}"
        raise UsageError(f"{len(found)} runs are named {word}: {paths}", hint)
    if len(found) > 1:
        ids = ", ".join(entry_id(run) for run in found[:5]) + (" ..." if found[5:] else "")
        hint = f"name them by their ids, or all of them by '{word}/*'"
        raise UsageError(f"{len(found)} runs are named {word}: {ids}", hint)
    return found[0]


def _is_ours(entry: Entry, where: Sequence[Path]) -> bool:
    """Whether it lies in a folder of runs, or holds our plan: a plan.json may be anybody's."""
    if entry.path.parent.parent in where or (isinstance(entry, RunDir) and not entry.named):
        return True
    try:
        _ = entry.plan if isinstance(entry, SweepDir) else read_plan(entry)
    except (HpcTrainError, OSError, ValueError):
        return False
    return isinstance(entry, SweepDir) or entry.events.exists()


def _why_kept(entry: Entry, state: RunState, users: dict[str, RunState]) -> tuple[str, str]:
    """Why it may not be removed, as a sentence about it, and the fix; empty where it may."""
    cancel = f"hpc-train cancel {run_word(entry.path)} ends it"
    what = "is a sweep" if isinstance(entry, SweepDir) else "is a run"
    if anothers := not_yours(entry.path, what, "remove"):
        return anothers, ""
    if entry.path.is_symlink():
        return f"is a link to {entry.path.readlink()}, and no link is followed", ""
    if isinstance(entry, RunDir) and not entry.named:
        what = "is a folder that a script of yours has named, and may hold more than the run"
        return what, f"remove it by hand: {entry.path}"
    if Path.cwd().is_relative_to(entry.path.resolve()):
        return "is the folder that you are in", "cd elsewhere"
    if not state.ended:
        return f"is {state.value}", cancel
    for run in map(RunDir, folders_of(entry)):
        if is_held(run.lock) or (state is RunState.LOST and _is_alive(run)):
            return "gives signs of life", cancel
    for user, its in users.items():
        if not its.ended:
            return (
                f"is needed by {user}, which is {its.value}",
                f"hpc-train cancel {user} ends that",
            )
    return "", ""


def _is_alive(run: RunDir) -> bool:
    if copied_from(run):
        return False
    with contextlib.suppress(OSError):
        return time.time() - run.latest_attempt.heartbeat(0).stat().st_mtime < ALIVE_S
    return False


def _users(runs: Sequence[str], known: Sequence[Entry]) -> dict[str, dict[str, Entry]]:
    """Of each run who names it in its plan (weights, copy of the code), or was told to wait."""
    users: dict[str, dict[str, Entry]] = {run: {} for run in runs}
    for entry in known:
        words = set(_SEPARATORS.split(_what_it_names(entry)))
        words |= {word.rpartition("-")[0] for word in words}  # of a sweep its point is named
        for run in words & users.keys() - {entry_id(entry)}:
            users[run][entry_id(entry)] = entry
    return users


def _what_it_names(entry: Entry) -> str:
    text = ""
    with contextlib.suppress(OSError):
        document = entry.plan if isinstance(entry, RunDir) else entry.document
        text = document.read_text(encoding="utf-8", errors="replace")
        events = entry.events.read_text(encoding="utf-8", errors="replace")
        text += "".join(line for line in events.splitlines() if '"waits_for"' in line)
    return text


def _newest_step(entry: Entry) -> int | None:
    steps = []
    for run in map(RunDir, folders_of(entry)):
        with contextlib.suppress(OSError, ValueError):
            saved = any(any(it.iterdir()) for it in (run.checkpoints, run.models) if it.is_dir())
            step = newest_step(run)
            steps += [step] if saved or step else []
    return max(steps, default=None)


def check_ended(planned: Sequence[Removal]) -> None:
    """Look again before the first is removed: a question takes its time, and a large disk, too.

    Raises:
        HpcTrainError: one of them has begun again since `plan_removals`.
    """
    seen = observe_all([item.entry for item in planned], time.time())
    for item, status in zip(planned, seen, strict=True):
        why, fix = _why_kept(item.entry, status.state, {})
        if why:
            run = f"{item.entry.name} ({entry_id(item.entry)})"
            raise HpcTrainError(f"nothing was removed: {run} {why} by now", fix)


def remove(entry: Entry) -> None:
    """Remove all of it, and its name's folder once that is empty.

    Raises:
        HpcTrainError: a part of it cannot be removed; what is left is found by its id.
    """
    try:
        for path in folders_of(entry):
            if is_held(RunDir(path).lock):
                raise HpcTrainError(f"{path.name} has begun again meanwhile, and is kept")
            _remove_folder(path)
    except OSError as error:
        raise HpcTrainError(
            f"{error.filename} cannot be removed: {error.strerror}",
            f"correct that, and again: hpc-train rm {run_word(entry.path)}",
        ) from error
    with contextlib.suppress(OSError):
        entry.path.parent.rmdir()


def _remove_folder(folder: Path) -> None:
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child.name not in _LAST:
            child.unlink()
    for name in _LAST:
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()
