"""The name of a run in the place of a config."""

from __future__ import annotations

from pathlib import Path

from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import find_run, folders
from hpc_train.runs.run_of_file import CONFIGS
from hpc_train.runs.this_folder import means_another_folders


def named_run(path: object) -> RunDir | None:
    """The run that a word means where a config is read: by its name, its id, its job, `latest`.

    None for a file, be it there or not, and for a name that only another folder's run has: a file
    of this folder is meant.
    """
    word = str(path)
    if Path(word).suffix in (*CONFIGS, ".py") or "/" in word or not word or Path(word).exists():
        return None
    where = folders(None)
    try:
        run = find_run(word, where)
    except HpcTrainError:
        return None
    return None if means_another_folders(word, run.name, run, where) else run


def refuse_run_as_config(path: object) -> None:
    """Refuse the name of a run where Python reads a config: its model is meant, or itself.

    Raises:
        ConfigError: with what finds it.
    """
    run = named_run(path)
    if run is None:
        return
    found = f"hpc_train.Run.find({run.run_id!r})"
    raise ConfigError(
        f"{path} is a run, and load() reads a config",
        f"write {found}; its best model: CLASS.load_from_checkpoint({found}.best_model())",
    )
