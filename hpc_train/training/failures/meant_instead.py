"""What a line of the user's was meant to be, by its text and by what stands in its names."""

from __future__ import annotations

from collections.abc import Callable

from hpc_train.training.failures.absent_terminal import absent_terminal
from hpc_train.training.failures.assigned_names import assigned_name
from hpc_train.training.failures.early_trainer import early_trainer
from hpc_train.training.failures.endless_schedule import endless_schedule
from hpc_train.training.failures.fixed_shape import fixed_shape
from hpc_train.training.failures.float_labels import float_labels
from hpc_train.training.failures.foreign_calls import foreign_call
from hpc_train.training.failures.hidden_layers import hidden_layers
from hpc_train.training.failures.joined import joined
from hpc_train.training.failures.late_loader import late_loader
from hpc_train.training.failures.loss_shapes import unfit_loss, unfit_rows
from hpc_train.training.failures.missing_values import missing_values
from hpc_train.training.failures.nested_parts import group_for_tensor
from hpc_train.training.failures.not_modules import not_module
from hpc_train.training.failures.other_state import other_state
from hpc_train.training.failures.out_of_range import out_of_range
from hpc_train.training.failures.pair_for_tensor import pair_for_tensor
from hpc_train.training.failures.row_logits import row_logits
from hpc_train.training.failures.swapped_loss import swapped_loss
from hpc_train.training.failures.taken_apart import taken_apart
from hpc_train.training.failures.time_first import time_first
from hpc_train.training.failures.tuple_for_tensor import tuple_for_tensor
from hpc_train.training.failures.unbatched_sets import unbatched_set
from hpc_train.training.failures.uncalled_methods import uncalled_method
from hpc_train.training.failures.unfit_input import unfit_input
from hpc_train.training.failures.unfit_operands import unfit_operands
from hpc_train.training.failures.wrapped_models import wrapped_attribute

_BY_VALUES = (
    *(absent_terminal, assigned_name, unbatched_set, early_trainer, time_first, swapped_loss),
    *(late_loader, wrapped_attribute, uncalled_method, fixed_shape, taken_apart, missing_values),
    *(out_of_range, unfit_input, hidden_layers, not_module, other_state, row_logits, unfit_rows),
    *(
        pair_for_tensor,
        tuple_for_tensor,
        group_for_tensor,
        joined,
        unfit_operands,
        unfit_loss,
        float_labels,
        endless_schedule,
    ),
)


def meant_instead(error: BaseException, *, of_config: bool) -> str:
    """What to write there; empty where that is not sure.

    Args:
        error: What the line raised.
        of_config: Whether a config, and no script, names the loggers.
    """
    other = foreign_call(error, of_config=of_config)
    return other or next(filter(None, (_read(told, error) for told in _BY_VALUES)), "")


def _read(told: Callable[[BaseException], str], error: BaseException) -> str:
    try:
        return told(error)
    except Exception:  # noqa: BLE001 - a value of the user's may not let itself be read
        return ""
