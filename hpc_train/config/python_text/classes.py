"""Does a class path lead to a class that takes these arguments? Answered without importing it."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hpc_train.config.fit.made_later import check_made_later
from hpc_train.config.python_text.argument_values import ArgumentError, check_refused, check_values
from hpc_train.config.python_text.class_kind import Located, cannot_be_made, is_value, locate
from hpc_train.config.python_text.default_types import check_texts_for_numbers
from hpc_train.config.python_text.distributions import install, is_well_known
from hpc_train.config.python_text.handed_on import handed_on, instead_of_argument
from hpc_train.config.python_text.lacking_packages import elsewhere
from hpc_train.config.python_text.meant_class import (
    fitting,
    in_a_folder,
    meant_class,
    moved_class,
    of_an_alias,
    of_the_other_lightning,
    only_one,
)
from hpc_train.config.python_text.method_signatures import wrong_method
from hpc_train.config.python_text.modules import (
    FoundModule,
    Names,
    find_module,
    full_name,
    lacks_name,
    read_names,
    submodules,
)
from hpc_train.config.python_text.named_in_texts import check_named_in_texts
from hpc_train.config.python_text.own_modules import check_imports, check_nothing_trains
from hpc_train.config.python_text.own_python import how_to_see
from hpc_train.config.python_text.wrong_kind import check_derives
from hpc_train.config.words import did_you_mean
from hpc_train.config.yaml_slips.python_texts import check_python_texts
from hpc_train.errors import ConfigError

__all__ = ["ArgumentError", "Parameters", "check_class", "parameters_of"]

_IMPORT_LIMIT_S = 60.0
_IMPORT = """
import importlib, sys
module, name, wanted = sys.argv[1:]
found = importlib.import_module(module)
for word in name.split("."):
    found = getattr(found, word)
if not callable(found) or type(found).__name__ == "builtin_function_or_method":
    raise TypeError(f"it is a {type(found).__name__}, not a class")
bases = [base.__name__ for base in getattr(found, "__mro__", ())]
if wanted and bases and wanted not in bases:
    raise TypeError(f"it is no {wanted}")
"""

_NO_CLASS = "TypeError: it is "


@dataclass(frozen=True)
class Parameters:
    """Names of the arguments that a class or a function takes by keyword."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    annotations: Mapping[str, str] = field(default_factory=dict)  # where written, as text

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
    filled_in: Sequence[str] = (),
    only_found: bool = False,
    wanted: str = "",
    beside: str = "",
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
        wanted: Name of a class that it has to derive from; empty where anything will do.
        beside: The config's model, of the model its data, whose package of Lightning a fix names.

    Raises:
        ArgumentError: when an argument is unknown.
        ConfigError: when there is no such module or class, the module has a syntax error, or an
            argument is missing. The message begins with the class path or the file.
    """
    module, rest = find_module(class_path, search_path)
    if only_found and (module is None or module.file is None):
        return
    if module is None:
        raise _no_module(class_path, search_path, wanted)
    if not rest:
        raise _no_class_in(class_path, wanted, search_path)
    names = read_names(module.file) if module.file else None
    if not only_found:
        seen: set[Path] = set()
        check_imports(module, search_path, seen)
        check_nothing_trains(seen, search_path[0])
        if any(b"parse_args" in it.read_bytes() for it in seen):
            from hpc_train.config.fit.parsed_on_import import check_parsed  # rarely needed

            check_parsed(seen)
    found = locate(class_path, search_path)
    if found is None:
        _check_not_in_text(module, rest, names, search_path, wanted, may_import=not only_found)
        return
    _check_kind(class_path, found, wanted, search_path, beside)
    if parameters := _parameters(found):
        check_made_later(class_path, arguments, parameters.required, found, search_path)
        _check_arguments(class_path, arguments, parameters, filled_in)
    values_check(class_path, search_path, filled_in)(arguments)


def _check_not_in_text(
    module: FoundModule,
    rest: str,
    names: Names | None,
    search_path: Sequence[str],
    wanted: str,
    *,
    may_import: bool,
) -> None:
    """Refuse a class that the text does not define; import what the text alone cannot tell."""
    name = rest.partition(".")[0]
    if names is None or (name not in names.bound and names.open_ended):
        if may_import:
            _import(module.name, rest, wanted, search_path)
    elif name not in names.bound:
        modules = submodules(module.search)
        raise _no_name(module.name, rest, names, modules, search_path, wanted)


def values_check(
    class_path: str, search_path: Sequence[str], filled_in: Sequence[str]
) -> Callable[[Mapping[str, Any]], None]:
    """What holds values against a class whose arguments are known: its text is read once.

    Returns:
        A function that raises ArgumentError.
    """
    found = locate(class_path, search_path)
    parameters = _parameters(found)
    open_ended = _parameters(found, open_too=True)  # of **kwargs the others are known all the same

    def check_values_of(arguments: Mapping[str, Any]) -> None:
        if found is None:
            return
        known = parameters or open_ended
        annotations = known.annotations if known else {}
        check_python_texts(class_path, arguments, annotations, found)
        check_texts_for_numbers(class_path, arguments, found)
        check_named_in_texts(arguments, annotations, found, search_path)
        if known is None:
            return
        required = known.required
        check_values(class_path, arguments, annotations, required, found, search_path)
        if parameters is not None:
            check_refused(class_path, arguments, found, filled_in)

    return check_values_of


def _parameters(found: Located | None, *, open_too: bool = False) -> Parameters | None:
    if not found or not found.names:
        return None
    more = handed_on(found)
    known = parameters_of(found.name, found.names, open_too=open_too or bool(more))
    return replace(known, names=(*known.names, *more)) if known and more else known


def _check_kind(
    class_path: str, found: Located, wanted: str, search_path: Sequence[str], beside: str
) -> None:
    if not found.name:
        raise _no_class_in(found.module, wanted, search_path, class_path)
    if is_value(found):
        raise ConfigError(f"{class_path} is a value, not a class", "write the name of a class")
    if why := cannot_be_made(found.definition):
        raise ConfigError(f"{class_path} {why}", "name a class that can be made of its init_args")
    if wanted and found.definition and found.module.partition(".")[0] in sys.stdlib_module_names:
        raise ConfigError(f"{class_path} is Python's own and no {wanted}", f"name a {wanted}")
    check_derives(class_path, found, wanted, search_path, beside)
    if isinstance(found.definition, ast.ClassDef):
        said, hint = wrong_method(found.definition, found.names.imports if found.names else {})
        if said:
            raise ConfigError(f"{class_path}: {said}", hint)


def parameters_of(name: str, names: Names, *, open_too: bool = False) -> Parameters | None:
    """What `name(...)` takes; None where the text does not tell (`**kwargs`, a base elsewhere).

    Args:
        open_too: Give what is named beside `**kwargs`.
    """
    definition = names.definitions.get(name)
    if isinstance(definition, ast.FunctionDef):
        return None if definition.decorator_list else _of_function(definition, open_too)
    if definition is None:
        return None
    if definition.decorator_list:
        return None
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in ("__init__", "__new__"):
            return _of_function(statement, open_too, bound=True)
    if definition.bases and all(_takes_nothing(base, names) for base in definition.bases):
        return Parameters((), ())
    bases = [base.id for base in definition.bases if isinstance(base, ast.Name)]
    if len(bases) == len(definition.bases) == 1 and bases[0] != name:
        return parameters_of(bases[0], names, open_too=open_too)
    return None


def _takes_nothing(base: ast.expr, names: Names) -> bool:
    """Lightning's own classes hand arguments on to torch's Module or to object: neither has any."""
    written = ast.unparse(base)
    dotted = full_name(written, names.imports)
    if dotted.startswith(("pytorch_lightning.", "lightning.")) and dotted.endswith(".Callback"):
        return True
    return written.rpartition(".")[2] in ("LightningModule", "LightningDataModule")


def _of_function(
    function: ast.FunctionDef, open_too: bool, *, bound: bool = False
) -> Parameters | None:
    given = function.args
    if (given.kwarg is not None and not open_too) or (bound and function.decorator_list):
        return None
    positional = [argument.arg for argument in (*given.posonlyargs, *given.args)][int(bound) :]
    required = positional[: max(0, len(positional) - len(given.defaults))]
    keywords = [argument.arg for argument in given.kwonlyargs]
    required += [
        name for name, value in zip(keywords, given.kw_defaults, strict=True) if value is None
    ]
    annotations = {
        argument.arg: ast.unparse(argument.annotation)
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        if argument.annotation is not None
    }
    return Parameters((*positional, *keywords), tuple(required), annotations)


def _check_arguments(
    class_path: str,
    arguments: Mapping[str, Any],
    parameters: Parameters,
    filled_in: Container[str],
) -> None:
    for name in parameters.unknown(arguments):
        raise ArgumentError(
            f"{class_path} takes no such argument",
            instead_of_argument(name, parameters.names),
            name,
        )
    for name in parameters.missing(arguments, filled_in):
        raise ConfigError(
            f"{class_path} needs the argument '{name}'", f"write {name}: ... below its init_args"
        )


def _no_module(class_path: str, search_path: Sequence[str], wanted: str) -> ConfigError:
    word = class_path.partition(".")[0]
    return ConfigError(
        f"there is no module '{word}' in {search_path[0]} or among the installed packages",
        of_the_other_lightning(class_path, search_path)
        or elsewhere(word, Path(search_path[0]))
        or (is_well_known(word) and how_to_see(word, search_path))
        or (f"{install(word)}, or submit from its folder" if is_well_known(word) else "")
        or of_an_alias(class_path, search_path)
        or _without_folders(class_path, search_path[:1])
        or in_a_folder(class_path, search_path, wanted)
        or moved_class(class_path, search_path)
        or did_you_mean(word, submodules(search_path[:1]))
        or meant_class(class_path, search_path, wanted=wanted)
        or did_you_mean(word, submodules(search_path), cutoff=0.8)
        or "install it, or submit from its folder",
    )


def _without_folders(class_path: str, own: Sequence[str]) -> str:
    """`nets.Net` for `src.nets.Net`, where nets.py is in the folder itself."""
    words = class_path.split(".")
    for first in range(1, len(words) - 1):
        shorter = ".".join(words[first:])
        module, name = find_module(shorter, own) if words[first] in submodules(own) else (None, "")
        if module and name and not lacks_name(module, name.partition(".")[0], own):
            return f"did you mean '{shorter}'?"
    return ""


def _no_class_in(
    module: str, wanted: str, search_path: Sequence[str], written: str = ""
) -> ConfigError:
    written = written or module
    found = find_module(module, search_path)[0]
    names = read_names(found.file) if found and found.file else None
    classes = [f"{module}.{name}" for name in _classes(names)] if names else []
    fit = fitting(classes, wanted, search_path)
    hint = f"add the name of the class{f', a {wanted}' if wanted else ''}"
    if fit:
        hint = f"did you mean '{written}{fit[-1].removeprefix(module)}'?"
    return ConfigError(f"{written} is a module, not a class", hint)


def _no_name(
    module: str,
    rest: str,
    names: Names,
    modules: Sequence[str],
    search_path: Sequence[str],
    wanted: str,
) -> ConfigError:
    name = rest.partition(".")[0]
    own = dict.fromkeys([*_classes(names), *names.definitions, *names.imports])
    fit = fitting([f"{module}.{it}" for it in own], wanted, search_path)
    candidates = modules if "." in rest else [it.rpartition(".")[2] for it in fit]
    kind = "module" if "." in rest else "class"
    if name == "py":  # the name of a file
        known = meant_class(module, search_path, wanted=wanted) or f"write {module}.ClassName"
        return ConfigError(f"{module} has no {kind} 'py'", f"{known} without .py")
    if holder := next((it for it in names.definitions.values() if _holds(it, name)), None):
        hint = f"it is inside of {holder.name}: put it at the top level of the module"
        return ConfigError(f"{module} has no {kind} '{name}' at its top level", hint)
    last = rest.rpartition(".")[2]
    if "." in rest and last in _classes(names):  # the file's name twice, as in net.net.Net
        return ConfigError(f"{module} has no {kind} '{name}'", f"write {module}.{last}")
    hint = moved_class(f"{module}.{rest}", search_path) if "." in rest else ""
    hint = hint or did_you_mean(name, dict.fromkeys(candidates), prefix=f"{module}.")
    hint = hint or only_one(module, names, wanted, search_path)
    if not _classes(names):  # a package, whose modules have them
        hint = hint or meant_class(f"{module}.{rest}", search_path, wanted=wanted)
    shown = [it for it in dict.fromkeys(candidates) if not it.startswith("_")][:6]
    return ConfigError(
        f"{module} has no {kind} '{name}'",
        hint or (f"it has {', '.join(shown)}" if shown else "check the name"),
    )


def _holds(definition: ast.AST, name: str) -> bool:
    """Whether a function, where nobody else finds it, defines a class of that name."""
    inside = ast.walk(definition) if isinstance(definition, ast.FunctionDef) else ()
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in inside)


def _classes(names: Names) -> list[str]:
    return [name for name, node in names.definitions.items() if isinstance(node, ast.ClassDef)]


def _import(module: str, name: str, wanted: str, search_path: Sequence[str]) -> None:
    import subprocess  # rarely needed, and the slowest import of this module

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search_path)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT, module, name, wanted],
            capture_output=True,
            text=True,
            timeout=_IMPORT_LIMIT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return  # it will be imported again on the node, where the watchdog counts the time
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        if last.startswith(_NO_CLASS):
            said = f"{module}.{name} is {last.removeprefix(_NO_CLASS)}"
            raise ConfigError(said, "write the name of a class that fits")
        hint = f"`python -c 'import {module}'` tells more"
        if "has no attribute" in last:
            hint = meant_class(f"{module}.{name}", search_path, wanted=wanted) or hint
            raise ConfigError(f"{module} has no class '{name}'", hint)
        raise ConfigError(f"{module}.{name} cannot be imported: {last}", hint)
