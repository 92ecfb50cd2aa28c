"""Layers in a plain list, tuple or dict of a model, where torch sees none of their parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import PathFinder

from hpc_train.config.python_text.class_kind import Located, derives_from, locate, place_of
from hpc_train.config.python_text.method_signatures import methods_of

_HAVE_PARAMETERS = re.compile(
    r"torch\.nn\.(?:\w*Linear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|Transformer\w+|\w+Norm\w*"
    r"|MultiheadAttention|Sequential)\Z"
)

_READ = ("enumerate", "len", "zip", "reversed", "range")
_OWN_PARAMETER = re.compile(r"torch\.nn\.(?:parameter\.)?Parameter\Z")
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
    init, definition = _init_of(found), found.definition
    if init is None or definition is None:
        return
    for node in ast.walk(init):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, made = node.targets[0], _made(node.value)
        if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
            continue
        made = [*made, *(_appended(target.attr, init) if isinstance(node.value, ast.List) else ())]
        layers = [it for it in made if _is_layer(it, found, path)]
        if not layers or _is_handed_on(target.attr, definition):
            continue
        holder = "nn.ModuleDict" if isinstance(node.value, ast.Dict) else "nn.ModuleList"
        kind = {ast.Tuple: "tuple", ast.Dict: "dict"}.get(type(node.value), "list")
        place = place_of(found, node.lineno, path)
        said = f"{class_path} keeps layers in a plain {kind}, self.{target.attr} ({place})"
        brackets = "{...}" if kind == "dict" else "[...]"
        yield f"{said}, and none of them would be trained: write {holder}({brackets})"


def _init_of(found: Located) -> ast.FunctionDef | None:
    """Of a class whose text has one."""
    definition = found.definition
    methods = methods_of(definition) if isinstance(definition, ast.ClassDef) else {}
    return methods.get("__init__")


def _own_modules(found: Located, path: Sequence[str]) -> Iterator[Located]:
    """The user's own classes of modules that a class makes in its `__init__`."""
    init = _init_of(found)
    for node in ast.walk(init) if init else ():
        part = _own_module(node, found, path) if isinstance(node, ast.Call) else None
        if part:
            yield part


def _own_module(call: ast.Call, found: Located, path: Sequence[str]) -> Located | None:
    """The class that is called, where it is a module whose text is the user's."""
    text = ast.unparse(call.func)
    first = text.partition(".")[0]
    names = found.names
    if not re.fullmatch(r"[\w.]+", text) or names is None:
        return None
    root = names.imports.get(first, "").partition(".")[0]  # empty of `from .layers import Conv`
    if first not in names.definitions and first not in names.imports:
        return None
    if root and PathFinder.find_spec(root, [*path]) is None:  # without reading torch
        return None
    part = locate(f"{found.module}.{text}", path)
    is_module = part is not None and derives_from(part, "Module", path) is True
    return part if is_module else None


def _made(value: ast.expr) -> list[ast.expr]:
    """What stands in a list, a tuple or a dict that is written there."""
    if isinstance(value, ast.List | ast.Tuple):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    return [value.elt] if isinstance(value, ast.ListComp) else []


def _appended(name: str, init: ast.FunctionDef) -> list[ast.expr]:
    """What `__init__` appends to the list that it keeps under this name."""
    calls = [it for it in ast.walk(init) if isinstance(it, ast.Call)]
    return [
        it for call in calls if ast.unparse(call.func) == f"self.{name}.append" for it in call.args
    ]


def _is_layer(node: ast.expr, found: Located, path: Sequence[str], steps: int = 4) -> bool:
    """Whether it makes a module that surely has parameters: of torch's, or of the user's own."""
    if not isinstance(node, ast.Call) or found.names is None:
        return False
    full = _full_name(node, found)
    if _HAVE_PARAMETERS.match(full):
        return True
    part = _own_module(node, found, path) if steps else None
    init = _init_of(part) if part else None
    if part is None or init is None:
        return False
    calls = [it for it in ast.walk(init) if isinstance(it, ast.Call)]
    return any(
        _OWN_PARAMETER.match(_full_name(it, part)) or _is_layer(it, part, path, steps - 1)
        for it in calls
    )


def _full_name(call: ast.Call, found: Located) -> str:
    """`torch.nn.Linear` of `nn.Linear(...)`."""
    first, _, rest = ast.unparse(call.func).partition(".")
    imports = found.names.imports if found.names else {}
    return f"{imports.get(first, '')}.{rest}".rstrip(".")


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
