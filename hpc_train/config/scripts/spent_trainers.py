"""A Trainer of a script that is made once, and fits several models one after another.

A Trainer keeps its count of epochs and steps over its fits, and a fit that begins at max_epochs is
skipped (pytorch_lightning/loops/fit_loop.py, `done` and `skip`): the models after the first are
left as they were made, and what is measured of them is no result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hpc_train.config.scripts.script_trainers import made_trainers

_Loop: TypeAlias = ast.For | ast.While
_LOOPS = (ast.For, ast.While)
# Who writes one of them sets the count back, or lets it go on.
_SET_BACK = ("max_epochs", "fit_loop", "max_steps", "epoch_progress", "current_epoch")
_LONGEST = 100  # characters of a call that is written anew


@dataclass(frozen=True, slots=True)
class _Made:
    """A Trainer that one line makes, and the name it has from then on."""

    name: str
    statement: ast.Assign
    call: ast.Call


def spent_trainers(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """The line of each fit, what is wrong with it, and what to write."""
    every = list(ast.walk(tree))
    stored = [it for it in every if isinstance(it, ast.Attribute) and _is_stored(it)]
    if any(it.attr in _SET_BACK for it in stored):
        return
    for made in _trainers(tree, every):
        if told := _in_a_loop(made, every) or _in_a_row(made, every):
            yield told


def _trainers(tree: ast.Module, every: Sequence[ast.AST]) -> Iterator[_Made]:
    """Those with a name of their own, that surely have an end."""
    calls = set(made_trainers(tree))
    assigned = [it for it in every if isinstance(it, ast.Assign)]
    bound = [it.id for it in every if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)]
    bound += [ast.unparse(it) for it in every if isinstance(it, ast.Attribute) and _is_stored(it)]
    for it in assigned:
        call, name = it.value, ast.unparse(it.targets[0])
        if isinstance(call, ast.Call) and call in calls and bound.count(name) == 1:
            given = {one.arg: ast.unparse(one.value) for one in call.keywords}
            is_by_time = "max_time" in given and not {"max_epochs", "max_steps"} & set(given)
            if None not in given and given.get("max_epochs") != "-1" and not is_by_time:
                yield _Made(name, it, call)


def _in_a_loop(made: _Made, every: Sequence[ast.AST]) -> tuple[int, str, str] | None:
    functions = {it.name: it for it in every if isinstance(it, ast.FunctionDef)}
    for loop in (it for it in every if isinstance(it, _LOOPS)):
        if _ends_at_once(loop):
            continue
        for nodes, names in _regions(loop, functions):
            if made.statement in nodes:
                break
            own = _bound([*nodes, *(ast.walk(loop.target) if isinstance(loop, ast.For) else ())])
            for fit in nodes:
                model = _model_of_fit(fit, made.name, names)
                is_new = isinstance(model, ast.Call) or (model and _first(model) in own)
                if model is None or (not is_new and _is_handed_on(made.name, nodes)):
                    continue
                said = f"fits {'a new model ' if is_new else ''}in a loop with one Trainer"
                inside = f"write line {made.call.lineno} ({made.name} = ...) inside of the loop"
                hint = f"{inside} of line {loop.lineno}{_callbacks(made)}"
                return model.lineno, f"{said} {_counts(made)}", hint
    return None


def _in_a_row(made: _Made, every: Sequence[ast.AST]) -> tuple[int, str, str] | None:
    """Two fits of one block."""
    for body in (getattr(it, "body", None) for it in every):
        fits = []
        for statement in body if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            model = _model_of_fit(value, made.name, {}) if value else None
            fits += [model] if model is not None else []
        if len(fits) > 1:
            anew = f"{made.name} = {ast.unparse(made.call)}"
            again = anew if len(anew) <= _LONGEST else f"line {made.call.lineno} again"
            said = f"fits a second time with the Trainer {_counts(made)}"
            hint = f"write {again} in front of line {fits[1].lineno}{_callbacks(made)}"
            return fits[1].lineno, said, hint
    return None


def _regions(
    loop: _Loop, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[tuple[list[ast.AST], dict[str, str]]]:
    """The nodes of the loop, and those of each function it calls, with what its names stand for."""
    own = [node for it in loop.body for node in ast.walk(it)]
    yield own, {}
    for call in (it for it in own if isinstance(it, ast.Call)):
        if function := functions.get(ast.unparse(call.func)):
            names = [it.arg for it in function.args.args]
            given = {a: ast.unparse(b) for a, b in zip(names, call.args, strict=False)}
            given |= {it.arg: ast.unparse(it.value) for it in call.keywords if it.arg}
            yield [node for it in function.body for node in ast.walk(it)], given


def _ends_at_once(loop: _Loop) -> bool:
    """Whether it goes round again only where something failed."""
    tried = [one for it in loop.body if isinstance(it, ast.Try) for one in (*it.body, *it.orelse)]
    return any(isinstance(it, ast.Break | ast.Return) for it in (*loop.body, *tried))


def _model_of_fit(node: ast.AST, trainer: str, names: Mapping[str, str]) -> ast.expr | None:
    """What that Trainer fits there; None where it is no fit, or goes on from a checkpoint.

    Args:
        trainer: Its name.
        names: What the names of a function stand for.
    """
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(called, ast.Attribute):
        return None
    owner, given = ast.unparse(called.value), {it.arg: it.value for it in node.keywords}
    if called.attr != "fit" or names.get(owner, owner) != trainer or "ckpt_path" in given:
        return None
    return node.args[0] if node.args else given.get("model")


def _counts(made: _Made) -> str:
    given = [it.arg for it in made.call.keywords]
    limit, of = "max_epochs", "epochs"
    if limit not in given and "max_steps" in given:
        limit, of = "max_steps", "steps"
    counts = f"which counts its {of} over all fits: from its {limit} on no fit takes a step"
    return f"of line {made.call.lineno}, {counts}"


def _callbacks(made: _Made) -> str:
    given = {it.arg: it.value for it in made.call.keywords}
    value = given.get("callbacks")
    elements = value.elts if isinstance(value, ast.List) else [value]
    kept = [it for it in elements if isinstance(it, ast.Name)]
    return ", and what makes its callbacks with it" if kept else ""


def _bound(nodes: Sequence[ast.AST]) -> set[str]:
    return {it.id for it in nodes if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}


def _is_handed_on(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether another may set its count back."""
    calls = (it for it in nodes if isinstance(it, ast.Call))
    return any(name in map(ast.unparse, it.args) for it in calls)


def _is_stored(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _first(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
