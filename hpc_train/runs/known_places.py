"""Which folders of runs a word is looked for in: those of here, and every one ever used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hpc_train.runs.atomic import write_text
from hpc_train.runs.state import state_dir
from hpc_train.runs.this_folder import RunFolders

RUNS_DIR_VARIABLE = "HPC_TRAIN_RUNS_DIR"


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


def roots(environ: Mapping[str, str], cwd: Path) -> RunFolders:
    """Folders that hold runs: the variable, ./runs, and every one a run was ever made in."""
    named = environ.get(RUNS_DIR_VARIABLE)
    candidates = [Path(named)] if named else [cwd / "runs", *_known_roots(environ)]
    unique = dict.fromkeys(Path(os.path.normpath(cwd / path)) for path in candidates)
    return RunFolders((path for path in unique if path.is_dir()), [*unique][:1])


def _index(environ: Mapping[str, str]) -> Path:
    return state_dir(environ) / "runs-dirs"


def _known_roots(environ: Mapping[str, str]) -> list[Path]:
    """Every folder in which a run was ever made by this user."""
    try:
        lines = _index(environ).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [Path(line) for line in lines if line]
