"""A warmup of many steps that is stepped once an epoch, and so lasts longer than the training.

"lr_lambda: a function which computes a multiplicative factor given an integer parameter epoch"
(torch's manual, LambdaLR): a step of the schedule, which Lightning takes at each epoch's end where
the interval is not "step". Nothing fails: the rate stays at the first steps of the warmup.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.config.fit.epoch_stepped import PlainSchedule, plain_schedules
from hpc_train.config.python_text.method_signatures import methods_of

_OF_STEPS = re.compile(r"step|iter|batch", re.IGNORECASE)
# How many times as many as epochs: a short try of a long training has more than its epochs, too.
_SURE_OF_STEPS, _SURE_OF_ANY = 10, 100
_WARM = {"LinearLR": "total_iters", "ConstantLR": "total_iters"}
_OF_TRANSFORMERS = ("num_warmup_steps", 1)
_AROUND = ("float", "int", "max")


def epoch_warmup(
    definition: ast.ClassDef, arguments: Mapping[str, Any], max_epochs: object
) -> tuple[int, str, str] | None:
    """The line that makes it, what is wrong with it, and what to write; None where all is well.

    Args:
        definition: The model's class.
        arguments: What the config gives it.
        max_epochs: Of the config's trainer.
    """
    if type(max_epochs) is not int or max_epochs < 1:
        return None
    for it in plain_schedules(definition):
        for written, number, is_of_steps in _numbers(it, definition, arguments):
            if number < max_epochs * (_SURE_OF_STEPS if is_of_steps else _SURE_OF_ANY):
                continue
            of = "" if written == str(number) else f" ({written})"
            said = f"makes a {it.kind} with a warmup of {number} steps{of}, and it is stepped once"
            said += f" an epoch, {max_epochs} times in all"
            return it.call.lineno, said, f"write {it.form}"
    return None


def _numbers(
    schedule: PlainSchedule, definition: ast.ClassDef, arguments: Mapping[str, Any]
) -> Iterator[tuple[str, int, bool]]:
    """Numbers that its steps are compared with: as written, the value, whether named for steps."""
    known = _known(schedule.method, definition, arguments)
    call, kind = schedule.call, schedule.kind
    if kind == "LambdaLR":
        yield from _of_lambdas(schedule, known)
        return
    name, place = _OF_TRANSFORMERS if not kind.endswith("LR") else (_WARM.get(kind, ""), 9)
    given = [it.value for it in call.keywords if it.arg == name and name]
    given += call.args[place : place + 1]
    for it in given:
        written = ast.unparse(it)
        if (number := _value(it, known)) is not None:
            yield written, number, bool(_OF_STEPS.search(written) or _OF_STEPS.search(name))


def _of_lambdas(
    schedule: PlainSchedule, known: Mapping[str, int]
) -> Iterator[tuple[str, int, bool]]:
    inner = {it.name: it for it in ast.walk(schedule.method) if isinstance(it, ast.FunctionDef)}
    given = [*schedule.call.args[1:2], *(it.value for it in schedule.call.keywords)]
    given += [one for it in given if isinstance(it, ast.List) for one in it.elts]
    for it in given:
        function = inner.get(it.id) if isinstance(it, ast.Name) else it
        if not isinstance(function, ast.Lambda | ast.FunctionDef) or not function.args.args:
            continue
        own = function.args.args[0].arg
        for step, other in _pairs(function) if "epoch" not in own.lower() else ():
            number, divided = _value(other, known), ast.unparse(_plain(step))
            if number is not None and divided.removesuffix(" + 1") == own:
                written = ast.unparse(_plain(other))
                is_of_steps = bool(_OF_STEPS.search(own) or _OF_STEPS.search(written))
                yield written, number, is_of_steps


def _pairs(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is divided and by what; what is less and than what."""
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield node.left, node.right
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE):
            yield node.left, node.comparators[0]


def _plain(node: ast.expr) -> ast.expr:
    """`warmup` of `float(max(1, warmup))`."""
    while isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in _AROUND:
        node = node.args[-1] if not isinstance(node.args[-1], ast.Constant) else node.args[0]
    return node


def _value(node: ast.expr, known: Mapping[str, int]) -> int | None:
    node = _plain(node)
    if isinstance(node, ast.Constant):
        value = node.value
        return int(value) if type(value) in (int, float) else None  # type: ignore[arg-type]
    return known.get(ast.unparse(node))


def _known(
    method: ast.FunctionDef, definition: ast.ClassDef, arguments: Mapping[str, Any]
) -> dict[str, int]:
    """Numbers by how the method writes them: bound once in it, or an argument of the class."""
    every = list(ast.walk(method))
    stored = [it.id for it in every if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)]
    text, known = ast.unparse(definition), {}
    for name, value in _arguments(definition, arguments):
        for written in (f"self.hparams.{name}", f"self.{name}"):
            is_kept = "save_hyperparameters()" in text and "hparams" in written
            if is_kept or text.count(f"{written} = ") == text.count(f"{written} = {name}\n") == 1:
                known[written] = value
    for it in every:
        target = it.targets[0] if isinstance(it, ast.Assign) else None
        if isinstance(it, ast.Assign) and isinstance(target, ast.Name):
            number = _value(it.value, known)
            if number is not None and stored.count(target.id) == 1:
                known[target.id] = number
    return known


def _arguments(definition: ast.ClassDef, arguments: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Those of `__init__` that are whole numbers, by the config or by default."""
    init = methods_of(definition).get("__init__")
    if init is None:
        return
    own, defaults = init.args.args, init.args.defaults
    pairs = [*zip(own[len(own) - len(defaults) :], defaults, strict=True)]
    pairs += [(a, b) for a, b in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True) if b]
    given = {it.arg: getattr(value, "value", None) for it, value in pairs} | dict(arguments)
    yield from ((name, value) for name, value in given.items() if type(value) is int)
