"""A sweep's own folder beside the runs of its points, and the run of a point, made when needed.

runs/NAME/SWEEP_ID/     sweep.json config.yaml config-K.yaml job.sbatch environment.json
                        events.jsonl logs/ (of a bench, whose points have jobs of their own:
                        bench.json, and no job.sbatch)
runs/NAME/SWEEP_ID-K/   the run of point K: made by its job, or by a command that names it

What is done to the whole stands in the sweep's `events.jsonl`, from which a point's history begins.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpc_train.errors import NoSuchRunError
from hpc_train.plan.script import render_script
from hpc_train.plan.sweep_plan import SweepPlan, points_text, task_id
from hpc_train.runs.atomic import write_text
from hpc_train.runs.events import Event, EventKind, event_line, read_events
from hpc_train.runs.history import newest_job_id
from hpc_train.runs.layout import InFolder, RunDir, SubmittedFiles
from hpc_train.runs.lock import is_locked
from hpc_train.runs.registry import (
    STAMPED,
    absent_folders,
    all_runs,
    begun,
    create_run,
    find_run,
    folders,
    remove_run,
    unwritable,
)
from hpc_train.runs.run_word import run_word
from hpc_train.runs.this_folder import is_own, of_another_folder, own_first

_POINT = re.compile(r"(.+)-(\d+)\Z")
_AS_SQUEUE = re.compile(r"(?!\d+_\d+\Z)(.+)_(\d+|\[[\d,:%-]+\])\Z")  # has tasks: sw_1, 79_[0-3]
_TASK = re.compile(r"(\d+)_(\d+)\Z")


@dataclass(frozen=True)
class SweepDir(SubmittedFiles):
    """The files of one sweep."""

    path: Path

    # The plan of all points.
    document = InFolder("sweep.json")
    # Of a bench alone, whose points are jobs of their own: `bench_plan.BenchPlan` as JSON.
    bench = InFolder("bench.json")
    # Folder of the tasks' batch logs.
    logs = InFolder("logs")

    @property
    def sweep_id(self) -> str:
        """The sweep's id, which is the folder's name."""
        return self.path.name

    @property
    def name(self) -> str:
        """The name of its runs, which is the parent folder's name."""
        return self.path.parent.name

    def config(self, number: int) -> Path:
        """The resolved config of a point; a rendered script's sweep has none.

        Where only the first point has one, `config.sweep.plain_point` makes the others from it.
        """
        return self.path / ("config.yaml" if number == 0 else f"config-{number}.yaml")

    @cached_property
    def plan(self) -> SweepPlan:
        """What is swept."""
        return SweepPlan.from_json(self.document.read_text(encoding="utf-8"))

    def begun(self) -> tuple[str, float]:
        """When it was submitted, as what sorts: two ids may have the same second."""
        made = self.document.stat().st_mtime
        return begun(self.sweep_id, made), made

    def point(self, number: int) -> RunDir:
        """The run of a point; it need not be there yet."""
        return RunDir(self.path.with_name(f"{self.path.name}-{number}"))


def events_of_point(sweep: SweepDir, number: int, whole: Sequence[Event]) -> list[Event]:
    """The history of a point: its own once it has a run, else what was done to the sweep.

    Args:
        whole: The sweep's events.
    """
    own = read_events(sweep.point(number).events)
    return own or [_of_point(event, number) for event in whole if _means(event, number)]


def newest_jobs(sweep: SweepDir) -> tuple[list[str], dict[str, Sequence[int]]]:
    """The newest job of each point, and of each array of the sweep the points that it has."""
    whole = read_events(sweep.events)
    numbers = range(len(sweep.plan.points))
    sent = [event for event in whole if event.kind is EventKind.SUBMITTED]
    arrays = {str(event.get("job_id")): event.get("points") or numbers for event in sent}
    return [newest_job_id(events_of_point(sweep, k, whole)) for k in numbers], arrays


def sweep_of(run: RunDir) -> SweepDir | None:
    """The sweep of which a run is a point, if it is one."""
    path = _sweep_path(run)
    sweep = SweepDir(path) if path else None
    return sweep if sweep and sweep.document.is_file() else None


def is_being_submitted(entry: RunDir | SweepDir) -> bool:
    """Whether a command submits it right now, so that nobody knows its job yet."""
    if isinstance(entry, SweepDir):
        return is_locked(entry.document)
    sweep = None if entry.plan.exists() else sweep_of(entry)
    return is_locked(sweep.document if sweep else entry.plan)


def make_point(sweep: SweepDir, number: int) -> RunDir:
    """The run of a point, made if it is not there yet; whoever comes second finds the first's.

    Raises:
        HpcTrainError: when there is no such point.
        ConfigError: when the folder cannot be written.
    """
    run = sweep.point(number)
    if run.plan.exists():
        return run
    plan = sweep.plan.plan_of(number)
    events = events_of_point(sweep, number, read_events(sweep.events))
    files = {
        run.events.name: "".join(map(event_line, events)),
        run.script.name: render_script(plan, run_dir=str(run.path)),
        run.plan.name: plan.to_json(),
    }
    if sweep.config(0).exists():
        files[run.config.name] = _config_of(sweep, number)
        files[run.environment.name] = sweep.environment.read_text(encoding="utf-8")
    unseen = f".{run.run_id}.{secrets.token_hex(4)}"
    made = create_run(sweep.path.parent, sweep.path.name, unseen, files)
    try:
        made.path.rename(run.path)
    except OSError:  # it is there by now, and a folder with files is not replaced (rename(2))
        shutil.rmtree(made.path, ignore_errors=True)
        if not run.plan.exists():
            raise
    return run


def _config_of(sweep: SweepDir, number: int) -> str:
    own = sweep.config(number)
    if own.exists():
        return own.read_text(encoding="utf-8")
    # OmegaConf is slow to import, and only here a config is read.
    from hpc_train.config.load import load
    from hpc_train.config.show import to_yaml
    from hpc_train.config.sweeps.sweep import plain_point

    return to_yaml(plain_point(load(sweep.config(0)).config, sweep.plan.points[number].overrides))


def make_sweep(sweep: SweepDir, decided: SweepPlan, files: Mapping[str, str]) -> None:
    """Make the sweep's folder (mode 0700), whole or not at all; one that is there is left alone.

    Raises:
        ConfigError: when it cannot be written.
    """
    parent, absent = sweep.path.parent, absent_folders(sweep.path.parent)
    unseen = parent / f".{sweep.sweep_id}.{secrets.token_hex(4)}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        unseen.mkdir(mode=0o700)
        (unseen / sweep.logs.name).mkdir()
        for name, text in {**files, sweep.document.name: decided.to_json()}.items():
            write_text(unseen / name, text)
        if not sweep.document.exists():
            unseen.rename(sweep.path)
    except OSError as error:
        if not sweep.document.exists():
            remove_run(RunDir(unseen), absent)
            raise unwritable(error, sweep.path) from error
    shutil.rmtree(unseen, ignore_errors=True)


def all_sweeps(folders: Sequence[Path]) -> list[SweepDir]:
    """All sweeps below `folders`, the newest first."""
    found = [SweepDir(path.parent) for folder in folders for path in folder.glob("*/*/sweep.json")]
    return sorted(found, key=SweepDir.begun, reverse=True)


Entry = RunDir | SweepDir


def entry_at(path: Path) -> Entry:
    """The sweep in a folder, else the run there; neither need be there."""
    sweep = SweepDir(path)
    return sweep if sweep.document.exists() else RunDir(path)


def entries(folders: Sequence[Path], *, points: bool = False) -> list[Entry]:
    """All runs that are no points and all sweeps, or each run by itself; the newest first."""
    return with_sweeps(all_runs(folders), [] if points else all_sweeps(folders))


def with_sweeps(runs: Sequence[RunDir], sweeps: Sequence[SweepDir]) -> list[Entry]:
    """Runs and sweeps, the newest first: a sweep once for all of its points.

    Args:
        runs: The newest first.
        sweeps: The newest first.
    """
    if not sweeps:
        return list(runs)
    known = {sweep.path for sweep in sweeps}
    alone = [run for run in runs if _sweep_path(run) not in known]
    return sorted([*alone, *sweeps], key=_begun, reverse=True)


def _begun(entry: Entry) -> tuple[str, float]:
    if isinstance(entry, SweepDir):
        return entry.begun()
    document = entry.plan if entry.named else entry.session
    made = document.stat().st_mtime
    return begun(entry.run_id, made), made


def _sweep_path(run: RunDir) -> Path | None:
    found = _POINT.match(run.run_id)
    return run.path.with_name(found[1]) if found else None


def find_sweep(
    reference: str, folders: Sequence[Path], *, to_change: bool = False
) -> SweepDir | None:
    """The sweep that a folder, a sweep id, the id of its array or a name means, if any does.

    A name means what was submitted last under it, a sweep or a run; of the folder that one is in,
    where that has any.

    Raises:
        NoSuchRunError: `to_change` it, a name alone leads to another folder's.
    """
    path = Path(reference)
    if os.access(path / "sweep.json", os.F_OK):
        return SweepDir(path.resolve())
    if path.name != reference and path.is_dir():  # it may be the folder of a name
        inside = [SweepDir(it.parent) for it in path.resolve().glob("*/sweep.json")]
        newest = max(inside, key=SweepDir.begun, default=None)
        return newest if newest and _is_newest(newest) else None
    named = []
    for sweep in all_sweeps(folders):
        is_array = reference.isdigit() and reference in _arrays(sweep)
        if reference == sweep.sweep_id or is_array:
            return sweep
        if reference == sweep.name and _is_newest(sweep):
            named.append(sweep)
    found = next(iter(own_first(named, folders)), None)
    if found is None or is_own(found, folders):
        return found
    if any(run.name == reference and is_own(run, folders) for run in all_runs(folders)):
        return None  # a run of this folder is meant
    if to_change:
        raise of_another_folder(reference, named)
    return found


def others_of_name(entry: Entry, folders: Sequence[Path]) -> list[Entry]:
    """The other runs and sweeps of this folder that have the name of a run or a sweep."""
    whole = sweep_of(entry) if isinstance(entry, RunDir) else None
    own = {entry.path, whole.path if whole else entry.path}
    named = [it for it in entries(folders) if it.name == entry.name and it.path not in own]
    return [it for it in named if is_own(it, folders)]


def refuse_sweep(reference: str, folders: Sequence[Path]) -> None:
    """Refuse a sweep, by its id or its name, where one run is asked for.

    Nothing tells which of its points is meant by a name; that of a single one is clear.

    Raises:
        NoSuchRunError: with what to name instead.
    """
    whole = find_sweep(reference, folders)
    if whole is None or (reference == whole.name and len(whole.plan.points) == 1):
        return
    best = f"; `hpc-train status {run_word(whole.path)} --best METRIC` tells the best"
    raise NoSuchRunError(
        f"{reference} is a sweep of {points_text(len(whole.plan.points))}, and not one run",
        f"name one of them: {run_word(whole.path)}-0{'' if whole.bench.exists() else best}",
    )


def find_run_or_point(reference: str, runs_dir: Path | str | None) -> RunDir:
    """The point of a sweep that is meant, or the run.

    Raises:
        NoSuchRunError: there is neither.
    """
    where = folders(runs_dir)
    return find_point(reference, where) or find_run(reference, where)


def find_point(reference: str, folders: Sequence[Path]) -> RunDir | None:
    """The run that `SWEEP_ID-K` or the task `ARRAY_K` means, made if it is not there yet.

    Raises:
        NoSuchRunError: when the sweep has no such point, and for the sweep itself.
    """
    refuse_sweep(reference, folders)
    _refuse_guessed_point(reference, folders)
    found = _TASK.match(reference) or _POINT.match(Path(reference).name)
    sweep = _sweep_beside(reference) or find_sweep(found[1], folders) if found else None
    if found is None or sweep is None:
        return None
    number = int(found[2])
    if number >= len(sweep.plan.points):
        last = len(sweep.plan.points) - 1
        raise NoSuchRunError(
            f"the sweep {sweep.sweep_id} has no point {number}", f"it has the points 0 to {last}"
        )
    return make_point(sweep, number)


def _sweep_beside(reference: str) -> SweepDir | None:
    """The sweep of a point that is named by its folder, wherever that lies."""
    if Path(reference).name == reference:
        return None
    return sweep_of(RunDir(Path(reference).resolve()))


def _refuse_guessed_point(reference: str, folders: Sequence[Path]) -> None:
    """Say how a point of a sweep is named, to who writes `sw/1`, `sw:1`, `sw[1]` or `sw_1`."""
    found = re.fullmatch(r"([^/:#\[\]]+)[/:#\[](\d+)\]?", reference) or _AS_SQUEUE.match(reference)
    sweep = find_sweep(found[1], folders) if found and not Path(reference).exists() else None
    if sweep and found and "_" in reference[found.end(1) :]:  # which a name may have as well
        sweep = None if any(it.name == reference for it in entries(folders)) else sweep
    if found and sweep and not found[2].isdigit():
        whole = f"{found[1]} is all of them: write {found[1]}; one of them is {sweep.sweep_id}-0"
        raise NoSuchRunError(f"no run answers to {reference!r}", whole)
    if found and sweep:
        last, number = len(sweep.plan.points) - 1, int(found[2])
        first = f"{sweep.sweep_id}-0"
        known = f"the points of {sweep.name} are {first} to {sweep.sweep_id}-{last}"
        known = known if last else f"the only point of {sweep.name} is {first}"
        write = f"write {sweep.sweep_id}-{number}; " if number <= last else ""
        raise NoSuchRunError(f"no run answers to {reference!r}", f"{write}{known}")


def _arrays(sweep: SweepDir) -> set[str]:
    return {str(event.get("job_id")) for event in read_events(sweep.events)}


def _is_newest(sweep: SweepDir) -> bool:
    """Whether nothing of its name was submitted after it."""
    return not any(_is_after(path, sweep) for path in sweep.path.parent.iterdir())


def _is_after(path: Path, sweep: SweepDir) -> bool:
    """Whether another run or sweep was submitted after this one; by the ids, where they say when.

    A rendered script's is named after its job, and two may have been submitted in one second: there
    the time of their files says. Of another sweep's points that sweep says it.
    """
    own, its = STAMPED.match(sweep.sweep_id), STAMPED.match(path.name)
    if own and its and own[1] != its[1]:
        return its[1] > own[1]
    entry = entry_at(path)
    if path == sweep.path or path.name.startswith("."):
        return False
    if isinstance(entry, RunDir) and sweep_of(entry) is not None:
        return False
    try:
        return _begun(entry) > sweep.begun()
    except OSError:
        return False  # no run's folder


def _means(event: Event, number: int) -> bool:
    if event.kind is EventKind.DEPENDENT:  # what waits for all points waits for none alone
        return False
    points = event.get("points")
    return points is None or number in points


def _of_point(event: Event, number: int) -> Event:
    data = {name: value for name, value in event.data.items() if name != "points"}
    if event.kind is EventKind.SUBMITTED:
        data["job_id"] = task_id(data["job_id"], number)
    return Event(event.time, event.kind, data)
