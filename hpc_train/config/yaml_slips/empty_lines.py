"""Arguments of a class whose line in the file was left empty: null, where a number is expected."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.origins import Origins
from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.python_text.default_types import defaults_of

_STRICT = ("int", "float", "range", "len", "torch")
_KINDS = {int: "a number", float: "a number", str: "a text"}


def check_empty(
    class_path: str,
    arguments: Mapping[str, Any],
    key: str,
    origins: Origins,
    search_path: Sequence[str],
) -> None:
    """Refuse `lr:` with nothing behind it, where the class has a number or a text by default.

    A null that is written as one is meant, and so is one that the class looks for.

    Args:
        class_path: Of the class.
        arguments: Its `init_args`.
        key: Of these.
        origins: Of all values.
        search_path: As `sys.path`.

    Raises:
        ConfigError: with the default.
    """
    for name in (it for it, value in arguments.items() if value is None):
        if not _is_empty(origins.of(f"{key}.{name}"), name):
            continue
        found = locate(class_path, search_path)
        default = defaults_of(found).get(name) if found else None
        # False is what null is to an `if`, and an empty text as well
        if found is None or found.names is None or type(default) not in _KINDS or default == "":
            continue
        # A base, or a function that it calls, may be the one that looks for None.
        imports = found.names.imports
        definitions = found.names.definitions.values()
        if not any(_minds_null(it, name) or _hands_on(it, name, imports) for it in definitions):
            message = f"is empty, which is null, and {class_path} has {default!r} there by default"
            fix = f"write {_KINDS[type(default)]}, or leave the line out (if None is meant: null)"
            raise origins.error(f"{key}.{name}", message, fix)


def _is_empty(place: str, name: str) -> bool:
    """Whether nothing stands behind a key in its line of a file."""
    file, _, line = place.rpartition(":")
    if not file or not line.isdecimal():
        return False
    try:
        row = Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    except (OSError, UnicodeDecodeError, IndexError):
        return False
    empty = rf"(?:^|[\s{{,\"'-]){re.escape(name)}[\"']?\s*:\s*(?:#.*|[,}}].*)?$"
    return re.search(empty, row) is not None


def _minds_null(definition: ast.AST, name: str) -> bool:
    """Whether it may do without a value: what it tests, or types as optional, may be None."""
    for node in ast.walk(definition):
        tests: list[ast.expr] = []
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            tests = [node.test]
        elif isinstance(node, ast.BoolOp):
            tests = node.values
        elif isinstance(node, ast.Compare) and any(map(_is_none, node.comparators)):
            tests = [node]
        if any(re.search(rf"\b{name}\b", ast.unparse(it)) for it in tests):
            return True
        if isinstance(node, ast.arg) and node.arg == name and not _is_plain(node.annotation):
            return True
    return False


def _hands_on(definition: ast.AST, name: str, imports: Mapping[str, str]) -> bool:
    """Whether another function is given it, which may look for None; torch's take none of these."""
    for node in ast.walk(definition):
        if not isinstance(node, ast.Call):
            continue
        given = [*node.args, *(it.value for it in node.keywords)]
        first = ast.unparse(node.func).partition(".")[0].partition("(")[0]
        is_strict = first in _STRICT or imports.get(first, first).startswith("torch")
        if not is_strict and any(isinstance(it, ast.Name) and it.id == name for it in given):
            return True
    return False


def _is_plain(annotation: ast.expr | None) -> bool:
    """Whether an annotation, where there is one, allows no None."""
    return annotation is None or ast.unparse(annotation).strip("'\"") in ("int", "float", "str")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
