"""Making run directories, and finding them again by whatever a person remembers of them."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import os
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hpc_train.config.words import NEWEST
from hpc_train.errors import ConfigError, NoSuchRunError, UsageError
from hpc_train.runs.atomic import write_text
from hpc_train.runs.copies import ids_of_origins, without_copies
from hpc_train.runs.events import read_events
from hpc_train.runs.folders_meant import (
    as_option,
    beside_the_names,
    folder_of_runs,
    what_it_is,
)
from hpc_train.runs.history import job_ids
from hpc_train.runs.inside_run import inside_run, never_a_run
from hpc_train.runs.known_places import RUNS_DIR_VARIABLE, roots
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ownership import owner_of
from hpc_train.runs.run_of_file import run_of_absent_file, run_of_file
from hpc_train.runs.this_folder import (
    RunFolders,
    means_another_folders,
    newest,
    of_another_folder,
    own_first,
)

PATTERN = re.compile(r"[*?\[]")  # a word with one of them means several runs
STAMP = "%Y%m%d-%H%M%S"
STAMPED = re.compile(r"(\d{8}-\d{6})-")


def new_run_id(now: float) -> str:
    """An id that sorts by time and does not collide: `20261121-073012-9f3a`."""
    return f"{_stamp(now)}-{secrets.token_hex(2)}"


def create_run(runs_dir: Path, folder: str, run_id: str, files: Mapping[str, str]) -> RunDir:
    """Make `runs_dir/folder/run_id` (mode 0700) with `files` by name; nothing is overwritten.

    Raises:
        ConfigError: when the folder cannot be made or filled (no permission, no space).
    """
    run = RunDir(runs_dir / folder / run_id)
    absent = absent_folders(run.path.parent)
    try:
        run.path.parent.mkdir(parents=True, exist_ok=True)
        run.path.mkdir(mode=0o700)
        for part in (run.attempts, run.checkpoints, run.metrics, run.monitor, run.submitit):
            part.mkdir()
        for name, text in files.items():
            write_text(run.path / name, text)
    except OSError as error:
        remove_run(run, absent)
        raise unwritable(error, run.path) from error
    return run


def unwritable(error: OSError, path: Path) -> ConfigError:
    """What a folder of runs that cannot be made or filled means for the user."""
    where = Path(error.filename or path)
    what = f"cannot write {where}: {error.strerror}"
    if where.is_symlink() and not where.exists():
        what = f"{where} is a link to {where.readlink()}, which is not there"
    return ConfigError(
        f"runs_dir: {what}",
        "set runs_dir to a folder on the shared file system where you may write and that has"
        " space: runs_dir=/path/to/scratch/runs",
    )


def check_root(runs_dir: Path) -> None:
    """Refuse a folder of runs that cannot be made, or in which none can be; nothing is written.

    Raises:
        ConfigError: as `create_run` does.
    """
    there = next(path for path in (runs_dir, *runs_dir.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise unwritable(NotADirectoryError(errno.ENOTDIR, "Not a directory", str(there)), there)
    if not os.access(there, os.W_OK | os.X_OK):
        raise unwritable(PermissionError(errno.EACCES, "Permission denied", str(there)), there)


def absent_folders(path: Path) -> list[Path]:
    """Those of `path` and the folders above it that are not there, the innermost first."""
    return [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]


def remove_run(run: RunDir, made: Sequence[Path]) -> None:
    """Take a run away that was never submitted, and of the folders `made` for it the empty ones."""
    shutil.rmtree(run.path, ignore_errors=True)
    for folder in made:
        with contextlib.suppress(OSError):  # another run was made in it meanwhile
            folder.rmdir()


def no_folder() -> str:
    """What is said of the folder of runs where `folders` finds none."""
    named = os.environ.get(RUNS_DIR_VARIABLE)
    which = f"{named} ({RUNS_DIR_VARIABLE})" if named else "./runs"
    return f"{which}, which does not exist"


def to_make_one() -> str:
    """What to type where there is no run: a submission does not heed the variable."""
    named = os.environ.get(RUNS_DIR_VARIABLE)
    if named and not Path(named).is_dir():
        return f"unset {RUNS_DIR_VARIABLE}, or submit with runs_dir={shlex.quote(named)}"
    return "hpc-train submit CFG makes one"


def folders(runs_dir: Path | str | None) -> RunFolders:
    """Where runs are looked for.

    Raises:
        NoSuchRunError: when `runs_dir` is named and is no folder.
    """
    runs_dir = Path(runs_dir) if runs_dir else None
    if runs_dir and not runs_dir.is_dir():
        what = "that is a file" if runs_dir.is_file() else "there is no such folder"
        hint = "name the folder that runs_dir is in the config, or leave --runs-dir out"
        raise NoSuchRunError(f"--runs-dir {runs_dir}: {what}", hint)
    named = os.environ.get(RUNS_DIR_VARIABLE)
    if not runs_dir and named and Path(named).exists() and not Path(named).is_dir():
        message = f"{RUNS_DIR_VARIABLE}={named}: that is no folder"
        raise NoSuchRunError(message, f"unset {RUNS_DIR_VARIABLE}, or name the folder of runs")
    if runs_dir is None:
        return roots(os.environ, Path.cwd())
    within = runs_dir / "runs"
    if within.is_dir() and not all_runs([runs_dir]) and all_runs([within]):
        hint = f"its runs lie in {within}: --runs-dir {shlex.quote(str(within))}"
        raise NoSuchRunError(f"--runs-dir {runs_dir}: there is no run in it", hint)
    _refuse_no_folder_of_runs(runs_dir)
    return RunFolders([runs_dir.absolute()], own=[runs_dir.absolute()])


def _refuse_no_folder_of_runs(runs_dir: Path) -> None:
    """Refuse the folder of a run or of a name, in which no run would be found.

    Raises:
        NoSuchRunError: with the folder of runs around it.
    """
    around = folder_of_runs(runs_dir)
    if around is None or all_runs([runs_dir]) or any(runs_dir.glob("*/*/sweep.json")):
        return
    raise NoSuchRunError(
        f"--runs-dir {runs_dir}: {what_it_is(runs_dir)}, and no folder of runs",
        f"write {as_option(around)}",
    )


def all_runs(folders: Sequence[Path]) -> list[RunDir]:
    """All runs below `folders`, the newest first.

    A run's id begins with its time; that of a rendered script is named after its job, and counts
    from when its plan was written. A copy of one stands behind it.
    """
    runs = [RunDir(path) for folder in folders for path in folder.glob("*/*")]
    runs += [RunDir(path, named=False) for folder in folders for path in folder.glob("*")]
    return _newest_first(runs)


def _newest_first(runs: Sequence[RunDir]) -> list[RunDir]:
    """Those of these folders that are runs."""
    found = []
    for run in runs:
        try:
            made = (run.plan if run.named else run.session).stat().st_mtime
        except OSError:
            continue  # no run, not readable, or just removed
        found.append((made, run))
    origins = ids_of_origins([run for _, run in found])

    def age(item: tuple[float, RunDir]) -> tuple[str, bool, float, Path]:
        made, run = item
        origin = origins.get(run.path)
        return begun(origin or run.run_id, made), origin is None, made, run.path

    return [run for _, run in sorted(found, key=age, reverse=True)]


def newest_run(runs_dir: Path | None, hint: str = "") -> RunDir:
    """The newest run of the folder that one is in, or of all where that has none.

    Args:
        runs_dir: The folder of runs, where it is named.
        hint: What to type where there is none, instead of `to_make_one`.

    Raises:
        NoSuchRunError: there is none anywhere.
    """
    where = folders(runs_dir)
    if found := newest(all_runs(where), where):
        return found
    message, usual = none_in(where)
    raise NoSuchRunError(message, hint or usual)


def none_in(folders: Sequence[Path]) -> tuple[str, str]:
    """What to say, and to type, where these folders have no run that this user can read."""
    where = ", ".join(map(str, folders))
    hidden = [it for it in not_whole(folders, ()) if not os.access(it, os.R_OK | os.X_OK)]
    if not hidden:
        return f"no runs in {where or no_folder()}", to_make_one()
    count = f"{len(hidden)} run{'s' * (len(hidden) > 1)}"
    owners = sorted({owner_of(it) for it in hidden})
    said = f"{count} in {where}, of {' and '.join(owners)}, that you may not read"
    return said, f"ask {owners[0]}; {to_make_one()}"


def not_whole(folders: Sequence[Path], known: Collection[Path]) -> list[Path]:
    """Folders that are named as runs and are neither among the `known` nor of a sweep's files.

    They are half deleted, or not ours to read.
    """
    found = (path for folder in folders for path in folder.glob("*/*"))
    return [path for path in found if STAMPED.match(path.name) and path not in known]


def find_run(reference: str, folders: Sequence[Path]) -> RunDir:
    """The run that a reference means, of several the newest; see `matching_runs`."""
    return matching_runs(reference, folders)[0]


def matching_runs(
    reference: str, folders: Sequence[Path], *, to_change: bool = False, copies: bool = False
) -> list[RunDir]:
    """The runs that a run directory, a run id, a name, a job id or `latest` means, newest first.

    A name means runs of the folder that one is in; only where it has none, those of other folders.

    Args:
        to_change: Something is to be done to the run: another folder's is then meant by its id.
        copies: Also those that are copies of one that is meant.

    Raises:
        NoSuchRunError: when there is none, or a name alone leads to another folder's.
    """
    path = Path(reference)
    for run in (RunDir(path.resolve()), RunDir(path.resolve(), named=False)):
        if os.access(run.plan if run.named else run.session, os.F_OK):
            return [run]
    if path.name != reference and (inside := _in_folder_of_name(path)):
        return inside
    runs = all_runs(folders)
    if matches := _answering(reference, runs, folders):
        matches = matches if copies else without_copies(matches)
        run = matches[0]
        if to_change and means_another_folders(reference, run.name, run, folders):
            raise of_another_folder(reference, matches)
        return matches
    if inside := _in_folder_of_name(path):
        return inside
    if closed := _closed(reference, folders):
        hint = f"ask {owner_of(closed)}, whose it is: a run is its owner's alone (mode 0700)"
        raise NoSuchRunError(f"{closed}: you may not read that", hint)
    raise NoSuchRunError(f"no run answers to {reference!r}", _advice(reference, runs, folders))


def _in_folder_of_name(path: Path) -> list[RunDir]:
    """The runs in the folder of a name, wherever it lies; the newest first."""
    folder = path.resolve()
    return _newest_first([RunDir(it) for it in folder.glob("*")]) if folder.is_dir() else []


_LEAST_PART = 4  # letters


def is_part_of_id(reference: str, run: RunDir) -> bool:
    """Whether it is the beginning of the run's id, or its last word; others may have it as well."""
    if len(reference) < _LEAST_PART or reference in (run.run_id, run.name):
        return False
    return run.run_id.startswith(reference) or run.run_id.endswith(f"-{reference}")


def refuse_part_of_ids(reference: str, found: Sequence[RunDir]) -> None:
    """Refuse to change what a part of an id means where that is more than one run.

    Raises:
        UsageError: with their ids.
    """
    if found[1:] and is_part_of_id(reference, found[0]):
        ids = ", ".join(run.run_id for run in found[:5]) + (" ..." if found[5:] else "")
        what = f"{len(found)} runs have ids with {reference}: {ids}"
        raise UsageError(what, "type the whole id of the one that is meant")


def _answering(reference: str, runs: list[RunDir], folders: Sequence[Path]) -> list[RunDir]:
    """By the first way in which a reference means any of these runs."""
    named = own_first([run for run in runs if run.name == reference], folders)
    is_newest = reference in NEWEST
    own = [run for run in named if not means_another_folders(reference, reference, run, folders)]
    latest = newest(runs, folders) if is_newest else None
    for matches in (
        [run for run in runs if run.run_id == reference],
        own if is_newest else named,
        _of_job(reference, runs),
        own_first(
            [run for run in runs if is_part_of_id(reference, run)],
            folders,
        ),
        [latest] if latest else [],
    ):
        if matches:
            return matches
    return []


def _of_job(reference: str, runs: Sequence[RunDir]) -> list[RunDir]:
    """Those that a job has carried; of an array's number those of its tasks, `ARRAY_TASK`."""
    if not re.fullmatch(r"\d+(_\d+)?", reference):
        return []
    known = ((run, job_ids(read_events(run.events))) for run in runs)
    return [
        run for run, jobs in known if any(reference in (job, job.partition("_")[0]) for job in jobs)
    ]


def _closed(reference: str, folders: Sequence[Path]) -> Path | None:
    """What answers to the reference and may not be looked into."""
    name = glob.escape(os.path.normpath(reference.strip("/")))
    patterns = (name, f"{name}/*", f"*/{name}") if name[:1] != "." else ()
    found = [path for folder in folders for pattern in patterns for path in folder.glob(pattern)]
    readable = os.R_OK | os.X_OK
    for path in (Path(reference), *found):
        if os.access(path, os.F_OK) and not path.is_file() and not os.access(path, readable):
            return path
    return None


def _advice(reference: str, runs: list[RunDir], folders: Sequence[Path]) -> str:
    import difflib

    if of_run := inside_run(reference):
        return of_run
    if any(Path(reference).resolve() == folder.resolve() for folder in folders):
        return "that is a folder of runs: name a run in it; `hpc-train list` shows them"
    within = all_runs([Path(reference).absolute()])
    if any(STAMPED.match(it.run_id) and it.events.exists() for it in within):
        shown = f"hpc-train list --runs-dir {shlex.quote(reference)}"
        return f"that is a folder of runs: name the folder of one; `{shown}` shows them"
    if known := never_a_run(reference) or beside_the_names(reference, folders):
        return known
    if Path(reference).is_file():
        return run_of_file(Path(reference), runs, folders)
    if re.search(r"[,\s]", reference.strip()):
        return "one RUN at a time, by its name or id; `hpc-train list` shows all"
    names = sorted({run.name for run in runs})
    if PATTERN.search(reference) and (matching := fnmatch.filter(names, reference)):
        return f"one at a time: {', '.join(matching[:6])}"
    near = difflib.get_close_matches(reference, names, n=1)
    more = f" and {len(folders) - 3} more" if len(folders) > 3 else ""
    where = ", ".join(map(str, folders[:3])) + more or no_folder()
    if near:
        return f"did you mean {near[0]!r}? `hpc-train list` shows all"
    if log := run_of_absent_file(Path(reference)):
        return log
    other = f"name another place with --runs-dir or {RUNS_DIR_VARIABLE}"
    return f"looked in {where}; {other}, or see `hpc-train list`"


def begun(run_id: str, made: float) -> str:
    """When a run or a sweep was submitted, as text that sorts: its id says, or its files' time."""
    stamped = STAMPED.match(run_id)
    return stamped[1] if stamped else _stamp(made)


def _stamp(seconds: float) -> str:
    return time.strftime(STAMP, time.localtime(seconds))
