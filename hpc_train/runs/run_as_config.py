"""The name of a run in the place of a config, in Python."""

from __future__ import annotations

from pathlib import Path

from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.runs.registry import find_run, folders


def refuse_run_as_config(path: object) -> None:
    """Refuse the name of a run where a config is read: its model is meant, or itself.

    Raises:
        ConfigError: with what finds it.
    """
    word = str(path)
    if Path(word).suffix or "/" in word or not word or Path(word).exists():
        return
    try:
        run = find_run(word, folders(None))
    except HpcTrainError:
        return
    found = f"hpc_train.Run.find({run.run_id!r})"
    raise ConfigError(
        f"{word} is a run, and load() reads a config",
        f"write {found}; its best model: CLASS.load_from_checkpoint({found}.best_model())",
    )
