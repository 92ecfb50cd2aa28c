"""The import of Lightning's other package, where one of the two is installed.

A second Lightning beside the first would not do: no Trainer takes the classes of the other one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.modules import find_module, lacks_name

# How a module of one package is called in the other, the longest first.
_RENAMED = (
    *(("lightning.pytorch", "pytorch_lightning"), ("lightning.fabric", "lightning_fabric")),
    *(("lightning", "pytorch_lightning"), ("pytorch_lightning", "lightning.pytorch")),
    ("lightning_fabric", "lightning.fabric"),
)


def import_there(
    module: str, names: tuple[str, ...], file: Path | None, search_path: Sequence[str]
) -> str:
    """The same import of the package that is there, and what else changes; empty without one.

    Args:
        module: Dotted; its package is not installed.
        names: From it; none of `import module`.
        file: Whose import it is.
        search_path: As `sys.path`.
    """
    there = _renamed(module)
    if not there or module.partition(".")[0] == there.partition(".")[0]:
        return ""
    if find_module(there.partition(".")[0], search_path)[0] is None:
        return ""
    because = f"Lightning is installed as {there.partition('.')[0]} here"
    aliases = _aliases(file, module, names)
    if len(names) == 1 and _is_there(whole := _renamed(f"{module}.{names[0]}"), search_path):
        write = f"import {whole} as {aliases[0] or names[0]}"  # `from lightning import pytorch`
    elif not _is_there(there, search_path) or _lacks_one(there, names, search_path):
        return f"{because}: import that one"
    elif names:
        each = (
            f"{it} as {alias}" if alias else it for it, alias in zip(names, aliases, strict=True)
        )
        write = f"from {there} import {', '.join(each)}"
    elif not aliases[0]:
        write = f"import {there}, and {there} for {module} below"
    else:
        write = f"import {there} as {aliases[0]}"
    return f"write {write}: {because}"


def _renamed(module: str) -> str:
    for absent, there in _RENAMED:
        if module == absent or module.startswith(f"{absent}."):
            return there + module.removeprefix(absent)
    return ""


def _is_there(module: str, search_path: Sequence[str]) -> bool:
    found, rest = find_module(module, search_path)
    return found is not None and not rest


def _lacks_one(module: str, names: tuple[str, ...], search_path: Sequence[str]) -> bool:
    found, _ = find_module(module, search_path)
    return found is None or any(lacks_name(found, it, search_path) for it in names if it != "*")


def _aliases(file: Path | None, module: str, names: tuple[str, ...]) -> list[str]:
    """What the file's first such import calls each of them, or the module; empty where as it is."""
    none = [""] * max(1, len(names))
    try:
        tree = ast.parse(file.read_bytes()) if file else ast.Module([], [])
    except (OSError, SyntaxError, ValueError):  # it is told where the file is read
        return none
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == module:
            if tuple(it.name for it in node.names) == names:
                return [it.asname or "" for it in node.names]
        elif isinstance(node, ast.Import) and not names:
            for it in node.names:
                if it.name == module:
                    return [it.asname or ""]
    return none
