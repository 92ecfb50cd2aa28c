"""Turns a class by name and its arguments into an object, and explains what does not fit."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.python_text.classes import Parameters
from hpc_train.config.python_text.distributions import install
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError
from hpc_train.plan.json_keys import pairs_in
from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.imported_code import files_of_module
from hpc_train.training.failures.absent_code import AbsentCodeError
from hpc_train.training.private.versions import LIGHTNING_PACKAGES


def put_on_path(workdir: Path) -> None:
    """Make modules beside the config importable, before installed ones, as `python x.py` does."""
    folder = str(workdir.absolute())
    if folder not in sys.path:
        sys.path.insert(0, folder)


def spec_of(value: Any) -> ObjectSpec | None:
    """Read `{class_path, init_args}`, the one form a plan has; None for any other value."""
    if not isinstance(value, Mapping) or "class_path" not in value:
        return None
    return ObjectSpec(str(value["class_path"]), dict(value.get("init_args") or {}))


def build(
    spec: ObjectSpec,
    *,
    key: str,
    defaults: Mapping[str, Any] | None = None,
    fallbacks: Mapping[str, Any] | None = None,
) -> Any:
    """Instantiate `spec`, with specs among its arguments built first.

    Args:
        key: The config key the spec stands under, named in errors.
        defaults: Arguments given where the class takes them by name and the spec does not set
            them.
        fallbacks: The same, but only where the class's own default is None, 0 or False, or where
            it has none.

    Raises:
        ConfigError: the class cannot be found, or does not take these arguments. An exception
            raised by the class's own code passes unchanged, so that its frames can be shown.
    """
    target = import_class(_of_this_package(spec.class_path), key=key)
    arguments = {
        name: _build_value(value, f"{key}.init_args.{name}")
        for name, value in spec.init_args.items()
    }
    signature = _signature(target)
    for name, value in (defaults or {}).items():
        if name in signature:
            arguments.setdefault(name, value)
    for name, value in (fallbacks or {}).items():
        if name in signature and _is_unset(signature[name]):
            arguments.setdefault(name, value)
    _check_arguments(target, arguments, key)
    return target(**arguments)


def import_class(class_path: str, *, key: str) -> Any:
    """Import what `class_path` (module.Class) names.

    Raises:
        ConfigError: there is no such module or no such name in it. An import that fails inside
            the module, for a package it needs, names that package.
    """
    module_name, _, name = class_path.rpartition(".")
    if not module_name:
        raise ConfigError(
            f"{key}.class_path: {class_path!r} names no module",
            f"write it as module.{class_path}, with the module's file beside the config",
        )
    module = _import_module(module_name, class_path, key)
    if not hasattr(module, name):
        raise ConfigError(
            f"{key}.class_path: module {module_name} ({getattr(module, '__file__', 'built in')}) "
            f"has no {name}",
            _or_all(name, [item for item in vars(module) if not item.startswith("_")]),
        )
    return getattr(module, name)


def _of_this_package(class_path: str) -> str:
    """Lightning's own classes are in both of its packages; the run uses the model's.

    So `pytorch_lightning.callbacks.EarlyStopping` in a config fits every model.
    """
    package = next((it for it in LIGHTNING_PACKAGES if class_path.startswith(f"{it}.")), None)
    if package is None:
        return class_path
    from hpc_train.training.private.lightning import PACKAGE

    return f"{PACKAGE}{class_path.removeprefix(package)}"


def _import_module(module_name: str, class_path: str, key: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        named = [*files_of_module(missing), *files_of_module(module_name)]
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise AbsentCodeError(
                named,
                f"{key}.class_path: no module {missing} for {class_path}",
                f"it is neither in {Path.cwd()}, where the job was submitted, nor in {sys.prefix}:"
                " submit in the folder of your code, also a rendered script with sbatch; or name"
                " the environment that has it (env.venv, env.conda, env.modules)",
            ) from error
        raise AbsentCodeError(
            named,
            f"{key}.class_path: {module_name} needs the package {missing}, which is not "
            f"installed in {sys.prefix}",
            f"{install(missing.partition('.')[0])}, or activate another environment (env.conda)",
        ) from error
    except ImportError as error:
        hint = "a library of the machine is missing: is a module (env.modules) not loaded?"
        if "circular import" in str(error):
            hint = "two modules import each other: move one import into the function that needs it"
        elif "lib" not in str(error):
            hint = "the installed version may be another one than the code was written for"
        raise ConfigError(
            f"{key}.class_path: {module_name} cannot be imported: {error}", hint
        ) from error


def _build_value(value: Any, key: str) -> Any:
    spec = spec_of(value)
    if spec is not None:
        return build(spec, key=key)
    if isinstance(value, Mapping):
        items = pairs_in(value).items()
        return {name: _build_value(item, f"{key}.{name}") for name, item in items}
    if isinstance(value, list):
        return [_build_value(item, f"{key}[{index}]") for index, item in enumerate(value)]
    return value


def _signature(target: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):  # a class in C that tells nothing: it checks for itself
        return {"kwargs": inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)}


def _is_unset(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty or not parameter.default


def _check_arguments(target: Any, arguments: Mapping[str, Any], key: str) -> None:
    if not callable(target):
        raise ConfigError(f"{key}.class_path: {target!r} is no class", "name a class")
    kinds = inspect.Parameter
    signature = _signature(target)
    taken = Parameters(
        tuple(name for name, item in signature.items() if item.kind is not kinds.VAR_POSITIONAL),
        tuple(
            name
            for name, item in signature.items()
            if item.default is kinds.empty
            and item.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
        ),
    )
    takes_any = any(item.kind is kinds.VAR_KEYWORD for item in signature.values())
    for name in [] if takes_any else taken.unknown(arguments):
        raise ConfigError(
            f"{key}.init_args: {target.__name__} takes no argument {name!r}",
            _or_all(name, list(taken.names)),
        )
    missing = taken.missing(arguments)
    if missing:
        raise ConfigError(
            f"{key}.init_args: {target.__name__} needs {', '.join(missing)}",
            f"add {missing[0]}: VALUE under {key}.init_args",
        )


def _or_all(name: str, names: list[str]) -> str:
    if not names:
        return "it takes none"
    return did_you_mean(name, names) or f"it has: {', '.join(sorted(names)[:20])}"
