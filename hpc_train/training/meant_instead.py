"""What a line of the user's was meant to be, by its text and by what stands in its names."""

from __future__ import annotations

from hpc_train.training.foreign_calls import foreign_call


def meant_instead(error: BaseException, *, of_config: bool) -> str:
    """What to write there; empty where that is not sure.

    Args:
        error: What the line raised.
        of_config: Whether a config, and no script, names the loggers.
    """
    return foreign_call(error, of_config=of_config)
