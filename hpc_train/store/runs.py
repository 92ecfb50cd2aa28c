"""Making run directories, and finding them again by whatever a person remembers of them."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from hpc_train.errors import ConfigError, NoSuchRunError
from hpc_train.store.atomic import write_text
from hpc_train.store.events import EventKind, read_events
from hpc_train.store.folders import RUNS_DIR_VARIABLE, known_folders, run_folders
from hpc_train.store.layout import RunDir
from hpc_train.store.state import state_dir

__all__ = ["RUNS_DIR_VARIABLE", "create_run", "find_run", "iter_runs", "new_run_id", "roots"]


def new_run_id(now: float) -> str:
    """An id that sorts by time and does not collide: `20261121-073012-9f3a`."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    return f"{stamp}-{secrets.token_hex(2)}"


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
    index = state_dir(environ) / "runs-dirs"
    known = [Path(folder) for folder in known_folders(environ)]
    if runs_dir in known:
        return
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
        write_text(index, "".join(f"{root}\n" for root in [*known, runs_dir]), durable=False)
    except OSError:
        return  # a home that is read-only or full costs a convenience, not the submission


def roots(environ: Mapping[str, str], cwd: Path) -> list[Path]:
    """Folders that hold runs: the variable, ./runs, and every one a run was ever made in."""
    return [Path(folder) for folder in run_folders(environ, str(cwd))]


def iter_runs(folders: list[Path]) -> Iterator[RunDir]:
    """All runs below `folders`, oldest first within each name."""
    for root in folders:
        for name in sorted(os.scandir(root), key=lambda entry: entry.name):
            if name.is_dir():
                yield from (RunDir(Path(path)) for path in sorted(_run_paths(name.path)))


def find_run(reference: str, folders: list[Path]) -> RunDir:
    """The run that a run directory, a run id, a name (its newest run) or a job id means.

    Raises:
        NoSuchRunError: when none does.
    """
    path = Path(reference)
    if path.is_dir() and (path / "plan.json").is_file():
        return RunDir(path.resolve())
    runs = list(iter_runs(folders))
    for matches in (
        [run for run in runs if run.run_id == reference],
        [run for run in runs if run.name == reference],
        [run for run in runs if reference.isdigit() and reference in _job_ids(run)],
        [run for run in runs if len(reference) >= 4 and run.run_id.startswith(reference)],
    ):
        if matches:
            return max(matches, key=lambda run: run.plan.stat().st_mtime)
    raise NoSuchRunError(f"no run answers to {reference!r}", _advice(reference, runs, folders))


def _advice(reference: str, runs: list[RunDir], folders: list[Path]) -> str:
    import difflib

    names = sorted({run.name for run in runs})
    near = difflib.get_close_matches(reference, names, n=1)
    where = ", ".join(map(str, folders)) or "./runs (which does not exist)"
    if near:
        return f"did you mean {near[0]!r}? `hpc-train list` shows all"
    return f"looked in {where}; name another place with --runs-dir, or see `hpc-train list`"


def _job_ids(run: RunDir) -> set[str]:
    kinds = (EventKind.SUBMITTED, EventKind.ATTEMPT_STARTED, EventKind.WENT_ON)
    return {str(event.get("job_id")) for event in read_events(run.events) if event.kind in kinds}


def _run_paths(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [e.path for e in entries if e.is_dir() and os.path.isfile(e.path + "/plan.json")]  # noqa: PTH113
