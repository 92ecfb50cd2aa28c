"""What a model that optimizes by hand lacks, or is not given, told from its text.

"automatic_optimization = False" in `__init__`: training_step then calls `zero_grad`,
`manual_backward` and `step` itself, and the Trainer clips nothing (Lightning's manual, Manual
Optimization; trainer/configuration_validator.py).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from hpc_train.config.python_text.method_signatures import is_of_lightning_alone, methods_of
from hpc_train.config.schema import Config

_OFF = "self.automatic_optimization = False"
# By which something else may step them.
_ELSEWHERE = (".step(", "setattr(", "getattr(", "super().t", "scaler")
_OF_OPTIMIZERS = ("zero_grad", "param_groups", "state_dict", "toggle_model", "sync_grad")


def manual_line(definition: ast.ClassDef) -> int:
    """The line at which `__init__` turns it off, without a condition; 0 where nothing is sure."""
    init = methods_of(definition).get("__init__")
    if init is None or ast.unparse(definition).count("automatic_optimization") != 1:
        return 0
    return next((it.lineno for it in init.body if ast.unparse(it) == _OFF), 0)


def clipped_by_hand(
    definition: ast.ClassDef, trainer: Mapping[str, Any]
) -> tuple[str, int, str] | None:
    """The key of `trainer` that Lightning refuses of such a model, its line, and what to write."""
    value, line = trainer.get("gradient_clip_val"), manual_line(definition)
    is_asked = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    if not line or not is_asked:
        return None
    by = trainer.get("gradient_clip_algorithm")
    more = f", gradient_clip_algorithm={by!r}" if isinstance(by, str) else ""
    call = f"self.clip_gradients(opt, gradient_clip_val={value}{more})"
    left_out = "leave it out" + (", and gradient_clip_algorithm" if more else "")
    return "gradient_clip_val", line, f"{left_out}; write {call} in front of opt.step()"


def split_by_hand(definition: ast.ClassDef, config: Config) -> tuple[int, str] | None:
    """The line of such a model, and what to write, where a rank takes several micro batches a step.

    "Automatic gradient accumulation is not supported for manual optimization", says Lightning.
    """
    micro, line = config.micro_batch_size, manual_line(definition)
    a_rank = config.global_batch_size // max(1, config.slurm.nodes * config.slurm.gpus_per_node)
    if not line or not micro or a_rank <= micro:
        return None
    many = -(-a_rank // micro)
    step = f"if (batch_idx + 1) % {many} == 0: opt.step(); opt.zero_grad()"
    smaller = f"global_batch_size={config.global_batch_size // many}"
    return line, f"leave it out, or write {smaller} and step in training_step: {step}"


def unstepped_by_hand(definition: ast.ClassDef) -> tuple[int, int, list[str]] | None:
    """The lines of the switch and of `self.optimizers()`, and the names that nothing steps.

    None wherever another object may step them.
    """
    line, text = manual_line(definition), ast.unparse(definition)
    step = methods_of(definition).get("training_step")
    if not line or step is None or not is_of_lightning_alone(definition):
        return None
    if any(it in text for it in _ELSEWHERE) or text.count(".optimizers()") != 1:
        return None
    given = [it for it in step.body if isinstance(it, ast.Assign)]
    taken = next((it for it in given if ast.unparse(it.value) == "self.optimizers()"), None)
    if taken is None or "manual_backward" not in text:
        return None
    targets = taken.targets[0]
    held = targets.elts if isinstance(targets, ast.Tuple | ast.List) else [targets]
    names = [it.id for it in held if isinstance(it, ast.Name)]
    if len(names) != len(held) or len(taken.targets) != 1:
        return None
    return None if _is_handed_on(step, {*names}) else (line, taken.lineno, names)


def _is_handed_on(step: ast.FunctionDef, names: set[str]) -> bool:
    """Whether an optimizer is used for more than to clear its gradients."""
    known = {
        id(it.value)
        for it in ast.walk(step)
        if isinstance(it, ast.Attribute) and it.attr in _OF_OPTIMIZERS
    }
    used = [it for it in ast.walk(step) if isinstance(it, ast.Name) and it.id in names]
    return any(isinstance(it.ctx, ast.Load) and id(it) not in known for it in used)
