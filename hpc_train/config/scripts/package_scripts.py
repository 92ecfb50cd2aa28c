"""A file of a package that is started by itself: its relative imports fail, and what to write.

A file that is started is `__main__`, which is in no package (Python's tutorial, 6.4.2,
"Intra-package References"); `python -m package.module` had the package.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree

_RELATIVE = re.compile(rb"^\s*from\s+\.", re.M)
_MOST_SHOWN = 3


def how_to_import(file: Path, *, is_script: bool) -> str:
    """What leaves the package as it is; empty where the folder is none.

    Args:
        file: With relative imports.
        is_script: Whether it is started, and not imported by another.
    """
    tree = script_tree(file)
    imports = sorted(_relative_imports(tree), key=lambda it: it.lineno) if tree else []
    levels = max((it.level for it in imports), default=0)
    package = _package_of(file, levels)
    if not levels or not package:
        return ""
    root, dotted = file.parents[len(package)], ".".join(package)
    path = f"env.variables.PYTHONPATH={shlex.quote(str(root))}"
    if not is_script:
        name = f"{dotted}.{file.stem}"
        return f"write {name} for {file.stem} where it is imported, and add {path}"
    written = [f"{_absolute(it, package)} (line {it.lineno})" for it in imports]
    more = ", and the others alike" if len(written) > _MOST_SHOWN else ""
    start = next(it for it in _names_for(file.stem) if not (root / it).exists())
    runs = f'import runpy; runpy.run_module("{dotted}.{file.stem}", run_name="__main__")'
    return (
        f"write {', '.join(written[:_MOST_SHOWN])}{more}, and add {path}; or submit a file {start}"
        f" beside {package[0]}/, of one line: {runs}"
    )


def _relative_imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    return (it for it in ast.walk(tree) if isinstance(it, ast.ImportFrom) and it.level)


def _package_of(file: Path, levels: int) -> list[str]:
    """The names of the packages around a file, the outermost first; empty where there is none."""
    folder = file.resolve().parent
    beside = (it for it in folder.glob("*.py") if it.name != file.name)
    is_package = (folder / "__init__.py").is_file() or any(map(_is_in_package, beside))
    names: list[str] = []
    while is_package and (len(names) < levels or (folder / "__init__.py").is_file()):
        if not folder.name.isidentifier():
            return []
        names.insert(0, folder.name)
        folder = folder.parent
    return names


def _is_in_package(file: Path) -> bool:
    try:
        return _RELATIVE.search(file.read_bytes()) is not None
    except OSError:
        return False


def _absolute(node: ast.ImportFrom, package: list[str]) -> str:
    """`from mypkg.model import build` of `from .model import build`."""
    above = package[: len(package) - node.level + 1]
    module = ".".join([*above, *filter(None, [node.module])])
    return ast.unparse(ast.ImportFrom(module, node.names, 0))


def _names_for(stem: str) -> Iterator[str]:
    """Names for a file that starts a module."""
    yield f"run_{stem}.py"
    number = 2
    while True:
        yield f"run_{stem}_{number}.py"
        number += 1
