"""A method that Lightning calls, which a class has under a name that nobody calls."""

from __future__ import annotations

import ast

from hpc_train.config.fit.hook_notes import GONE
from hpc_train.config.python_text.class_kind import Located
from hpc_train.config.python_text.method_signatures import methods_of
from hpc_train.config.words import near_words

CALLED = (
    *("training_step", "configure_optimizers", "train_dataloader"),
    *("val_dataloader", "test_dataloader", "predict_dataloader"),
    *("validation_step", "test_step", "predict_step"),
)
# Methods with names of their own meaning, which none of the above is a slip of.
_OTHERS = (*GONE, "forward", "setup", "teardown", "prepare_data", "optimizer_step")
_MOST_OF_A_STEP = 3  # batch, batch_idx, dataloader_idx


def renamed(method: str, found: Located | None, cutoff: float = 0.6) -> str:
    """What to do where a class has the method that is wanted, under a name that nobody calls.

    Not one that others of the class call, and none that takes other arguments: a helper.
    """
    definition = found.definition if found else None
    if not isinstance(definition, ast.ClassDef):
        return ""
    of_self = {it.attr for it in ast.walk(definition) if isinstance(it, ast.Attribute)}
    free = [
        name
        for name, it in methods_of(definition).items()
        if name not in (*CALLED, *_OTHERS, *of_self)
        and name.startswith("on_") == method.startswith("on_")
        and not it.decorator_list
        and _takes_what_is_given(it, method)
    ]
    near = near_words(method, sorted(free), cutoff=cutoff)
    return f"rename {near[0]} to {method}" if near else ""


def _takes_what_is_given(method: ast.FunctionDef, wanted: str) -> bool:
    """Whether it can be called as Lightning calls the wanted one: steps with a batch."""
    arguments = method.args
    taken = [*arguments.posonlyargs, *arguments.args][1:]
    needed = len(taken) - len(arguments.defaults)
    if None in arguments.kw_defaults:
        return False
    if wanted.endswith("_step"):
        return (bool(taken) or arguments.vararg is not None) and needed <= _MOST_OF_A_STEP
    return needed <= 0
