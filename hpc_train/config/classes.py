"""Does a class path lead to a class that takes these arguments? Answered without importing it."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.config.modules import Names, find_module, read_names, submodules
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError

__all__ = ["ArgumentError", "Parameters", "check_class", "parameters_of"]

_IMPORT_LIMIT_S = 60.0
_IMPORT = """
import importlib, sys
module, name = sys.argv[1:]
found = importlib.import_module(module)
for word in name.split("."):
    found = getattr(found, word)
"""


class ArgumentError(ConfigError):
    """An argument that a class does not take; `name` is the argument."""

    def __init__(self, message: str, hint: str, name: str) -> None:
        super().__init__(message, hint)
        self.name = name


@dataclass(frozen=True)
class Parameters:
    """Names of the arguments that a class or a function takes by keyword."""

    names: tuple[str, ...]
    required: tuple[str, ...]

    def unknown(self, arguments: Iterable[str]) -> list[str]:
        """Those of `arguments` that are not taken."""
        return [name for name in arguments if name not in self.names]

    def missing(self, arguments: Container[str], filled_in: Container[str] = ()) -> list[str]:
        """Those that have to be given and are neither in `arguments` nor `filled_in`."""
        given = (arguments, filled_in)
        return [name for name in self.required if not any(name in names for names in given)]


def check_class(
    class_path: str,
    arguments: Mapping[str, Any],
    *,
    search_path: Sequence[str],
    filled_in: Container[str] = (),
    only_found: bool = False,
) -> None:
    """Find the class and hold the arguments against its `__init__`.

    The module is found and parsed, not imported. Only where the text cannot tell (star imports, a
    module's own `__getattr__`, C extensions) is it imported, by another process.

    Args:
        class_path: `package.module.Class`.
        arguments: Its `init_args`.
        search_path: As `sys.path`, with the user's folder first.
        filled_in: Arguments that hpc-train gives where the config does not.
        only_found: Say nothing of modules that are not found: the job runs in an environment that
            is not this one.

    Raises:
        ArgumentError: when an argument is unknown.
        ConfigError: when there is no such module or class, the module has a syntax error, or an
            argument is missing. The message begins with the class path or the file.
    """
    module, rest = find_module(class_path, search_path)
    if only_found and (module is None or module.file is None):
        return
    if module is None:
        raise _no_module(class_path, search_path)
    if not rest:
        raise _no_class_in(class_path, read_names(module.file) if module.file else None)
    name = rest.partition(".")[0]
    names = read_names(module.file) if module.file else None
    if names and module.file and module.file.is_relative_to(search_path[0]) and not only_found:
        _check_needs(module.file, names, search_path)
    if names is None or (name not in names.bound and names.open_ended):
        if not only_found:
            _import(module.name, rest, search_path)
    elif name not in names.bound:
        raise _no_name(module.name, rest, names, submodules(module.search))
    elif rest == name:
        parameters = parameters_of(name, names)
        if parameters is not None:
            _check_arguments(class_path, arguments, parameters, filled_in)


def _check_needs(file: Path, names: Names, search_path: Sequence[str]) -> None:
    """Refuse a module of the user's that imports a package which is not installed."""
    for package, line in names.needs.items():
        if package not in sys.stdlib_module_names and find_module(package, search_path)[0] is None:
            raise ConfigError(
                f"{file}:{line}: imports '{package}', which is not installed",
                f"pip install {package}, or name the environment that has it: env.conda, env.venv",
            )


def parameters_of(name: str, names: Names) -> Parameters | None:
    """What `name(...)` takes; None where the text does not tell (`**kwargs`, a base elsewhere)."""
    definition = names.definitions.get(name)
    if isinstance(definition, ast.FunctionDef):
        return None if definition.decorator_list else _of_function(definition, bound=False)
    if definition is None:
        return None
    if definition.decorator_list:
        return None
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in ("__init__", "__new__"):
            return _of_function(statement, bound=True)
    bases = [base.id for base in definition.bases if isinstance(base, ast.Name)]
    if len(bases) == len(definition.bases) == 1 and bases[0] != name:
        return parameters_of(bases[0], names)
    return None


def _of_function(function: ast.FunctionDef, *, bound: bool) -> Parameters | None:
    given = function.args
    if given.kwarg is not None or (bound and function.decorator_list):
        return None
    positional = [argument.arg for argument in (*given.posonlyargs, *given.args)][int(bound) :]
    required = positional[: max(0, len(positional) - len(given.defaults))]
    keywords = [argument.arg for argument in given.kwonlyargs]
    required += [
        name for name, value in zip(keywords, given.kw_defaults, strict=True) if value is None
    ]
    return Parameters((*positional, *keywords), tuple(required))


def _check_arguments(
    class_path: str,
    arguments: Mapping[str, Any],
    parameters: Parameters,
    filled_in: Container[str],
) -> None:
    for name in parameters.unknown(arguments):
        raise ArgumentError(
            f"{class_path} takes no such argument",
            did_you_mean(name, parameters.names) or _known(parameters.names),
            name,
        )
    for name in parameters.missing(arguments, filled_in):
        raise ConfigError(
            f"{class_path} needs the argument '{name}'", f"write init_args.{name}: ..."
        )


def _known(names: Iterable[str]) -> str:
    return "it takes " + (", ".join(names) or "none")


def _no_module(class_path: str, search_path: Sequence[str]) -> ConfigError:
    word = class_path.partition(".")[0]
    return ConfigError(
        f"there is no module '{word}' in {search_path[0]} or among the installed packages",
        did_you_mean(word, submodules(search_path[:1]))
        or did_you_mean(word, submodules(search_path))
        or "install it, or submit from its folder",
    )


def _no_class_in(class_path: str, names: Names | None) -> ConfigError:
    classes = [] if names is None else _classes(names)
    return ConfigError(
        f"{class_path} is a module, not a class",
        f"did you mean '{class_path}.{classes[-1]}'?" if classes else "add the name of the class",
    )


def _no_name(module: str, rest: str, names: Names, modules: Sequence[str]) -> ConfigError:
    name = rest.partition(".")[0]
    candidates = modules if "." in rest else [*_classes(names), *names.definitions]
    kind = "module" if "." in rest else "class"
    hint = did_you_mean(name, dict.fromkeys(candidates), prefix=f"{module}.")
    shown = [candidate for candidate in candidates if not candidate.startswith("_")][:6]
    return ConfigError(
        f"{module} has no {kind} '{name}'",
        hint or (f"it has {', '.join(shown)}" if shown else "check the name"),
    )


def _classes(names: Names) -> list[str]:
    return [name for name, node in names.definitions.items() if isinstance(node, ast.ClassDef)]


def _import(module: str, name: str, search_path: Sequence[str]) -> None:
    import subprocess  # rarely needed, and the slowest import of this module

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search_path)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT, module, name],
            capture_output=True,
            text=True,
            timeout=_IMPORT_LIMIT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return  # it will be imported again on the node, where the watchdog counts the time
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ConfigError(f"{module}.{name} cannot be imported: {last[0]}", "import it in Python")
