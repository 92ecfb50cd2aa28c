"""A loss or an activation of torch.nn that a model keeps as the class, and calls with tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.config.python_text.class_kind import locate, place_of
from hpc_train.config.python_text.method_signatures import (
    is_of_lightning_alone,
    methods_of,
    own_nodes,
)

# Which take no size, so that nobody makes one within a step.
_OF_ONE = ("ReLU", "ReLU6", "GELU", "SiLU", "Mish", "ELU", "LeakyReLU", "Sigmoid", "Tanh")
_LOSS = "Loss"
_OF_LOSS = 2  # what a loss is given, at least
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.Match)
_MOST_CALLS = 4  # of methods by each other


def uncalled_class(class_path: str, path: Sequence[str]) -> tuple[str, str]:
    """What a training_step surely calls as if it were made, and what to write; empty without one.

    Args:
        class_path: The model's.
        path: As `sys.path`, with the user's folder first.
    """
    found = locate(class_path, path)
    definition = found.definition if found else None
    if not found or not found.names or not isinstance(definition, ast.ClassDef):
        return "", ""
    if not is_of_lightning_alone(definition) or "setattr" in ast.unparse(definition):
        return "", ""
    kept = _kept(definition, found.names.imports)
    methods = methods_of(definition)
    for call in _calls(methods, "training_step") if kept else ():
        name = ast.unparse(call.func).removeprefix("self.")
        if name in kept and _is_given_tensors(call, kept[name]):
            value = kept[name]
            where = f"self.{name} ({place_of(found, value.lineno, path)})"
            line = place_of(found, call.lineno, path)
            said = f"{class_path} keeps the class {ast.unparse(value)} in {where}, and calls it"
            said += f" with tensors ({line}), which makes a layer of them and computes nothing"
            return said, f"write self.{name} = {ast.unparse(value)}()"
    return "", ""


def _kept(definition: ast.ClassDef, imports: Mapping[str, str]) -> dict[str, ast.expr]:
    """Name in self -> the class of torch.nn, for what is assigned once in the whole class."""
    stored: dict[str, int] = {}
    for node in ast.walk(definition):
        name = _stored(node)
        stored[name] = stored.get(name, 0) + 1
    kept = {}
    for statement in ast.walk(definition):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        name = _stored(statement.targets[0])
        if name and stored[name] == 1 and _is_layer(statement.value, imports):
            kept[name] = statement.value
    return kept


def _stored(node: ast.AST) -> str:
    """`loss` of `self.loss = ...`; empty for what is none."""
    is_stored = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    return node.attr if isinstance(node, ast.Attribute) and is_stored else ""


def _is_layer(value: ast.expr, imports: Mapping[str, str]) -> bool:
    if not isinstance(value, ast.Name | ast.Attribute):
        return False
    first, _, rest = ast.unparse(value).partition(".")
    full = f"{imports.get(first, '')}.{rest}".strip(".")
    last = full.rpartition(".")[2]
    return full.startswith("torch.nn.") and (last.endswith(_LOSS) or last in _OF_ONE)


def _is_given_tensors(call: ast.Call, value: ast.expr) -> bool:
    given = [it for it in call.args if not isinstance(it, ast.Constant | ast.Starred)]
    is_loss = ast.unparse(value).endswith(_LOSS)
    wanted = len(given) >= _OF_LOSS if is_loss else len(given) == 1
    return wanted and len(given) == len(call.args) and not call.keywords


def _calls(
    methods: Mapping[str, ast.FunctionDef], name: str, steps: int = _MOST_CALLS
) -> Iterator[ast.Call]:
    """What a method surely calls, with what the methods of the class that it calls do."""
    method = methods.get(name) if steps else None
    if method is None or method.decorator_list:
        return
    for statement in method.body:
        if isinstance(statement, _COMPOUND):
            if any(isinstance(it, ast.Return | ast.Raise) for it in own_nodes([statement])):
                return
            continue
        nodes = list(own_nodes([statement]))
        made = {id(it.func) for it in nodes if isinstance(it, ast.Call)}
        for call in (it for it in nodes if isinstance(it, ast.Call)):
            if id(call) in made or _is_called_later(statement, method):
                continue
            yield call
            func = ast.unparse(call.func)
            inner = "forward" if func == "self" else func.removeprefix("self.")
            if func.startswith("self") and inner in methods and inner != name:
                yield from _calls(methods, inner, steps - 1)


def _is_called_later(statement: ast.stmt, method: ast.FunctionDef) -> bool:
    """Whether what a line assigns is itself called: `loss = self.loss(weight, None)`."""
    names = {it.id for it in ast.walk(statement) if isinstance(it, ast.Name)}
    called = {it.func for it in ast.walk(method) if isinstance(it, ast.Call)}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    held = {it.id for it in targets if isinstance(it, ast.Name)} & names
    return any(isinstance(it, ast.Name) and it.id in held for it in called)
