"""Train data that are no loader: what gave them, and what to return in their place."""

from __future__ import annotations

from typing import Any

from torch.utils.data import Dataset

from hpc_train.errors import ConfigError
from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.unbatched_sets import hook_gives
from hpc_train.training.rank_failure import users_line

_HOOK = "train_dataloader"


def check_batches(loader: Any, maker: object) -> None:
    """Refuse what has no batches, with the place of what gave it.

    Args:
        loader: What Lightning has as the train loader.
        maker: The data or the model, whose `train_dataloader` may have given it.

    Raises:
        ConfigError: it is no iterable.
    """
    if hasattr(loader, "__iter__"):
        return
    given = "None" if loader is None else f"a {type(loader).__name__}"
    where = _where(maker)
    if isinstance(loader, Dataset):
        write = f"write DataLoader({_written(loader)}, batch_size=32, shuffle=True)"
        raise ConfigError(f"{where} {given}, a data set without batches", write)
    raise ConfigError(
        f"{where} {given}, which has no batches", "return a DataLoader, or another iterable of them"
    )


def _written(loader: object) -> str:
    return f"{type(loader).__name__}(...)"


def _where(maker: object) -> str:
    """`nets.Data.train_dataloader (nets.py:43) gives`, or the line that called the fit."""
    if given := hook_gives(maker, _HOOK):
        return given
    file, _, line = users_line().rpartition(":")
    return f"the fit ({shown_file(file)}:{line}) is given" if file else "the train data are"
