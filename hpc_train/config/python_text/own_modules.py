"""Will the user's own modules import? Followed as text, inside the user's folder."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from hpc_train.config.meant_words.moved_names import TORCH_SIX, instead_of_six, moved_import
from hpc_train.config.python_text.gone_names import gone_module, gone_name
from hpc_train.config.python_text.gone_uses import gone_uses
from hpc_train.config.python_text.lacking_packages import how_to_have
from hpc_train.config.python_text.modules import (
    FoundModule,
    Names,
    NeededImport,
    absolute_name,
    find_module,
    lacks_name,
    names_of,
    read_names,
    submodules,
)
from hpc_train.config.python_text.other_systems import tried_in_vain
from hpc_train.config.python_text.python_folders import (
    changed_path,
    is_own,
    is_own_module,
    modules_run,
)
from hpc_train.config.python_text.submits_on_import import check_submits_nothing
from hpc_train.config.scripts.package_scripts import how_to_import
from hpc_train.config.scripts.script_trainers import fit_on_import
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError

_MOST_MODULES = 200  # a few milliseconds each
_IMPORT_LIMIT_S = 60.0
_ABSENT = 3
_HAS_NAME = f"""
import importlib, sys
sys.exit(0 if hasattr(importlib.import_module(sys.argv[1]), sys.argv[2]) else {_ABSENT})
"""
# Packages of which names that are typed wrong are known by the text, before anything is imported.
_READABLE = ("pytorch_lightning", "lightning", "lightning_fabric", "torch", "torchmetrics")

# Of Python's own modules those that torch and Lightning import.
NEEDED = (
    *("argparse", "array", "ast", "asyncio", "base64", "binascii", "bisect", "bz2", "cProfile"),
    *("calendar", "cmath", "collections", "colorsys", "concurrent", "configparser", "contextlib"),
    *("contextvars", "copy", "copyreg", "csv", "ctypes", "dataclasses", "datetime", "decimal"),
    *("difflib", "dis", "email", "enum", "fcntl", "fnmatch", "fractions", "functools", "getpass"),
    *("gettext", "glob", "grp", "gzip", "hashlib", "heapq", "hmac", "http", "importlib"),
    *("inspect", "ipaddress", "json", "keyword", "linecache", "locale", "logging", "lzma"),
    *("math", "mmap", "multiprocessing", "ntpath", "numbers", "opcode", "operator", "pathlib"),
    *("pickle", "pickletools", "pkgutil", "platform", "pprint", "profile", "pstats", "queue"),
    *("quopri", "random", "re", "reprlib", "runpy", "secrets", "select", "selectors", "shlex"),
    *("shutil", "signal", "socket", "ssl", "statistics", "string", "struct", "subprocess"),
    *("sysconfig", "tarfile", "tempfile", "termios", "textwrap", "threading", "timeit", "token"),
    *("tokenize", "traceback", "types", "typing", "unicodedata", "unittest", "urllib", "uuid"),
    *("warnings", "weakref", "zipfile", "zlib"),
)


def check_imports(
    module: FoundModule,
    search_path: Sequence[str],
    seen: set[Path],
    under_way: Mapping[Path, int] | None = None,
    *,
    folders: Sequence[str] = (),
) -> None:
    """Refuse a module of the user's that cannot be imported for what it imports at its top level.

    Args:
        module: Where to begin; a module outside the user's folders is not looked at.
        search_path: As `sys.path`, with the user's folder first.
        seen: Files that were looked at; grows.
        under_way: Files whose import has begun, and the line that each has come to.
        folders: More folders of the user's.

    Raises:
        ConfigError: with `FILE:LINE`: a package that is not installed, a module or a name that is
            not there, a syntax error, two modules that need each other's names.
    """
    if not is_own(module.file, search_path[0], *folders) or len(seen) >= _MOST_MODULES:
        return
    assert module.file is not None
    seen.add(module.file)
    for needed in read_names(module.file).needs:
        dotted = absolute_name(needed.module, module)
        if needed.module.startswith(".") and not dotted.strip("."):
            raise _no_package(module, needed)
        if not (first := dotted.partition(".")[0]):
            continue
        if first in sys.stdlib_module_names:
            check_hidden(Path(search_path[0]), [first])
            _check_gone(module, needed)
            continue
        found = _own_module(module, needed, dotted, search_path, folders, seen)
        if found is None:
            continue
        where, begun = f"{module.file}:{needed.line}", dict(under_way or {})
        _check_circle(where, needed, found, begun)
        if module.name != "__main__":  # which is imported anew by whoever names its file
            begun[module.file] = needed.line
        for run in modules_run(needed, dotted, search_path):
            is_above = module.name.startswith(f"{run.name}.")  # and has begun before it
            if run.file not in seen and not is_above:
                check_imports(run, search_path, seen, begun, folders=folders)
        _check_names(where, needed, found)
    _check_bases(module, read_names(module.file), search_path)
    _check_uses(module, search_path, seen)


def check_first_imports(
    module: FoundModule, search_path: Sequence[str], line: int, *, folders: Sequence[str] = ()
) -> None:
    """Refuse packages that are not installed, and are imported before modules are found elsewhere.

    Args:
        module: Of the user's.
        search_path: As `sys.path`, with the user's folder first.
        line: Which may change that.
        folders: More folders of the user's.

    Raises:
        ConfigError: with `FILE:LINE`.
    """
    assert module.file is not None
    seen: set[Path] = set()
    for needed in sorted(read_names(module.file).needs, key=lambda it: it.line):
        dotted = absolute_name(needed.module, module)
        if needed.line >= line or needed.module.startswith("."):
            return
        if dotted.partition(".")[0] in sys.stdlib_module_names:
            continue
        if _own_module(module, needed, dotted, search_path, folders, seen) is None:
            continue
        for run in modules_run(needed, dotted, search_path):
            if run.file not in seen:
                check_imports(run, search_path, seen, folders=folders)
        if any(map(changed_path, seen)):
            return


def check_nothing_trains(files: Collection[Path], folder: str) -> None:
    """Refuse a module that trains, or submits one, as it is imported, which each rank would do.

    Args:
        files: Of the user's, in or below the folder.

    Raises:
        ConfigError: with `FILE:LINE`.
    """
    for file in sorted(files):
        text = file.read_bytes()
        call = fit_on_import(ast.parse(text)) if b"Trainer" in text else None
        if call is not None:
            said = f"{file}:{call.lineno}: {ast.unparse(call.func)}(...) runs as it is imported"
            guard = 'put it below `if __name__ == "__main__":`'
            hint = f"{guard}, or submit it as a script: hpc-train submit {file.relative_to(folder)}"
            raise ConfigError(f"{said}, which each rank does", hint)
    check_submits_nothing(files)


def _own_module(
    importer: FoundModule,
    needed: NeededImport,
    dotted: str,
    search_path: Sequence[str],
    folders: Sequence[str],
    seen: Iterable[Path],
) -> FoundModule | None:
    """The module of the user's that an import means; None where it is an installed one."""
    where = f"{importer.file}:{needed.line}"
    found, rest = find_module(dotted, search_path)
    package = dotted.partition(".")[0]
    if found is None:
        if _may_be_elsewhere(importer, needed, seen):
            return None
        gone, fix = gone_module(package)
        if gone:
            raise ConfigError(f"{where}: imports '{package}', which is gone since {gone}", fix)
        what = f"{where}: imports '{package}', which is not installed"
        raise ConfigError(what, how_to_have(needed, importer, search_path))
    is_beside = is_own_module(found, search_path[0])
    if not is_beside and (package in _READABLE or not is_own_module(found, *folders)):
        if rest and dotted == TORCH_SIX:
            said = f"{where}: imports '{TORCH_SIX}', which torch has no more since 2.0"
            raise ConfigError(said, instead_of_six(needed.names))
        if package in _READABLE:
            _check_installed(where, needed, dotted, search_path)
        return None
    if found.file is None and (rest or package in _READABLE):
        return None
    if rest or package in _READABLE:
        if is_beside and find_module(package, search_path[1:])[0] is not None:
            message = f"{where}: imports '{dotted}', and {found.file} hides that package"
            raise ConfigError(message, f"rename {found.file}")
        hint = did_you_mean(rest, submodules(found.search), prefix=f"{found.name}.")
        message = f"{where}: imports '{dotted}', and {found.name} has no module '{rest}'"
        raise ConfigError(message, hint or "correct that line")
    return found


def _may_be_elsewhere(importer: FoundModule, needed: NeededImport, seen: Iterable[Path]) -> bool:
    """Whether a line that runs before this import may change where modules are found."""
    lines = {file: changed_path(file) for file in seen}
    own = lines.pop(importer.file, 0) if importer.file else 0
    return 0 < own < needed.line or any(lines.values())


def _check_uses(module: FoundModule, search_path: Sequence[str], seen: Iterable[Path]) -> None:
    """Refuse a use of such a name that the import comes to."""
    for use in gone_uses(module, search_path, seen):
        if use.is_sure:
            raise ConfigError(f"{module.file}:{use.line}: {use.said}", use.fix)


def _check_gone(importer: FoundModule, needed: NeededImport) -> None:
    """Refuse a name that a module of Python's own has no more."""
    for name in needed.names:
        gone, fix = gone_name(needed.module, name)
        if gone:
            said = f"imports '{name}' from {needed.module}, which is gone since {gone}"
            today = re.fullmatch(r"write ([\w.]+)\.(\w+)", fix)
            fix = f"write from {today[1]} import {today[2]}" if today else fix
            raise ConfigError(f"{importer.file}:{needed.line}: {said}", fix)


def check_hidden(folder: Path, used: Container[str] = ()) -> None:
    """Raise a ConfigError for a random.py and the like, which stands in Python's own's place.

    Args:
        used: Names that are imported, beside those that every rank imports.
    """
    if tried := tried_in_vain(folder):
        said = f"{tried} hides Python's own module {tried.stem}, which every rank tries to import"
        raise ConfigError(said, "rename it")
    for file in hiding(folder):
        is_needed = file.stem in NEEDED
        if is_needed or file.stem in used:
            who = ", which every rank imports" if is_needed else ""
            raise ConfigError(f"{file} hides Python's own module {file.stem}{who}", "rename it")


def hiding(folder: Path) -> list[Path]:
    """Modules and packages of a folder that are named as a module of Python's own."""
    found = [*folder.glob("*.py"), *(it.parent for it in folder.glob("*/__init__.py"))]
    return sorted(it for it in found if it.stem in sys.stdlib_module_names)


def _check_names(where: str, needed: NeededImport, found: FoundModule) -> None:
    if found.file is None:
        return
    names: Names = read_names(found.file)
    there = {*names.bound, *submodules(found.search)}
    for name in needed.names:
        if name == "*" or names.open_ended or name in there:
            continue
        if PathFinder.find_spec(name, list(found.search)) is None:  # an extension, a bare folder
            raise ConfigError(
                f"{where}: imports '{name}' from {found.name}, which has no such name",
                did_you_mean(name, there) or "correct that line",
            )


def _check_circle(
    where: str, needed: NeededImport, found: FoundModule, under_way: Mapping[Path, int]
) -> None:
    """Refuse a name of a module whose import is under way and has not come to that name."""
    if found.file is None:
        return
    line = under_way.get(found.file, 0)
    definitions = read_names(found.file).definitions
    for name in needed.names:
        if line and name in definitions and definitions[name].lineno > line:
            message = f"{where}: imports '{name}' from {found.name}, which imports this module"
            hint = "move one of the two imports into the function that needs it"
            raise ConfigError(f"{message} first, in line {line}", hint)


def _no_package(module: FoundModule, needed: NeededImport) -> ConfigError:
    name = needed.module.lstrip(".")
    written = f"from {name} import {', '.join(needed.names)}"
    written = written if name else f"import {', '.join(needed.names)}"
    assert module.file is not None
    own = how_to_import(module.file, is_script=module.name == "__main__")
    return ConfigError(
        f"{module.file}:{needed.line}: a relative import, and {module.name} is in no package",
        own or f"write {written}",
    )


def _check_installed(
    where: str, needed: NeededImport, dotted: str, search_path: Sequence[str]
) -> None:
    """Refuse `from pytorch_lightning import LightningModul`, and a module that is not there."""
    names = [name for name in needed.names if name != "*"]
    for full in [dotted, *(f"{dotted}.{name}" for name in names)]:
        if missing := _missing(full, search_path):
            module, name, hint = missing
            message = f"{where}: imports '{full}', and {module} has no '{name}'"
            moved = moved_import(dotted, names, search_path)
            raise ConfigError(message, moved or hint or "correct that line")


def _missing(dotted: str, search_path: Sequence[str]) -> tuple[str, str, str] | None:
    """The module, the name that it has not, and a name that may be meant; None if it may have."""
    found, rest = find_module(dotted, search_path)
    name = rest.partition(".")[0]
    if found is None or not name or not lacks_name(found, name, search_path):
        return None
    if not _is_absent(found.name, name, search_path):
        return None
    return found.name, name, did_you_mean(name, names_of(found, search_path))


def _is_absent(module: str, name: str, search_path: Sequence[str]) -> bool:
    """Ask the module itself, in another process: others may have put the name into it."""
    import os
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-c", _HAS_NAME, module, name],
            capture_output=True,
            timeout=_IMPORT_LIMIT_S,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search_path)},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == _ABSENT


def _check_bases(module: FoundModule, names: Names, search_path: Sequence[str]) -> None:
    """Refuse `class Net(pl.LightningModul)`: the class statement would fail as it is imported."""
    for definition in names.definitions.values():
        if not isinstance(definition, ast.ClassDef):
            continue
        for base in definition.bases:
            text = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
            first, _, rest = text.partition(".")
            where = f"{module.file}:{base.lineno}: class {definition.name} derives from {text}"
            if text.isidentifier() and not names.open_ended and not _is_bound(text, names):
                hint = did_you_mean(text, names.bound) or "import it, or correct that line"
                raise ConfigError(f"{where}, and {module.name} has no such name", hint)
            full = absolute_name(names.imports.get(first, ""), module)
            if not rest or full.partition(".")[0] not in _READABLE:
                continue
            if missing := _missing(f"{full}.{rest}", search_path):
                owner, name, hint = missing
                raise ConfigError(f"{where}, and {owner} has no '{name}'", hint or "correct it")


def _is_bound(name: str, names: Names) -> bool:
    return name in names.bound or hasattr(builtins, name) or name.startswith("__")
