"""Layers in a plain list, tuple or dict of a model, where torch sees none of their parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from hpc_train.config.class_kind import Located, place_of
from hpc_train.config.method_signatures import methods_of

_HAVE_PARAMETERS = re.compile(
    r"torch\.nn\.(?:\w*Linear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|Transformer\w+|\w+Norm\w*"
    r"|MultiheadAttention|Sequential)\Z"
)

_READ = ("enumerate", "len", "zip", "reversed", "range")


def hidden_layer_notes(class_path: str, found: Located, path: Sequence[str]) -> Iterator[str]:
    """A line for each attribute that __init__ makes a plain list of layers, and hands on nowhere.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    definition = found.definition
    methods = methods_of(definition) if isinstance(definition, ast.ClassDef) else {}
    if found.names is None or "__init__" not in methods or definition is None:
        return
    for node in ast.walk(methods["__init__"]):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, made = node.targets[0], _made(node.value)
        if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
            continue
        layers = [it for it in made if _is_layer(it, found)]
        if not layers or _is_handed_on(target.attr, definition):
            continue
        holder = "nn.ModuleDict" if isinstance(node.value, ast.Dict) else "nn.ModuleList"
        kind = {ast.Tuple: "tuple", ast.Dict: "dict"}.get(type(node.value), "list")
        place = place_of(found, node.lineno, path)
        said = f"{class_path} keeps layers in a plain {kind}, self.{target.attr} ({place})"
        brackets = "{...}" if kind == "dict" else "[...]"
        yield f"{said}, and none of them would be trained: write {holder}({brackets})"


def _made(value: ast.expr) -> list[ast.expr]:
    """What stands in a list, a tuple or a dict that is written there."""
    if isinstance(value, ast.List | ast.Tuple):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    return [value.elt] if isinstance(value, ast.ListComp) else []


def _is_layer(node: ast.expr, found: Located) -> bool:
    if not isinstance(node, ast.Call) or found.names is None:
        return False
    first, _, rest = ast.unparse(node.func).partition(".")
    full = f"{found.names.imports.get(first, '')}.{rest}".rstrip(".")
    return bool(_HAVE_PARAMETERS.match(full))


def _is_handed_on(name: str, definition: ast.AST) -> bool:
    """Whether it is stored anew, registered, or given whole to a call, as nn.Sequential(*it)."""
    text = ast.unparse(definition)
    if any(it in text for it in ("add_module", "register_module", "register_parameter", "setattr")):
        return True
    attribute = rf"self\.{re.escape(name)}\b"
    stored = re.findall(rf"(?:^|[\s;]){attribute}\s*(?:\+|:[^\n=]*)?=(?!=)", text, re.MULTILINE)
    is_given = any(
        re.fullmatch(rf"\*?{attribute}(?:\[[^\]]*\])?(?:\.values\(\))?", ast.unparse(it))
        for call in ast.walk(definition)
        if isinstance(call, ast.Call) and ast.unparse(call.func) not in _READ
        for it in (*call.args, *(keyword.value for keyword in call.keywords))
    )
    return len(stored) != 1 or is_given or ".parameters()" in text.replace("self.parameters()", "")
