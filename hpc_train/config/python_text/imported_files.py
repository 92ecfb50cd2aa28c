"""Which files of the user's own the ranks import: followed as text, also into functions."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.modules import FoundModule, absolute_name, find_module
from hpc_train.config.schema import Config
from hpc_train.config.specs import read_object
from hpc_train.config.validate import objects_of, search_path_of

_MOST_FILES = 1000  # a millisecond each
# What imports modules by names that only a run of the code tells, or changes where they are found.
_BY_NAME = frozenset(
    {
        *("import_module", "__import__", "runpy", "run_path", "run_module"),
        *("spec_from_file_location", "sys.path", "locate", "import_string", "load_module"),
        *("hydra", "instantiate", "jsonargparse", "LightningCLI", "torch.hub"),
    }
)


def imported_files(configs: Iterable[Config], workdir: Path, project: Path) -> list[Path]:
    """The script, or the modules of all classes, and what these import within the project."""
    files: set[Path] = set()
    names: dict[str, Config] = {}
    for config in configs:
        if config.script.path:
            script = (workdir / config.script.path).resolve()
            path = [str(script.parent), *search_path_of(config.env, workdir, sys.path)]
            if not files:  # the same of all
                files.add(script)
                _follow(FoundModule("__main__", script, ()), path, project, files)
            continue
        for key, spec in objects_of(config):
            names.setdefault(read_object(spec, key)[0], config)
    for name, config in names.items():
        _add(name, search_path_of(config.env, workdir, sys.path), project, files)
    return sorted(files)


def are_all_followed(files: Iterable[Path]) -> bool:
    """Whether these import nothing by a name that is made as they run, or from another folder."""
    return not any(_imports_by_name(file) for file in files)


def names_imported(configs: Iterable[Config], files: Iterable[Path]) -> set[str]:
    """The modules of all classes, and the dotted names that these files import, dots in front left.

    The last word may be no module.
    """
    names = {read_object(spec, key)[0] for it in configs for key, spec in objects_of(it)}
    for file in files:
        try:
            names.update(name.lstrip(".") for name in _imported(ast.parse(file.read_bytes())))
        except (OSError, SyntaxError, ValueError):
            continue  # told where the config is held against the classes
    return names


def _imports_by_name(file: Path) -> bool:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            words.add(ast.unparse(node))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            words.update(it.name for it in node.names)
            words.update([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
    return any(word in _BY_NAME or word.rpartition(".")[2] in _BY_NAME for word in words)


def _add(dotted: str, path: Sequence[str], project: Path, files: set[Path]) -> None:
    """Importing a module imports the packages that it is in first."""
    words = dotted.split(".")
    for count in range(1, len(words) + 1):
        found, rest = find_module(".".join(words[:count]), path)
        if found is None or rest or (found.file is None and not found.search):
            return
        if found.file is None or found.file in files:
            continue
        if not _is_own(found.file, project) or len(files) >= _MOST_FILES:
            return
        files.add(found.file)
        _follow(found, path, project, files)


def _follow(module: FoundModule, path: Sequence[str], project: Path, files: set[Path]) -> None:
    assert module.file is not None
    try:
        tree = ast.parse(module.file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # told where the config is held against the classes
    for name in _imported(tree):
        dotted = absolute_name(name, module)
        if dotted.partition(".")[0] not in {"", *sys.stdlib_module_names}:
            _add(dotted, path, project, files)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names, with leading dots where relative; the last word may be no module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = "." * node.level + (f"{node.module}." if node.module else "")
            yield from (f"{above}{alias.name}" for alias in node.names)


def _is_own(file: Path, project: Path) -> bool:
    return file.is_relative_to(project) and "site-packages" not in file.parts
