"""What a model changes in place though the backward pass needs it: the line, as its text tells it.

torch raises in the backward pass, so that no frame names it. It is not imported here: ranks that
fail before they need it are judged, too.
"""

from __future__ import annotations

import ast
import inspect
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType

from hpc_train.training.failures.frame_text import is_users, shown_file
from hpc_train.training.failures.placed_fix import PlacedFix
from hpc_train.training.failures.stepped_weights import stepped_weights
from hpc_train.training.failures.users_method import lines_of, parsed

_SAID = "modified by an inplace operation"
_OUTPUT = re.compile(r"which is output \d+ of (?P<name>\w+?)(?:Backward\d*)?,")
# Views as which the weights of a layer come in: it is the optimizer's step that changes those.
_OF_WEIGHTS = ("T", "AsStrided", "Transpose")
_NOT_STEPS = ("__init__", "configure_optimizers", "setup", "__setstate__")
_OTHER = ("requires_grad_", "share_memory_", "retain_grad_")
_FUNCTIONS = ("torch", "F", "functional", "torch.nn.functional")
_PLAIN_CALLS = ("len", "int", "float", "dict", "list")
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}
_MOST = 3


@dataclass(frozen=True)
class _Change:
    written: str
    instead: str
    where: str
    made_by: str  # the function of torch's that made what is changed; empty where it is not known

    def __str__(self) -> str:
        file, _, line = self.where.rpartition(":")
        return f"{self.written} ({shown_file(file)}:{line})" if file else self.written


def changed_in_place(error: BaseException, *, of_config: bool = True) -> PlacedFix:
    """Of the backward pass of a model of the user's.

    Args:
        error: What torch raised.
        of_config: Whether a config gives the Trainer its arguments.

    Returns:
        The place is that of the one operation.
    """
    if (stepped := stepped_weights(error)).fix:
        return stepped
    found = _OUTPUT.search(str(error)) if isinstance(error, RuntimeError) else None
    if found is None or _SAID not in str(error) or found["name"] in _OF_WEIGHTS:
        return PlacedFix()
    output = _plain(found["name"])
    changes = [*dict.fromkeys(_changes(error))]
    changes = [it for it in changes if not it.made_by or _plain(it.made_by) == output]
    changes = [it for it in changes if it.made_by] or changes
    if not 0 < len(changes) <= _MOST:
        return PlacedFix()
    key = "trainer.detect_anomaly=true" if of_config else "Trainer(detect_anomaly=True)"
    if len(changes) > 1:
        told = " and ".join(map(str, changes))
        return PlacedFix(fix=f"{told} change in place: {key} names the operation before it")
    (it,) = changes
    sole = "changes it in place" if it.made_by else "is the sole change in place in the text"
    other = "" if it.made_by else f"; where that is not it, {key} names the operation before it"
    fix = f"{it} {sole}: write {it.instead}{other}"
    return PlacedFix(it.where, fix)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _changes(error: BaseException) -> Iterator[_Change]:
    """Of each method of the classes of the user's that the model is made of."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    values = [it for frame in frames for it in frame.f_locals.values()]
    models = {id(it): it for it in values if hasattr(type(it), "training_step")}
    parts = [part for it in models.values() if hasattr(it, "modules") for part in it.modules()]
    for part in parts:
        if getattr(part, "inplace", None) is True:
            written = f"inplace=True of {type(part).__name__}"
            yield _Change(written, "it without inplace=True", "", "")
    for kind in {type(part): None for part in parts}:
        for method in _own_methods(kind):
            lines, first = lines_of(method)
            node = parsed(lines)
            if node is not None:
                yield from _of_method(node, f"{method.__code__.co_filename}:", first)


def _own_methods(kind: type) -> Iterator[FunctionType]:
    """Those of the user's that are called: a base's own where a class has none in its place."""
    told: set[str] = set()
    for base in kind.__mro__:
        for name, value in vars(base).items():
            method = inspect.unwrap(value) if callable(value) else None
            if name in told or name in _NOT_STEPS or not isinstance(method, FunctionType):
                continue
            if is_users(method.__code__.co_filename):
                told |= set() if "super" in method.__code__.co_names else {name}
                yield method


def _of_method(method: ast.FunctionDef, file: str, first: int) -> Iterator[_Change]:
    for node in ast.walk(method):
        target, instead = _target(node)
        if target is not None and _may_be_tensor(target, method):
            made_by = _made_by(target, node, method)
            where = f"{file}{first + getattr(node, 'lineno', 1) - 1}"
            yield _Change(ast.unparse(node), instead, where, made_by)


def _target(node: ast.AST) -> tuple[ast.expr | None, str]:
    """What a statement or a call changes, and what to write in its place."""
    if isinstance(node, ast.AugAssign) and type(node.op) in _SIGNS:
        name, value = ast.unparse(node.target), ast.unparse(node.value)
        if isinstance(node.target, ast.Subscript):
            return node.target.value, _clone(node.target.value)
        is_plain = isinstance(node.value, ast.Name | ast.Constant | ast.Call | ast.Attribute)
        sign = _SIGNS[type(node.op)]
        return node.target, f"{name} = {name} {sign} {value if is_plain else f'({value})'}"
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value, _clone(node.targets[0].value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None, ""
    name, owner = node.func.attr, node.func.value
    if name.endswith("_") and not name.endswith("__") and name not in _OTHER:
        args = ", ".join(map(ast.unparse, (*node.args, *node.keywords)))
        of = ast.unparse(owner)
        return owner, f"{f'{of} = ' if of.isidentifier() else ''}{of}.{name[:-1]}({args})"
    if any(it.arg == "inplace" and ast.unparse(it.value) == "True" for it in node.keywords):
        return (node.args[0], "it without inplace=True") if node.args else (None, "")
    return None, ""


def _clone(tensor: ast.expr) -> str:
    return f"{ast.unparse(tensor)} = {ast.unparse(tensor)}.clone() in front of it"


def _may_be_tensor(target: ast.expr, method: ast.FunctionDef) -> bool:
    """Whether nothing says that it is a number, a list or a dict, or a module of functions."""
    if not isinstance(target, ast.Name):
        return isinstance(target, ast.Call | ast.Subscript) and "init." not in ast.unparse(target)
    loops = [it.target for it in ast.walk(method) if isinstance(it, ast.For)]
    if target.id in {it.id for of in loops for it in ast.walk(of) if isinstance(it, ast.Name)}:
        return False
    values = [value for _, value in _assigned(target.id, method)]
    taken = {it.arg for it in (*method.args.args, *method.args.kwonlyargs)}
    plain = ast.Constant | ast.List | ast.Dict | ast.ListComp | ast.DictComp | ast.Tuple
    is_known = bool(values) or target.id in taken
    return is_known and not any(isinstance(it, plain) or _is_number(it) for it in values)


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in _PLAIN_CALLS


def _assigned(name: str, method: ast.FunctionDef) -> Iterator[tuple[int, ast.expr]]:
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if any(isinstance(it, ast.Name) and it.id == name for it in ast.walk(target)):
                    is_it = isinstance(target, ast.Name)
                    yield node.lineno, node.value if is_it else ast.Name("?")


def _made_by(target: ast.expr, node: ast.AST, method: ast.FunctionDef) -> str:
    """`exp` of `x = torch.exp(x)`, the line above that assigns it; empty of what is not torch's."""
    if not isinstance(target, ast.Name):
        return ""
    before = [it for it in _assigned(target.id, method) if it[0] < getattr(node, "lineno", 0)]
    value = max(before, key=lambda it: it[0])[1] if before else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return ""
    is_torchs = ast.unparse(value.func.value) in _FUNCTIONS
    return value.func.attr if is_torchs else ""
