"""Overrides of a script that is a Hydra app, against the keys that its own files have.

Only where the text tells all: `config_path` and `config_name` are written out, nothing is put into
Hydra's ConfigStore, and no option of Hydra's chooses other files. Hydra refuses a key that is not
there, once the job runs (hydra/_internal/config_loader_impl.py, _apply_overrides_to_config).
Source: Hydra's pages "Basic Override syntax" and "The Defaults List".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.origins import Origins
from hpc_train.config.python_text.script_tree import words_in
from hpc_train.config.read import read_file
from hpc_train.config.scripts.script_starts import own_modules
from hpc_train.config.words import near_words
from hpc_train.errors import ConfigError

if TYPE_CHECKING:
    from hpc_train.config.schema import Config

_OVERRIDE = re.compile(r"(?P<key>[A-Za-z_][\w.]*)=(?P<value>.*)", re.DOTALL)
_OPTIONS = ("-", "hydra.searchpath", "hydra/")  # they may choose other files, or print alone
_STORED = ("ConfigStore", "compose", "initialize", "register_configs", "searchpath")
_MOST_SHOWN = 8


class _UnsureError(Exception):
    """The files do not tell all keys."""


@dataclass
class _App:
    folder: Path
    main: Path
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)  # of what each key of the top is from


def check_overrides(
    tree: ast.Module, config: Config, workdir: Path, search_path: Sequence[str], origins: Origins
) -> None:
    """Refuse an override of a key, or the choice of a file, that the app has not.

    Args:
        tree: The script.
        workdir: Where it is started.
        search_path: What the ranks' Python has behind the script's folder.

    Raises:
        ConfigError: with what to write.
    """
    main, words = _main_of(tree), [str(it) for it in config.script.args]
    if main is None or not words or any(it.startswith(_OPTIONS) for it in words):
        return
    file = (workdir / (config.script.path or "")).resolve()
    texts = (tree, *own_modules(tree, file, [str(file.parent), *search_path]))
    if not {*_STORED}.isdisjoint(set[str]().union(*map(words_in, texts))):
        return
    said, hint = refused_override(file.parent / main[0], main[1], words)
    if said:
        raise origins.error("script.args", f": {config.script.path} refuses {said}", hint)


def refused_override(folder: Path, name: str, words: Sequence[str]) -> tuple[str, str]:
    """The first override of what is not there, and what to write; empty without any.

    Args:
        folder: Of the configs.
        name: Of the file that the app reads.
        words: What the script is given.
    """
    found = [it for it in map(_OVERRIDE.fullmatch, words) if it]
    chosen = {it["key"]: it["value"] for it in found}
    for group, choice in chosen.items():
        if (folder / group).is_dir() and (told := _no_choice(folder, group, choice)):
            return told
    if any(
        it.startswith("+") and (folder / it.strip("+").partition("=")[0]).is_dir() for it in words
    ):
        return "", ""
    app = _App(folder, folder / f"{name.removesuffix('.yaml')}.yaml")
    try:
        _read(app, app.main, "", chosen)
    except (_UnsureError, ConfigError):
        return "", ""
    absent = (_absent(app, it[0], it["key"]) for it in found)
    return next((it for it in absent if it), ("", ""))


def _no_choice(folder: Path, group: str, choice: str) -> tuple[str, str] | None:
    """`model=smal` where the folder model has small.yaml; None of what is there or unsure."""
    names = sorted(it.stem for it in (folder / group).glob("*.yaml"))
    if not names or choice in (*names, "null", "") or not re.fullmatch(r"[\w-]+", choice):
        return None
    near = near_words(choice, names)
    fix = " or ".join(f"{group}={it}" for it in near or names[:_MOST_SHOWN])
    return f"{group}={choice}: {folder.name}/{group} has no {choice}.yaml", f"write {fix}"


def _main_of(tree: ast.Module) -> tuple[str, str] | None:
    """Folder and name of the config that the one `@hydra.main(...)` of a script names."""
    calls = [
        it
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for it in node.decorator_list
        if isinstance(it, ast.Call) and ast.unparse(it.func) == "hydra.main"
    ]
    if len(calls) != 1 or len(calls[0].args) > 2:
        return None
    given: dict[str | None, ast.expr] = dict(
        zip(("config_path", "config_name"), calls[0].args, strict=False)
    )
    given |= {it.arg: it.value for it in calls[0].keywords}
    texts = [given.get(it) for it in ("config_path", "config_name")]
    names = [it.value for it in texts if isinstance(it, ast.Constant) and isinstance(it.value, str)]
    return (names[0], names[1]) if len(names) == 2 and "://" not in names[0] else None


def _read(app: _App, file: Path, package: str, chosen: Mapping[str, str]) -> None:
    """Merge a file and those that its defaults list names; the order is of no matter for keys."""
    if not file.is_file():
        raise _UnsureError
    values = dict(read_file(file).values)
    head = re.search(r"^#\s*@package\s+(\S+)", file.read_text("utf-8"), re.MULTILINE)
    if head and head[1] not in ("_global_", "_group_"):
        raise _UnsureError
    of_hydra = values.get("hydra")
    if isinstance(of_hydra, Mapping) and "searchpath" in of_hydra:
        raise _UnsureError
    package = "" if head and head[1] == "_global_" else package
    for element in values.pop("defaults", None) or ():
        _take(app, file, element, chosen, package)
    if package:
        if "." in package:
            raise _UnsureError
        values = {package: values}
    for key, value in values.items():
        _merge(app.values, key, value)
        app.files.setdefault(str(key), file)


def _take(app: _App, file: Path, element: object, chosen: Mapping[str, str], package: str) -> None:
    """One element of a defaults list: a file beside this one, or a group and its choice."""
    if element == "_self_":
        return
    if isinstance(element, str):
        if re.search(r"[@$ /]", element):
            raise _UnsureError
        _read(app, file.parent / f"{element.removesuffix('.yaml')}.yaml", package, chosen)
        return
    if not isinstance(element, Mapping) or len(element) != 1 or file.parent != app.folder:
        raise _UnsureError
    ((name, listed),) = element.items()
    group = re.sub(r"^optional\s+", "", str(name))
    if group == "hydra" or re.sub(r"^override\s+", "", group).startswith("hydra/"):
        return
    choice: object = chosen.get(group, listed)
    if choice in (None, "null"):
        return
    if not isinstance(choice, str) or re.search(r"[@/ $]", group) or "$" in choice:
        raise _UnsureError
    target = app.folder / group / f"{choice.removesuffix('.yaml')}.yaml"
    if not target.is_file() and group == name:
        raise _UnsureError  # Hydra's own words tell it
    if target.is_file():
        _read(app, target, group, chosen)


def _merge(into: dict[str, Any], key: Any, value: Any) -> None:
    held = into.get(key)
    if isinstance(held, dict) and isinstance(value, Mapping):
        for name, it in value.items():
            _merge(held, name, it)
    elif not isinstance(held, dict) or value is not None:
        into[key] = dict(value) if isinstance(value, Mapping) else value


def _absent(app: _App, word: str, key: str) -> tuple[str, str] | None:
    """What is said of a key that is not there; None of one that is, or that may be."""
    parts = key.split(".")
    if parts[0] == "hydra" or (app.folder / key).is_dir() or (app.folder / parts[0]).is_file():
        return None
    held: Any = app.values
    there: list[str] = []
    while isinstance(held, Mapping) and len(there) < len(parts) and parts[len(there)] in held:
        held = held[parts[len(there)]]
        there.append(parts[len(there)])
    if len(there) == len(parts) or not isinstance(held, Mapping):
        return None  # it is there, or an interpolation or a list is above it
    above = ".".join(there)
    file = app.files.get(parts[0], app.main)
    said = f"{word}: {file.relative_to(app.folder.parent)} has no {key}"
    return said, _fix(word, key, [*_keys(app.values)], above, held)


def _fix(word: str, key: str, known: Sequence[str], above: str, held: Mapping[str, Any]) -> str:
    """What was meant: a name near to it in its place, or the same name in another."""
    value, last = word.partition("=")[2], key.rpartition(".")[2]
    plain = [str(it) for it, of in held.items() if not isinstance(of, Mapping)]
    beside = [f"{above}.{it}".lstrip(".") for it in near_words(last, plain, cutoff=0.75)]
    near = beside[:1] or [it for it in known if it.rpartition(".")[2] == last]
    if near:
        return f"write {' or '.join(f'{it}={value}' for it in near[:2])}"
    names = [f"{above}.{it}".lstrip(".") for it in held]
    shown = ", ".join(names[:_MOST_SHOWN]) + (", ..." if names[_MOST_SHOWN:] else "")
    return (
        f"it has {shown}; +{word} adds a key that the program reads"
        if shown
        else f"+{word} adds it"
    )


def _keys(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in values.items():
        key = f"{above}{name}"
        yield key
        if isinstance(value, Mapping):
            yield from _keys(value, f"{key}.")
