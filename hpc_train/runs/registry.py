"""Making run directories, and finding them again by whatever a person remembers of them."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.errors import ConfigError
from hpc_train.errors import NoSuchRunError
from hpc_train.runs.atomic import write_text
from hpc_train.runs.events import read_events
from hpc_train.runs.history import job_ids
from hpc_train.runs.layout import RunDir
from hpc_train.runs.state import state_dir

__all__ = ["all_runs", "create_run", "find_run", "new_run_id", "remember_root", "roots"]

RUNS_DIR_VARIABLE = "HPC_TRAIN_RUNS_DIR"
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
    try:
        run.path.parent.mkdir(parents=True, exist_ok=True)
        run.path.mkdir(mode=0o700)
        for part in (run.attempts, run.checkpoints, run.metrics, run.monitor, run.submitit):
            part.mkdir()
        for name, text in files.items():
            write_text(run.path / name, text)
    except OSError as error:
        raise ConfigError(
            f"runs_dir: cannot write {error.filename or run.path}: {error.strerror}",
            "set runs_dir to a folder on the shared file system where you may write and that has"
            " space: runs_dir=/path/to/scratch/runs",
        ) from error
    return run


def remember_root(environ: Mapping[str, str], runs_dir: Path) -> None:
    """Note `runs_dir`, so that a run is found by name from any folder. Failing is not an error."""
    index = _index(environ)
    known = _known_roots(environ)
    if runs_dir in known:
        return
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
        write_text(index, "".join(f"{root}\n" for root in [*known, runs_dir]), durable=False)
    except OSError:
        return  # a home that is read-only or full costs a convenience, not the submission


def roots(environ: Mapping[str, str], cwd: Path) -> list[Path]:
    """Folders that hold runs: the variable, ./runs, and every one a run was ever made in."""
    named = environ.get(RUNS_DIR_VARIABLE)
    candidates = [Path(named)] if named else [cwd / "runs", *_known_roots(environ)]
    unique = dict.fromkeys(Path(os.path.normpath(cwd / path)) for path in candidates)
    return [path for path in unique if path.is_dir()]


def all_runs(folders: Sequence[Path]) -> list[RunDir]:
    """All runs below `folders`, the newest first.

    A run's id begins with its time; that of a rendered script is named after its job, and counts
    from when its plan was written.
    """
    found = []
    for path in (path for folder in folders for path in folder.glob("*/*")):
        try:
            planned = (path / "plan.json").stat().st_mtime
        except OSError:
            continue  # no run, not readable, or just removed
        stamped = STAMPED.match(path.name)
        found.append((stamped[1] if stamped else _stamp(planned), planned, path))
    return [RunDir(path) for *_, path in sorted(found, reverse=True)]


def find_run(reference: str, folders: Sequence[Path]) -> RunDir:
    """The run that a run directory, a run id, a name (its newest run) or a job id means.

    Raises:
        NoSuchRunError: when none does.
    """
    path = Path(reference)
    if path.is_dir() and (path / "plan.json").is_file():
        return RunDir(path.resolve())
    runs = all_runs(folders)
    for matches in (
        [run for run in runs if run.run_id == reference],
        [run for run in runs if run.name == reference],
        [
            run
            for run in runs
            if reference.isdigit() and reference in job_ids(read_events(run.events))
        ],
        [run for run in runs if len(reference) >= 4 and run.run_id.startswith(reference)],
    ):
        if matches:
            return matches[0]
    raise NoSuchRunError(f"no run answers to {reference!r}", _advice(reference, runs, folders))


def _advice(reference: str, runs: list[RunDir], folders: Sequence[Path]) -> str:
    import difflib

    names = sorted({run.name for run in runs})
    near = difflib.get_close_matches(reference, names, n=1)
    where = ", ".join(map(str, folders)) or "./runs (which does not exist)"
    if near:
        return f"did you mean {near[0]!r}? `hpc-train list` shows all"
    return f"looked in {where}; name another place with --runs-dir, or see `hpc-train list`"


def _stamp(seconds: float) -> str:
    return time.strftime(STAMP, time.localtime(seconds))


def _index(environ: Mapping[str, str]) -> Path:
    return state_dir(environ) / "runs-dirs"


def _known_roots(environ: Mapping[str, str]) -> list[Path]:
    """Every folder in which a run was ever made by this user."""
    try:
        lines = _index(environ).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [Path(line) for line in lines if line]
