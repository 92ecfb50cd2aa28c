"""The class that is meant where none is named with its module: looked up as text, for an error."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.class_kind import derives_from, locate
from hpc_train.config.python_text.lightning_home import NEW, OLD, own_files, package_of_project
from hpc_train.config.python_text.modules import Names, find_module, names_of, read_names
from hpc_train.config.words import did_you_mean, near_words
from hpc_train.errors import ConfigError

# What each has to have of its own.
_ROLES = {"LightningModule": "training_step", "LightningDataModule": "train_dataloader"}
_SHORTEST = 4  # letters of a name that says something
# Packages whose classes are named without them, or by the alias of their usual import.
_OF_LIGHTNING = ("", ".callbacks", ".loggers", ".strategies", ".profilers")
_HOMES = (
    *("torch.optim", "torch.optim.lr_scheduler", "torch.nn", "torch.utils.data", "torchmetrics"),
)
_ALIASES = {  # as programs import them
    "pl": (OLD, NEW),
    "L": ("lightning",),
    "nn": ("torch.nn",),
    "optim": ("torch.optim",),
    "tm": ("torchmetrics",),
}
_IMPORT = re.compile(r"\s*from\s+([\w.]+)\s+import\s+(\w+)\s*")
_AROUND = re.compile(r"\s*(?:import\s+|<?class\s+'?)?([\w.]+?)(?:\.py)?(?:\(.*\)|'?>)?\s*")


def plain_path(written: str) -> str:
    """`nets.Net` of `from nets import Net`, `nets.Net()`, `nets/Net`, `nets:Net` and the like."""
    if found := _IMPORT.fullmatch(written):
        return f"{found[1]}.{found[2]}"
    dotted = re.sub(r"[/:]", ".", written.strip().removeprefix("./")).replace(".py.", ".")
    found = _AROUND.fullmatch(dotted)
    return found[1] if found else ""


def meant_class(written: str, search_path: Sequence[str] | None = None, *, wanted: str = "") -> str:
    """`write pytorch_lightning.callbacks.EarlyStopping` for `EarlyStopping` or `EarlyStoping`.

    Args:
        written: A class without its module, or behind a module that there is not.
        search_path: As `sys.path`, with the user's folder first.
        wanted: Name of a class that it has to derive from; empty where anything will do.

    Returns:
        Nothing where no class is near.
    """
    path = [str(Path.cwd()), *sys.path] if search_path is None else search_path
    name = written.rpartition(".")[2]
    places: dict[str, list[str]] = {}
    for found, module in _classes(path):
        places.setdefault(found, []).append(f"{module}.{found}")
    of_module = [it for many in places.values() for it in many if it.startswith(f"{written}.")]
    module = written.rpartition(".")[0]
    exact = fitting(places.get(name) or of_module, wanted, path)
    exact = [it for it in exact if module and it.startswith(f"{module}.")] or exact
    if exact:
        return f"write {' or '.join(exact[:2])}"
    if own := _of_own_file(name, wanted, path):
        return own
    near = did_you_mean(name, places, cutoff=0.8)
    for known in places:
        if f"'{known}'" in near and not fitting(places[known][:1], wanted, path):
            return _of_own_name(name, wanted, path)
        near = near.replace(f"'{known}'", f"'{places[known][0]}'")
    return near or _of_own_name(name, wanted, path)


def _of_own_file(name: str, wanted: str, path: Sequence[str]) -> str:
    """The one class of what is wanted in the user's file of that name."""
    own = [it for it in _own(wanted, path) if _plain(it.split(".")[-2]) == _plain(name)]
    return f"write {own[0]}" if len(own) == 1 else ""


def _of_own_name(name: str, wanted: str, path: Sequence[str]) -> str:
    """Classes of the user's of which it is a part, as `resnet` of `ResNet18`, or the other way."""
    if len(word := _plain(name)) < _SHORTEST:
        return ""
    own = [(it, [*map(_plain, it.split(".")[-2:])]) for it in _own(wanted, path)]
    near = [it for it, (_, part) in own if _is_part(word, part)]
    near = near or [it for it, (file, _) in own if _is_part(word, file)]
    return f"did you mean {' or '.join(map(repr, near[:2]))}?" if near else ""


def _is_part(one: str, other: str) -> bool:
    return one in other or (len(other) >= _SHORTEST and other in one)


def of_an_alias(class_path: str, search_path: Sequence[str]) -> str:
    """`write pytorch_lightning.callbacks.Timer` for `pl.callbacks.Timer`, which there is."""
    alias, _, rest = class_path.partition(".")
    packages = _ALIASES.get(alias, ())
    if OLD in packages:
        packages = (package_of_project(search_path), *packages)
    whole = [f"{package}.{rest}" for package in packages]
    there = (it for it in whole if (found := locate(it, search_path)) and found.name)
    return next((f"write {it}" for it in there), "")


def of_the_other_lightning(class_path: str, search_path: Sequence[str]) -> str:
    """The same class of the package of Lightning that is installed; a model is of one of them."""
    old, new = f"{OLD}.", f"{NEW}."
    for absent, there in ((old, new), (new, old)):
        if class_path.startswith(absent):
            same = there + class_path.removeprefix(absent)
            found = locate(same, search_path)
            if found is not None and found.name:
                package = there.partition(".")[0]
                return f"write {same}: Lightning is installed as {package} here"
    return ""


def in_a_folder(class_path: str, search_path: Sequence[str], wanted: str) -> str:
    """`write models.resnet.Lit` for `resnet.Lit`, where resnet.py is in the folder models."""
    module, _, name = class_path.rpartition(".")
    own = [f"{holder}.{it}" for it, holder in _own_classes(search_path)]
    below = [it for it in own if it.rpartition(".")[0].endswith(f".{module}")]
    exact = [it for it in below if it.rpartition(".")[2] == name]
    fit = fitting(exact, wanted, search_path) or [
        it for it in below if it in _own(wanted, search_path)
    ]
    return f"write {fit[0]}" if len(set(fit)) == 1 else ""


def moved_class(class_path: str, search_path: Sequence[str]) -> str:
    """`write nets.core.Net` for `nets.model.Net`, where one file of the user's has that class.

    A module of a near name comes first, which may have the class from elsewhere.
    """
    module, _, name = class_path.rpartition(".")
    project = Path(search_path[0])
    modules = [it for it, _ in own_files(project)]
    for near in near_words(module, modules, cutoff=0.8):
        there = locate(f"{near}.{name}", search_path)
        if there is not None and there.name:
            return f"did you mean '{near}.{name}'?"
    inside = [it for it in search_path[1:] if Path(it) != project and _is_source(it, project)]
    for folder in (*inside, search_path[0]):  # a module below src/ has no src in its name
        found = {f"{module}.{it}" for it, module in _own_classes([folder]) if it == name}
        if found:
            return f"write {found.pop()}" if len(found) == 1 else ""
    return ""


def _is_source(folder: str, project: Path) -> bool:
    is_inside = bool(folder) and Path(folder).is_relative_to(project)
    return is_inside and not {"site-packages", "lib"} & {*Path(folder).parts}


def _own(wanted: str, path: Sequence[str]) -> list[str]:
    """Classes of the user's folder that surely derive from what is wanted."""
    if not wanted:
        return []
    known = dict.fromkeys(f"{module}.{name}" for name, module in _own_classes(path))
    found = ((it, locate(it, path)) for it in known)
    return [it for it, at in found if at and derives_from(at, wanted, path)]


def _plain(name: str) -> str:
    return re.sub(r"[_\W]", "", name).lower()


def class_of_project(search_path: Sequence[str], wanted: str, beside: str = "") -> str:
    """A class of the user's folder that surely derives from what is wanted; empty without one.

    Args:
        search_path: As `sys.path`, with the user's folder first.
        wanted: Name of a class.
        beside: A class, as a config names it. One of its module is preferred, then one of its
            package.
    """
    own = dict.fromkeys(f"{module}.{name}" for name, module in _own_classes(search_path))
    home = beside.rpartition(".")[0]
    package = home.rpartition(".")[0]

    def is_apart(name: str) -> tuple[bool, bool]:
        module = name.rpartition(".")[0]
        return module != home, not package or module.rpartition(".")[0] != package

    found = ((it, locate(it, search_path)) for it in sorted(own, key=is_apart))
    return next((it for it, at in found if at and derives_from(at, wanted, search_path)), "")


def only_one(module: str, names: Names, wanted: str, search_path: Sequence[str]) -> str:
    """`did you mean 'nets.Net'? ...` of the one class there that is what is wanted; else empty.

    A base of another class there is not meant where it is nothing to train with by itself.
    """
    role = _ROLES.get(wanted)
    if role is None:
        return ""
    classes = [it for it in names.definitions.values() if isinstance(it, ast.ClassDef)]
    bases = {ast.unparse(base).partition("[")[0] for it in classes for base in it.bases}
    whole = {it.name for it in classes if any(getattr(m, "name", "") == role for m in it.body)}
    own = [f"{module}.{it.name}" for it in classes if it.name not in bases or it.name in whole]
    if len(fit := fitting(own, wanted, search_path)) != 1:
        return ""
    found = locate(fit[0], search_path)
    is_sure = found is not None and derives_from(found, wanted, search_path)
    return f"did you mean '{fit[0]}'? It is the only {wanted} there" if is_sure else ""


def fitting(dotted: Sequence[str], wanted: str, search_path: Sequence[str]) -> list[str]:
    """Those that may derive from what is wanted, by their text; all where anything will do."""
    return [it for it in dotted if not wanted or _may_be(it, wanted, search_path)]


def _may_be(dotted: str, wanted: str, search_path: Sequence[str]) -> bool:
    found = locate(dotted, search_path)
    if found is not None and not found.name:
        return False  # a module, such as torch
    return found is None or derives_from(found, wanted, search_path) is not False


def _classes(search_path: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names of classes and their modules: of the user's folder, then of the packages above."""
    yield from _own_classes(search_path)
    package = package_of_project(search_path)
    if find_module(package, search_path)[1]:  # not installed
        package = OLD if package == NEW else NEW
    for home in (*(f"{package}{it}" for it in _OF_LIGHTNING), *_HOMES):
        module, rest = find_module(home, search_path)
        if module is not None and not rest:
            yield from (
                (it, home)
                for it in sorted(names_of(module, search_path))
                if it[0].isupper() and "_" not in it
            )


def _own_classes(search_path: Sequence[str]) -> Iterator[tuple[str, str]]:
    for module, file in own_files(Path(search_path[0])):
        try:
            found = read_names(file).definitions
        except ConfigError:
            continue
        yield from ((name, module) for name in found if name[:1].isupper())
