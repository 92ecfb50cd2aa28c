"""What to write where a class, or what a function gives, is not of the kind that a key takes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.class_kind import (
    Located,
    derives_from,
    lightning_package,
    locate,
    place_of,
)
from hpc_train.config.python_text.lightning_home import package_of_project, packages_in
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.python_text.python_folders import is_own
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError

_PLACES = {
    "LightningModule": "model",
    "LightningDataModule": "data",
    "Callback": "trainer.callbacks",
    "Logger": "loggers, a list beside trainer and not in it",
}
# What Lightning's packages do not have at their top.
_PLACED = {
    "Logger": "loggers.Logger",
    "Strategy": "strategies.Strategy",
    "Profiler": "profilers.Profiler",
}
# Packages whose functions make modules of torch's, and no class of Lightning's.
_MAKE_MODULES = ("torch", "torchvision", "timm", "transformers")


def made_by_function(found: Located, wanted: str, search_path: Sequence[str]) -> str:
    """What a function surely gives in place of what is wanted, as in `a nets.Net`; or ''."""
    function = found.definition
    if not isinstance(function, ast.FunctionDef) or not wanted:
        return ""
    if found.module.partition(".")[0] in _MAKE_MODULES:
        return "a module of torch's" if wanted == "LightningModule" else "none"
    if function.decorator_list:
        return ""
    inside = [node for node in ast.walk(function) if node is not function]
    if any(
        isinstance(it, (ast.FunctionDef, ast.Lambda, ast.Yield, ast.YieldFrom)) for it in inside
    ):
        return ""
    returns = [it.value for it in inside if isinstance(it, ast.Return)]
    made = [ast.unparse(it.func) if isinstance(it, ast.Call) else "" for it in returns]
    for name in made:
        kind = locate(f"{found.module}.{name}", search_path) if name else None
        if kind is None or derives_from(kind, wanted, search_path) is not False:
            return ""
    return f"a {made[0]}" if made else ""


def check_derives(
    class_path: str, found: Located, wanted: str, search_path: Sequence[str], beside: str
) -> None:
    """Refuse what surely is not of the kind that is wanted.

    Args:
        class_path: As the config names it.
        found: Where its text is.
        wanted: Name of the class that it has to derive from; empty where anything will do.
        search_path: As `sys.path`, with the user's folder first.
        beside: The config's model, of the model its data: of which package of Lightning's it is.

    Raises:
        ConfigError: with its place, where it is the user's own, and what to derive it from.
    """
    if made := made_by_function(found, wanted, search_path):
        said = f"is a function that gives {made}, which is no {wanted}"
    elif wanted and derives_from(found, wanted, search_path) is False:
        said = f"is no {wanted}"
    else:
        return
    place = place_of(found, found.definition.lineno, search_path) if found.definition else ""
    where = f" ({place})" if place and not Path(place).is_absolute() else ""
    hint = hint_for(class_path, found, wanted, search_path, beside)
    raise ConfigError(f"{class_path}{where} {said}", hint)


def hint_for(
    class_path: str, found: Located, wanted: str, search_path: Sequence[str], beside: str = ""
) -> str:
    """A class of its file that is one, or how to make one of it."""
    names = found.names
    sure = [
        it
        for it in (names.definitions if names else ())
        if derives_from(Located(found.module, it, names), wanted, search_path)
    ]
    if near := did_you_mean(found.name, sure, prefix=f"{found.module}."):
        return near
    other = next((it for it in _PLACES if derives_from(found, it, search_path)), "")
    there = f"{found.module} has {', '.join(sure)}" if sure else ""
    if other:
        belongs = f"belongs to {_PLACES[other]}"
        return f"{there}, and {found.name} {belongs}" if there else f"it {belongs}"
    if other_way := _made_of(class_path, found, wanted, search_path):
        return f"{there}; or {other_way}" if there else other_way
    base = f"{_package(found, wanted, search_path, beside)}.{_PLACED.get(wanted, wanted)}"
    if there:
        return f"{there}; or derive {found.name} from {base}"
    return f"derive it from {base}, or name a class that does"


def _made_of(class_path: str, found: Located, wanted: str, search_path: Sequence[str]) -> str:
    """How to make what is wanted of it where it cannot well be derived from it; else empty."""
    module = find_module(found.module, search_path)[0]
    is_class = isinstance(found.definition, ast.ClassDef)
    own = module is not None and is_own(module.file, search_path[0])
    if wanted == "LightningDataModule" and is_class and derives_from(found, "Dataset", search_path):
        return f"write a {wanted} whose train_dataloader returns DataLoader({class_path}(...), ...)"
    if wanted == "LightningModule" and not (own and is_class):
        return f"write a {wanted} that has one, self.net = {class_path}(...), and name that"
    return ""


def _package(found: Located, wanted: str, search_path: Sequence[str], beside: str) -> str:
    """The one of Lightning's two packages: that of the model, else of its own file's imports."""
    imported = packages_in(found.names) if found.names else set()
    own = imported.pop() if len(imported) == 1 else ""
    of_beside = lightning_package(beside, search_path) if beside else ""
    first, second = (own, of_beside) if wanted == "LightningModule" else (of_beside, own)
    return first or second or package_of_project(search_path)
