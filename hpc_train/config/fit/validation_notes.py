"""That no epoch is validated, where two numbers of the config say so."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.config.load import LoadedConfig


def validation_notes(loaded: LoadedConfig) -> Iterator[str]:
    """A line where a training ends before its first validation; Lightning says nothing."""
    trainer = loaded.config.trainer
    epochs, every = trainer.get("max_epochs"), trainer.get("check_val_every_n_epoch")
    if isinstance(every, int) and isinstance(epochs, int) and 0 < epochs < every:
        key = "trainer.check_val_every_n_epoch"
        said = f"is {every}, and trainer.max_epochs {epochs}: no epoch is validated"
        yield f"{loaded.origins.prefix(key)}{key} {said}"
