"""What a line of the user's was meant to be, by its text and by what stands in its names."""

from __future__ import annotations

from hpc_train.training.fixed_shape import fixed_shape
from hpc_train.training.foreign_calls import foreign_call
from hpc_train.training.uncalled_methods import uncalled_method


def meant_instead(error: BaseException, *, of_config: bool) -> str:
    """What to write there; empty where that is not sure.

    Args:
        error: What the line raised.
        of_config: Whether a config, and no script, names the loggers.
    """
    other = foreign_call(error, of_config=of_config)
    return other or uncalled_method(error) or fixed_shape(error)
