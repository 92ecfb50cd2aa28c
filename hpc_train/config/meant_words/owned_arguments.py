"""What to write for an argument of Lightning's Trainer that hpc-train sets itself."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.schema import Config
from hpc_train.config.specs import CLASS_PATH


def owned_hint(name: str, asked: Any, said: str, config: Config, origins: Origins) -> str:
    """What to write in its place.

    Args:
        name: Of the argument.
        asked: Its value.
        said: What is said of it, whatever it is.
        config: The whole of it.
        origins: Of its values.
    """
    from hpc_train.config.whole_forms import logger_hint  # on the way to an error

    if name == "accumulate_grad_batches" and (by_hand := _by_hand(asked, config)):
        return by_hand
    if name == "accumulate_grad_batches":
        return _batches(asked, config, origins)
    if name == "logger":
        return logger_hint(asked, typed=origins.is_typed("trainer.logger"))
    if name == "devices" and (number := _number_of(asked)):
        key, there = f"slurm.gpus_per_node: {number}", origins.of("slurm.gpus_per_node")
        if config.slurm.gpus_per_node == number and there != DEFAULT:
            return f"leave it out: {key} is there"
        key = key.replace(": ", "=") if origins.is_typed("trainer.devices") else key
        return f"write {key}, or --gpus {number}"
    return f"leave it out: {said}" if name == "enable_checkpointing" else said


def _number_of(devices: Any) -> int:
    """How many devices are asked for by their number, or by their list; 0 where it is not known."""
    if isinstance(devices, list):
        return len(devices)
    is_number = isinstance(devices, int | str) and not isinstance(devices, bool)
    return int(devices) if is_number and str(devices).isdecimal() else 0


def _by_hand(asked: Any, config: Config) -> str:
    """What to write where the model steps its optimizers itself; empty for another model."""
    from hpc_train.config.fit.manual_optimization import manual_line
    from hpc_train.config.python_text.class_kind import locate  # on the way to an error

    found = locate(str((config.model or {}).get(CLASS_PATH) or ""), [str(Path.cwd()), *sys.path])
    definition = found.definition if found else None
    if not isinstance(definition, ast.ClassDef) or not (line := manual_line(definition)):
        return ""
    each = asked if isinstance(asked, int) and asked > 1 else "N"
    return (
        "leave it out: with automatic_optimization = False (line"
        f" {line}) training_step steps itself: if (batch_idx + 1) % {each} == 0: opt.step();"
        " opt.zero_grad()"
    )


def _batches(asked: Any, config: Config, origins: Origins) -> str:
    """The batch sizes that `accumulate_grad_batches` follows from.

    The global batch is what one step is made of, over all ranks: either it is what was written, and
    the micro batch is a part of it, or what was written is a rank's batch, and it is larger.
    """
    batch, ranks = config.global_batch_size, config.slurm.nodes * config.slurm.gpus_per_node
    is_known = origins.of("global_batch_size") != DEFAULT and batch > 0 and ranks > 0
    if not isinstance(asked, int) or asked < 2 or not is_known:
        return "leave it out: it follows from global_batch_size and micro_batch_size"
    sign = "=" if origins.is_typed("trainer.accumulate_grad_batches") else ": "
    on = f"{asked} x {ranks} rank{'s' if ranks > 1 else ''}"
    whole = f"global_batch_size{sign}{batch * asked * ranks}"
    both = f"{whole} with micro_batch_size{sign}{batch}, where {batch} was one rank's batch"
    micro, rest = divmod(batch, asked * ranks)
    if rest:
        return f"leave it out: {both} ({batch} x {on})"
    written = f"micro_batch_size{sign}{micro}"
    return f"leave it out and write {written} ({batch} = {micro} x {on}); or {both}"
