"""Layers in a plain list, tuple or dict of a model, where torch sees none of their parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from hpc_train.config.fit.made_layers import (
    KEPT_ELSEWHERE,
    init_of,
    is_handed_on,
    is_layer,
    listed_layers,
    own_module,
    put_in,
)
from hpc_train.config.python_text.class_kind import Located, place_of

_OTHERS_PARAMETERS = re.compile(r"(?<!self)\.(?:named_)?parameters\(")
_MOST_CLASSES = 50  # that a model is made of


def hidden_layer_notes(
    classes: Iterable[tuple[str, Located]], path: Sequence[str]
) -> Iterator[str]:
    """A line for each attribute that __init__ makes a plain list of layers, and hands on nowhere.

    Args:
        classes: Of a model, as `with_its_modules` gives them.
        path: As `sys.path`, with the user's folder first.
    """
    for name, it in classes:
        yield from _of_class(name, it, path)


def with_its_modules(
    class_path: str, found: Located, path: Sequence[str]
) -> Iterator[tuple[str, Located]]:
    """A class and the user's own modules that it makes, and these make; each with its name."""
    waiting, seen = [(class_path, found)], {(found.module, found.name)}
    for name, it in waiting:  # grows below
        yield name, it
        for part in _own_modules(it, path):
            key = part.module, part.name
            if key not in seen and len(seen) < _MOST_CLASSES:
                seen.add(key)
                waiting.append((".".join(key), part))


def _of_class(class_path: str, found: Located, path: Sequence[str]) -> Iterator[str]:
    init, definition = init_of(found), found.definition
    if init is None or definition is None:
        return
    for line, name, value in _kept(init):
        listed = listed_layers(value, found, path, init)
        put = put_in(f"self.{name}", init)
        layers = [*listed.layers, *(it for it in put if is_layer(it, found, path, init))]
        if not layers or not _is_plain(value, listed.layers) or _is_handed_on(name, definition):
            continue
        place = place_of(found, line, path)
        said = f"{class_path} keeps layers in a plain {listed.kind}, self.{name} ({place})"
        yield f"{said}, and none of them would be trained: write {_instead(value, listed.kind)}"


def _kept(init: ast.FunctionDef) -> Iterator[tuple[int, str, ast.expr]]:
    """What `__init__` keeps: the line, the attribute, the value."""
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign):
            target = node.target
        else:
            continue
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and node.value:
            yield node.lineno, target.attr, node.value


def _is_plain(value: ast.expr, layers: Sequence[ast.expr]) -> bool:
    """Whether it is surely a list, a tuple or a dict of Python's own."""
    kinds = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
    return bool(layers) or isinstance(value, kinds) or _is_empty(value)


def _is_empty(value: ast.expr) -> bool:
    return ast.unparse(value) in ("list()", "dict()")


def _instead(value: ast.expr, kind: str) -> str:
    """What to write: around the name or the call that gives the list, where it is one."""
    holder = "nn.ModuleDict" if kind == "dict" else "nn.ModuleList"
    if isinstance(value, ast.Name | ast.Call) and not _is_empty(value):
        return f"{holder}({ast.unparse(value)})"
    return f"{holder}({'{...}' if kind == 'dict' else '[...]'})"


def _own_modules(found: Located, path: Sequence[str]) -> Iterator[Located]:
    """The user's own classes of modules that a class makes in its `__init__`."""
    init = init_of(found)
    for node in ast.walk(init) if init else ():
        part = own_module(node, found, path) if isinstance(node, ast.Call) else None
        if part:
            yield part


def _is_handed_on(name: str, definition: ast.AST) -> bool:
    """Whether it is stored anew, registered, or given whole to a call, as nn.Sequential(*it)."""
    text = ast.unparse(definition)
    if KEPT_ELSEWHERE.search(text) or _OTHERS_PARAMETERS.search(text):
        return True
    attribute = rf"self\.{re.escape(name)}\b"
    if re.search(rf"{attribute}(?:\[[^\]]*\])?\.(?:requires_grad_|eval)\(", text):
        return True  # kept out of what is trained
    stored = re.findall(rf"(?:^|[\s;]){attribute}\s*(?:\+|:[^\n=]*)?=(?!=)", text, re.MULTILINE)
    return len(stored) != 1 or is_handed_on(f"self.{name}", definition)
