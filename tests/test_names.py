"""One name, one thing: a reader who looks for it finds one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "hpc_train"
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    parsed = ((path, ast.parse(path.read_text(encoding="utf-8"))) for path in FILES)
    return [(path, node) for path, tree in parsed for node in ast.walk(tree)]


def several(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_class_has_the_name_of_another_one() -> None:
    classes = defaultdict(list)
    for path, node in nodes():
        if isinstance(node, ast.ClassDef):
            classes[node.name.strip("_")].append(str(path.relative_to(PACKAGE)))
    assert len(classes) > 100
    assert several(classes) == {}


def test_no_file_has_the_name_of_another_one() -> None:
    files = defaultdict(list)
    for path in FILES:
        if not path.name.startswith("__"):
            files[path.name].append(str(path.relative_to(PACKAGE)))
    assert len(files) > 100
    assert several(files) == {}


def test_what_begins_with_an_underscore_is_its_modules_own() -> None:
    taken = []
    for path, node in nodes():
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        # Those of Lightning itself pass through one module.
        if module.startswith("hpc_train.") and not module.endswith(".private.lightning"):
            names = (alias.name for alias in node.names)
            taken += [f"{path.name}: {name}" for name in names if name.startswith("_")]
    assert taken == []
