"""A loss that is given probabilities and takes logits, told from the text of a model or a script.

"The input is expected to contain the unnormalized logits for each class" (torch's manual,
torch.nn.CrossEntropyLoss): `cross_entropy` applies log_softmax itself, so behind a softmax it
learns little, and nothing fails.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.method_signatures import methods_of, own_nodes
from hpc_train.config.python_text.modules import (
    Names,
    full_name,
)

_OF_NN, _FUNCTIONAL = "torch.nn.", "torch.nn.functional."
# By loss: what must not be in front of it, and what it does itself.
_LOSSES = {
    "cross_entropy": ("softmax", "applies log_softmax itself"),
    "CrossEntropyLoss": ("softmax", "applies log_softmax itself"),
    "binary_cross_entropy_with_logits": ("sigmoid", "applies the sigmoid itself"),
    "BCEWithLogitsLoss": ("sigmoid", "applies the sigmoid itself"),
    "nll_loss": ("softmax", "takes log-probabilities"),
    "NLLLoss": ("softmax", "takes log-probabilities"),
}
_MODULES = {"softmax": "Softmax", "sigmoid": "Sigmoid"}
# What hands on what it is given, as far as its values go: wrappers of a model and moves of one.
_WRAPPERS = (
    *("DistributedDataParallel", "DDP", "DataParallel", "FSDP"),
    *("compile", "setup", "prepare"),
)
_MOVES = ("to", "cuda", "cpu", "float", "double", "half", "train", "eval", "squeeze", "contiguous")
_MOST_STEPS = 8
_CONDITIONS = (ast.If, ast.Try, ast.Match, ast.IfExp)
_Branches = tuple[tuple[int, int], ...]  # that a line stands in: of which statement, and which


@dataclass(frozen=True)
class _Scope:
    """Where an expression stands.

    Attributes:
        names: What its module binds.
        file: Of the module, as a person knows it.
        body: The function, or the module, whose names it reads.
        owner: The class whose `self` it has.
        path: As `sys.path`, with the user's folder first.
        module: Its module, as far as that is known.
        steps: How many more times something is looked up.
    """

    names: Names
    file: str
    body: Sequence[ast.AST]
    owner: ast.ClassDef | None
    path: Sequence[str]
    module: Sequence[ast.AST] = ()
    steps: int = _MOST_STEPS

    def full(self, node: ast.expr) -> str:
        """The dotted name behind what is written."""
        return full_name(ast.unparse(node), self.names.imports)


def twice_normalized_of_class(found: Located, path: Sequence[str]) -> Iterator[str]:
    """A line for each such loss in the methods of a class.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    if found.names is None or not isinstance(found.definition, ast.ClassDef):
        return
    file = place_of(found, 0, path).rpartition(":")[0]
    for method in methods_of(found.definition).values():
        scope = _Scope(found.names, file, method.body, found.definition, path)
        yield from _notes(own_nodes(method.body), scope)


def twice_normalized_of_script(
    tree: ast.Module, names: Names, file: str, path: Sequence[str]
) -> Iterator[str]:
    """A line for each such loss in the functions and classes of a script."""
    scope = _Scope(names, file, tree.body, None, path, module=tree.body)
    yield from _notes(own_nodes(tree.body), scope)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            functions, owner = [*methods_of(node).values()], node
        elif isinstance(node, ast.Module):
            functions, owner = [it for it in node.body if isinstance(it, ast.FunctionDef)], None
        else:
            continue
        for function in functions:
            inside = replace(scope, body=function.body, owner=owner)
            yield from _notes(own_nodes(function.body), inside)


def _notes(nodes: Iterator[ast.AST], scope: _Scope) -> Iterator[str]:
    for call in nodes:
        if not isinstance(call, ast.Call) or not (loss := _loss_of(call.func, scope)):
            continue
        given = [it.value for it in call.keywords if it.arg == "input"] or call.args[:1]
        normalizer, does = _LOSSES[loss]
        if not given or not (place := _normalized(given[0], normalizer, scope)):
            continue
        what = f"gives {loss} what a {normalizer} has made ({place})"
        if loss in ("nll_loss", "NLLLoss"):
            hint = "write log_softmax there"
        else:
            hint = f"leave the {normalizer} out there, and apply it where you want probabilities"
        yield f"{scope.file}:{call.lineno} {what}, and it {does}, so that little is learned: {hint}"


def _loss_of(func: ast.expr, scope: _Scope) -> str:
    """The loss that is called: a function of torch's, or a module that was made before."""
    full = scope.full(func)
    if full.startswith(_FUNCTIONAL) and full.removeprefix(_FUNCTIONAL) in _LOSSES:
        return full.removeprefix(_FUNCTIONAL)
    made = [func.func] if isinstance(func, ast.Call) else []
    if isinstance(func, ast.Name | ast.Attribute):
        made = [it.func for it in _values_of(func, scope) if isinstance(it, ast.Call)]
    kinds = {scope.full(it).removeprefix(_OF_NN) for it in made}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return kind if kind in _LOSSES and kind[0].isupper() else ""


def _values_of(node: ast.Name | ast.Attribute, scope: _Scope) -> list[ast.expr]:
    """All that is assigned to a name of the function or the module, or to an attribute of self."""
    text = ast.unparse(node)
    places: list[Sequence[ast.AST]] = [scope.body, scope.module]
    if isinstance(node, ast.Attribute):
        places = [scope.owner.body] if scope.owner and text.startswith("self.") else []
    for place in places:
        stored = [
            it.value
            for statement in place
            for it in ast.walk(statement)
            if isinstance(it, ast.Assign) and text in map(ast.unparse, it.targets)
        ]
        if stored:
            return stored
    return []


def _normalized(node: ast.expr, normalizer: str, scope: _Scope) -> str:
    """Where the softmax stands that surely made this value, as `nets.py:14`; empty if none."""
    if not scope.steps:
        return ""
    below = replace(scope, steps=scope.steps - 1)
    if isinstance(node, ast.Name):
        stored = _last_stored(node, scope.body)
        return _normalized(stored, normalizer, below) if stored is not None else ""
    if not isinstance(node, ast.Call):
        return ""
    full = scope.full(node.func)
    if full in (f"torch.{normalizer}", f"{_FUNCTIONAL}{normalizer}"):
        return f"{scope.file}:{node.lineno}"
    if isinstance(node.func, ast.Attribute):
        is_self = ast.unparse(node.func.value) == "self"
        if node.func.attr == normalizer and not is_self:
            return f"{scope.file}:{node.lineno}"
        if node.func.attr in _MOVES and not is_self:
            return _normalized(node.func.value, normalizer, below)
    return _made_by(node.func, normalizer, below)


def _made_by(module: ast.expr, normalizer: str, scope: _Scope) -> str:
    """The same of what calling a module gives."""
    if not scope.steps:
        return ""
    below = replace(scope, steps=scope.steps - 1)
    if ast.unparse(module) in ("self", "self.forward") and scope.owner is not None:
        return _forward(scope.owner, normalizer, below)
    if isinstance(module, ast.Name | ast.Attribute):
        values = _values_of(module, scope)
        # A model that is moved or wrapped keeps its name: model = model.to(device)
        values = [it for it in values if ast.unparse(module) not in _names_in(it)]
        return _made_by(values[0], normalizer, below) if len(values) == 1 else ""
    if not isinstance(module, ast.Call):
        return ""
    full = scope.full(module.func)
    if full == f"{_OF_NN}{_MODULES[normalizer]}":
        return f"{scope.file}:{module.lineno}"
    if full == f"{_OF_NN}Sequential" and module.args:
        return _made_by(module.args[-1], normalizer, below)
    name = full.rpartition(".")[2]
    if name in _WRAPPERS and module.args:
        return _made_by(module.args[0], normalizer, below)
    if name in _MOVES and isinstance(module.func, ast.Attribute):
        return _made_by(module.func.value, normalizer, below)
    return _forward_of(full, normalizer, below)


def _forward_of(full: str, normalizer: str, scope: _Scope) -> str:
    """The same of a class's forward: one of this module, or of another one that it imports."""
    own = scope.names.definitions.get(full)
    if isinstance(own, ast.ClassDef):
        return _forward(own, normalizer, scope)
    found = locate(full, scope.path) if "." in full and not full.startswith("torch") else None
    if found is None or found.names is None or not isinstance(found.definition, ast.ClassDef):
        return ""
    file = place_of(found, 0, scope.path).rpartition(":")[0]
    inside = replace(scope, names=found.names, file=file, module=())
    return _forward(found.definition, normalizer, inside)


def _forward(owner: ast.ClassDef, normalizer: str, scope: _Scope) -> str:
    method = methods_of(owner).get("forward")
    if method is None or method.decorator_list:
        return ""
    returned = [it.value for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    inside = replace(scope, body=method.body, owner=owner)
    places = [_normalized(it, normalizer, inside) if it is not None else "" for it in returned]
    return places[0] if places and all(places) else ""


def _last_stored(name: ast.Name, body: Sequence[ast.AST]) -> ast.expr | None:
    """What a name surely holds there; None where a condition or a loop may have given another."""
    before: tuple[int, ast.expr | None, _Branches] | None = None
    use: _Branches | None = None
    for node, conditions in _with_conditions(body, ()):
        if node is name:
            use = conditions
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For | ast.With):
            if not _stores(node, name.id) or (node.end_lineno or 0) >= name.lineno:
                continue
            is_plain = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            value = node.value if isinstance(node, ast.Assign) and is_plain else None
            if before is None or node.lineno >= before[0]:
                before = node.lineno, value, conditions
    if before is None or use is None or use[: len(before[2])] != before[2]:
        return None
    return before[1]


def _stores(statement: ast.stmt, name: str) -> bool:
    return any(
        isinstance(it, ast.Name) and it.id == name and isinstance(it.ctx, ast.Store)
        for child in ast.iter_child_nodes(statement)
        if isinstance(child, ast.expr | ast.withitem)
        for it in ast.walk(child)
    )


def _with_conditions(
    body: Sequence[ast.AST], above: _Branches
) -> Iterator[tuple[ast.AST, _Branches]]:
    """Each part of a function, with the branches that it stands in."""
    for node in body:
        yield node, above
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        for number, (_, value) in enumerate(ast.iter_fields(node)):
            children = value if isinstance(value, list) else [value]
            parts = [it for it in children if isinstance(it, ast.AST)]
            branch = (*above, (id(node), number)) if isinstance(node, _CONDITIONS) else above
            yield from _with_conditions(parts, branch)


def _names_in(node: ast.expr) -> set[str]:
    return {ast.unparse(it) for it in ast.walk(node) if isinstance(it, ast.Name | ast.Attribute)}
