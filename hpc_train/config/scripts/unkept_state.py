"""What a loop with a Session trains with, and does not give to its `restore`; from the text.

An optimizer, a scheduler, a scaler or an average of weights begins anew after each stop then, and
the training goes on otherwise than an undisturbed one, without a word.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from hpc_train.config.fit.several_optimizers import is_optimizer
from hpc_train.config.python_text.modules import Names, full_name
from hpc_train.config.scripts.session_calls import name_of_session, opened_session

_SCHEDULER = re.compile(r"torch\.optim\.lr_scheduler\.\w+")
_SCALER = re.compile(r"torch\.(?:cuda\.)?amp\.(?:grad_scaler\.)?GradScaler")
_AVERAGE = re.compile(r"torch\.optim\.swa_utils\.AveragedModel")
# By kind, the method by which its state changes.
_CHANGES = {"optimizer": "step", "scheduler": "step", "scaler": "update"}
_CHANGES["average"] = "update_parameters"
_OF_SCALER = ("step", "unscale_")  # what takes an optimizer and keeps nothing of it
_MOMENTUM_AT = 2  # of SGD's arguments


def unkept_state(tree: ast.Module, names: Names) -> Iterator[tuple[int, str, str]]:
    """The line of the call, what is wrong with it, and what to write.

    Said only where the object is made, used and kept from in one function, and nothing else there
    can take it over.
    """
    restore = _only_restore(tree)
    if restore is None:
        return
    scope = _innermost(tree, restore)
    kept = {it.id for it in ast.walk(restore) if isinstance(it, ast.Name)}
    lost = [it for it in _made(scope, names) if it[0] not in kept]
    lost = [(name, kind, of) for name, kind, of in lost if _is_used(name, kind, scope, names)]
    if not lost:
        return
    shown = " and ".join(f"{name} ({of})" for name, _, of in lost)
    count, given = Counter(kind for _, kind, _ in lost), {it.arg for it in restore.keywords}
    added = [
        f"{name if count[kind] > 1 or kind in given else kind}={name}" for name, kind, _ in lost
    ]
    its = "its state begins" if len(lost) == 1 else "their states begin"
    called = ast.unparse(restore)
    yield (
        restore.lineno,
        f"calls {ast.unparse(restore.func)} without {shown}: {its} anew after each stop",
        f"write {called[:-1]}, {', '.join(added)})",
    )


def _only_restore(tree: ast.Module) -> ast.Call | None:
    """The one call of the session's restore, with names alone; None of another."""
    opened = opened_session(tree)
    if opened is None:
        return None
    method = f"{name_of_session(tree, opened)}.restore"
    calls = [it for it in ast.walk(tree) if isinstance(it, ast.Call)]
    found = [it for it in calls if ast.unparse(it.func) == method]
    is_open = any(it.args or any(word.arg is None for word in it.keywords) for it in found)
    return found[0] if len(found) == 1 and found[0].keywords and not is_open else None


def _innermost(tree: ast.Module, call: ast.Call) -> ast.AST:
    """The function in which it stands, or the module."""
    around: ast.AST = tree
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.FunctionDef) and any(it is call for it in ast.walk(node)):
            around = node
    return around


def _made(scope: ast.AST, names: Names) -> Iterator[tuple[str, str, str]]:
    """The name, the kind and the class of each that is made there, and bound once."""
    nodes = list(ast.walk(scope))
    stored = Counter(
        it.id for it in nodes if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
    )
    for node in (it for it in nodes if isinstance(it, ast.Assign) and len(it.targets) == 1):
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
            continue
        called = full_name(ast.unparse(value.func), names.imports)
        kind = _kind(value, called, names)
        if kind and stored[target.id] == 1:
            yield target.id, kind, called.rpartition(".")[2]


def _kind(value: ast.Call, called: str, names: Names) -> str:
    if _AVERAGE.fullmatch(called):
        return "average"
    if is_optimizer(value, names.imports):
        return "optimizer" if not called.endswith(".SGD") or _has_momentum(value) else ""
    if _SCHEDULER.fullmatch(called):
        return "scheduler"
    if _SCALER.fullmatch(called):
        is_off = any(it.arg == "enabled" and _is_constant(it.value, False) for it in value.keywords)
        return "" if is_off else "scaler"
    return ""


def _has_momentum(sgd: ast.Call) -> bool:
    """SGD without it has no state."""
    if len(sgd.args) > _MOMENTUM_AT:
        return True
    given = [it.value for it in sgd.keywords if it.arg in ("momentum", None)]
    return any(not _is_constant(it, 0) for it in given)


def _is_constant(value: ast.expr, wanted: object) -> bool:
    return isinstance(value, ast.Constant) and value.value == wanted


def _is_used(name: str, kind: str, scope: ast.AST, names: Names) -> bool:
    """Whether its state changes, and no other use than the known ones can keep it."""
    known: set[ast.AST] = set()
    changes = False
    for node in ast.walk(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            known.add(node.value)
        if not isinstance(node, ast.Call):
            continue
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        given = [it for it in node.args if isinstance(it, ast.Name) and it.id == name]
        if method == _CHANGES[kind] and ast.unparse(node.func) == f"{name}.{method}":
            changes = True
        if method in _OF_SCALER and kind == "optimizer" and given:
            known.update(given)
            changes |= method == "step"
        if _SCHEDULER.fullmatch(full_name(ast.unparse(node.func), names.imports)):
            known |= {*node.args, *(it.value for it in node.keywords)}
    states = (f"{name}.state_dict", f"{name}.load_state_dict")  # it keeps that by itself
    if any(isinstance(it, ast.Attribute) and ast.unparse(it) in states for it in ast.walk(scope)):
        return False
    uses = [
        it
        for it in ast.walk(scope)
        if isinstance(it, ast.Name) and it.id == name and isinstance(it.ctx, ast.Load)
    ]
    return changes and all(it in known for it in uses)
