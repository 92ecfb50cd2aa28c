"""A command line that a module of the user's parses as it is imported: a rank has none of its own.

`args = parser.parse_args()` at the top of a train.py ends each rank where an argument is required,
and has its defaults there where none is.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.harmless_code import is_of_main
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.python_text.own_modules import check_imports
from hpc_train.config.scripts.parser_of_text import parsed_in
from hpc_train.config.scripts.script_arguments import refused_arguments
from hpc_train.config.specs import classes_of, read_object
from hpc_train.config.validate import search_path_of
from hpc_train.errors import ConfigError

_CALL = "parse_args"
_RUNS = f"{_CALL}() runs as it is imported, in each rank, whose command line has no arguments"
_GUARD = 'put it below `if __name__ == "__main__":`'
_TAKE = "have the class take what it needs as init_args"


def check_parsed(files: Iterable[Path]) -> None:
    """Refuse a module whose parser surely wants an argument as it is imported.

    Args:
        files: Of the user's, which the ranks import.

    Raises:
        ConfigError: with `FILE:LINE`.
    """
    for file, line, said in _parsed(files):
        if "are required" in said:
            raise ConfigError(f"{file}:{line}: {_RUNS}: {said}", f"{_GUARD}, and {_TAKE}")


def notes_on_parsed(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """A line for each module whose parser has its defaults in every rank."""
    path = search_path_of(loaded.config.env, workdir, sys.path)
    seen: set[Path] = set()
    for key, spec in classes_of(loaded.config):
        module, _ = find_module(read_object(spec, key, loaded.origins)[0], path)
        if module is not None:
            with contextlib.suppress(ConfigError):  # of another environment, perhaps
                check_imports(module, path, seen)
    for file, line, said in _parsed(seen):
        if not said:
            shown = file.relative_to(workdir) if file.is_relative_to(workdir) else file
            yield f"{shown}:{line}: {_RUNS}: its defaults hold there; {_TAKE}"


def _parsed(files: Iterable[Path]) -> Iterator[tuple[Path, int, str]]:
    """Each that surely parses its command line, the line, and what it says of an empty one."""
    for file in sorted(files):
        text = file.read_bytes()
        if _CALL.encode() in text and (tree := _imported(text)) is not None:
            line = _line(tree)
            if line and any(it.is_sure for it in parsed_in(tree)):
                yield file, line, refused_arguments(tree, [])[0]


@lru_cache(maxsize=8)
def _imported(text: bytes) -> ast.Module | None:
    """The module without what runs only where it is a script."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    return ast.Module([it for it in body if not is_of_main(it)], [])


def _line(tree: ast.Module) -> int:
    """Of the first call; 0 where there is none."""
    calls = (it for it in ast.walk(tree) if isinstance(it, ast.Call))
    named = (it for it in calls if isinstance(it.func, ast.Attribute) and it.func.attr == _CALL)
    return next((it.lineno for it in named), 0)
