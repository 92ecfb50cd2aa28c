"""Optimizers and schedules as values of a config: what they need is made after it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.python_text.class_kind import Located, derives_from
from hpc_train.errors import ConfigError

# By the class that they derive from: the argument that no config can give, what is said of it, and
# what stands for it in the model.
_NEEDS = {
    "Optimizer": ("params", "the model's parameters, which are", "self.parameters()"),
    "LRScheduler": ("optimizer", "an optimizer, which is", "optimizer"),
}
_TORCHS = "torch.optim."
_MOST_SHOWN = 2
_EXAMPLE = {"Optimizer": "lr: 0.001", "LRScheduler": "step_size: 10"}


def check_made_later(
    class_path: str,
    arguments: Mapping[str, Any],
    required: Sequence[str],
    found: Located,
    path: Sequence[str],
) -> None:
    """Refuse an optimizer or a schedule that would be made of a config's values.

    Args:
        class_path: As the config has it.
        arguments: Its values.
        required: The arguments of the class that have no default.
        found: The class.
        path: As `sys.path`, with the user's folder first.

    Raises:
        ConfigError: the message begins with the class path.
    """
    for kind, (argument, needs, given) in _NEEDS.items():
        is_torchs = found.module.startswith(_TORCHS)
        if argument not in required or (argument in arguments and not is_torchs):
            continue
        if derives_from(found, kind, path) is not True:
            continue
        plain = [it for it in arguments if it != argument and _is_plain(arguments[it])]
        values = [f"{it}: {arguments[it]}" for it in plain[:_MOST_SHOWN]] or [_EXAMPLE[kind]]
        named = "".join(f", {it}=self.{it}" for it in plain[:_MOST_SHOWN])
        raise ConfigError(
            f"{class_path} needs {needs} not there yet when a config's classes are made",
            f"give the model plain values ({', '.join(values)}) in its place, which its __init__"
            f" takes and keeps in self, and make it in configure_optimizers:"
            f" {class_path}({given}{named})",
        )


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | str | bool)
