"""What to write for an argument of Lightning's Trainer that hpc-train sets itself."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

from hpc_train.config.origins import DEFAULT, Origins
from hpc_train.config.schema import Config
from hpc_train.config.specs import CLASS_PATH

_SHAPE = {
    "devices": ("slurm.gpus_per_node", "--gpus"),
    "num_nodes": ("slurm.nodes", "--nodes"),
}


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
    if name in _SHAPE:
        key = _SHAPE[name][0]
        has = getattr(config.slurm, key.removeprefix("slurm."))
        if _number_of(asked) == has and origins.of(key) != DEFAULT:
            return f"leave it out: {key}: {has} is there"
    if by_number := shape_hint(name, asked, typed=origins.is_typed(f"trainer.{name}")):
        return by_number
    return f"leave it out: {said}" if name == "enable_checkpointing" else said


def shape_hint(name: str, asked: Any, *, typed: bool) -> str:
    """`write nodes: 3 below slurm, or --nodes 3` for a `num_nodes` of 3; so of `devices`. Or empty.

    A key with a point in it is for the command line: in a file it would be refused.
    """
    number = _number_of(asked) if name in _SHAPE else 0
    if not number:
        return ""
    key, option = _SHAPE[name]
    section, _, name = key.partition(".")
    line = f"{key}={number}" if typed else f"{name}: {number} below {section}"
    return f"write {line}, or {option} {number}"


def _number_of(asked: Any) -> int:
    """How many are asked for by their number, or devices by their list; 0 where it is not known."""
    if isinstance(asked, list):
        return len(asked)
    is_number = isinstance(asked, int | str) and not isinstance(asked, bool)
    return int(asked) if is_number and str(asked).isdecimal() else 0


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
