"""A config that was written for a Hydra app: all that is to change in it, told at once.

Sources: Hydra's pages "The Defaults List" and "Extending Configs", and the configs of
https://github.com/ashleve/lightning-hydra-template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.keys import FIELDS
from hpc_train.config.meant_words.hydra_groups import Group
from hpc_train.config.meant_words.lightning_cli import MISSING, as_fixes, key_changes, script_beside
from hpc_train.config.meant_words.owned_arguments import shape_hint
from hpc_train.config.meant_words.trainer_words import instead_of
from hpc_train.config.origins import Origins
from hpc_train.config.read import read_file
from hpc_train.config.specs import CLASS_PATH, TARGET, is_object, is_trainer
from hpc_train.config.trainer_args import OWNED
from hpc_train.config.words import did_you_mean
from hpc_train.config.yaml_slips.interpolations import HOLDS_VALUES
from hpc_train.errors import ConfigError

_LEFT_OUT = ("hydra", "extras", "debug", "experiment", "hparams_search", "local", "hparams")
_MOST = 160  # of a form in a line
_MOST_NAMES = 4
# Where an object belongs that stands at the top of a file in a folder of this name.
_PLACES = {
    **dict.fromkeys(("model", "models", "module", "net"), "model"),
    **dict.fromkeys(("data", "datamodule", "datamodules", "dataset"), "data"),
}


def check_bare_objects(bare: Mapping[Path, tuple[str, str]]) -> None:
    """Refuse files of defaults that name a class at their top, which is no key there.

    Args:
        bare: The files, each with the place of that key, and the key.

    Raises:
        ConfigError: with all of them.
    """
    if not bare:
        return
    place, key = next(iter(bare.values()))
    said = f"{place}: {key} stands at the top, and nothing says what object it is of"
    also = ", ".join(map(str, [*bare][1:]))
    said = f"{said}; in {also} as well" if also else said
    lines = [f"those of {it} below {_place_of(it)}" for it in bare]
    raise ConfigError(said, f"indent the lines {', '.join(lines).removeprefix('those ')}")


def _place_of(file: Path) -> str:
    found = _PLACES.get(file.parent.name) or _PLACES.get(file.stem)
    return f"{found}:" if found else "model: or data:"


def check_hydra(
    values: Mapping[str, Any], origins: Origins, path: Path, groups: Sequence[Group]
) -> None:
    """Refuse a whole config of a Hydra app at once, with each key that is to be another.

    A single key that is to change is left to the check of the keys, which names its line.

    Raises:
        ConfigError: with all of them in one line.
    """
    if not groups and not _is_of_an_app(values, origins):
        return
    chosen = {it.name for it in groups} | {_key_of(it, values) for it in groups}
    changes: dict[str, str] = {}
    if groups:
        changes["defaults"] = ", and ".join(_in_place(groups, values))
    told = key_changes(values, origins, "")
    changes |= {name: hint for name, hint in told if name.removesuffix(MISSING) not in chosen}
    if f"name{MISSING}" in changes and isinstance(values.get("task_name"), str):
        del changes[f"name{MISSING}"]
        changes["task_name"] = f"name: {values['task_name']}"
    changes |= _of_trainer(values.get("trainer"))
    if len(changes) < 2 and not groups:
        return
    place = groups[0].place if groups else str(path)
    named = list(dict.fromkeys(it.name for it in groups))
    more = ", ..." if named[_MOST_NAMES:] else ""
    with_names = f"defaults (groups: {', '.join(named[:_MOST_NAMES])}{more})"
    keys = [with_names if it == "defaults" else it for it in changes]
    what = f"{place}: this is a config of a Hydra app, and not so here: {', '.join(keys)}"
    script = script_beside(path, "hydra.main")
    as_it_is = [f"or as it is, with its script: hpc-train submit {script}"] if script else []
    raise ConfigError(what, "; ".join([*as_fixes(changes), *as_it_is]))


def _is_of_an_app(values: Mapping[str, Any], origins: Origins) -> bool:
    named = (it for it in ("task_name", "hydra") if it in values and not origins.is_typed(it))
    objects = (values.get("logger"), values.get("callbacks"))
    many = any(isinstance(it, Mapping) and any(map(_is_target, it.values())) for it in objects)
    return many or next(named, "") != "" or _names_the_trainer(values.get("trainer")) == TARGET


def _is_target(value: object) -> bool:
    return isinstance(value, Mapping) and TARGET in value


def _in_place(groups: Sequence[Group], values: Mapping[str, Any]) -> Iterator[str]:
    """What to write for the groups, each as a key of the config."""
    taken = [it for it in groups if it.name.partition("/")[0] not in _LEFT_OUT]
    kept = groups[0].kept
    if kept:
        yield f"defaults: [{kept}]"
    elif not taken:
        yield "leave it out"
    kept_by_x = (it for it in taken if _key_of(it, values).startswith(HOLDS_VALUES))
    others = "|".join(re.escape(it.name) for it in kept_by_x)
    for group in taken:
        form = _form_of(group, values)
        yield re.sub(rf"\$\{{({others})\.", rf"${{{HOLDS_VALUES}\1.", form) if others else form


def _key_of(group: Group, values: Mapping[str, Any]) -> str:
    """The key of a config that holds what a group chooses: `model` also for `net`."""
    meant = _PLACES.get(group.name, "")
    if group.name in FIELDS or not meant or meant in values:
        return group.name if group.name in FIELDS else f"{HOLDS_VALUES}{group.name}"
    try:
        holds_class = is_object(read_file(group.file).values)
    except ConfigError:
        holds_class = False
    return meant if holds_class else f"{HOLDS_VALUES}{group.name}"


def _form_of(group: Group, values: Mapping[str, Any]) -> str:
    """`model: {_target_: nets.Net}` of a file that says so, or where its lines belong."""
    name = group.name
    if name == "callbacks":
        return f"below trainer callbacks: [...], with the objects of {group.file}"
    if name == "logger":
        return f"loggers: [...], with the objects of {group.file}"
    key = _key_of(group, values)
    but = f", but its {TARGET}" if name == "trainer" else ""
    lines = f"{key}: with the lines of {group.file} below it{but}"
    if not group.file.is_file():
        folder = group.file.parent
        near = did_you_mean(group.choice, [it.stem for it in folder.glob("*.yaml")])
        return f"{lines} (there is no {group.file}{': ' if near else ''}{near})"
    if name in values:
        return lines
    from hpc_train.config.whole_forms import flow  # on the way to an error

    try:
        held = read_file(group.file).values
    except ConfigError:
        return lines
    is_whole = "defaults" not in held and (is_object(held) or key not in ("model", "data"))
    if name == "trainer":
        held = {it: held[it] for it in held if it not in (TARGET, CLASS_PATH, *OWNED)}
    text = flow(held)
    return f"{key}: {text}" if is_whole and len(text) <= _MOST else lines


def _of_trainer(trainer: object) -> dict[str, str]:
    """Keys of the section that hpc-train sets, and the class itself."""
    if not isinstance(trainer, Mapping):
        return {}
    named = _names_the_trainer(trainer)
    found = {f"trainer.{named}": instead_of(named, trainer[named])} if named else {}
    for name in (it for it in OWNED if it in trainer):
        hint = shape_hint(name, trainer[name], typed=False) or OWNED[name]
        hint = hint.removeprefix("write ")
        is_off = trainer[name] in (None, False) or (name, trainer[name]) == ("devices", 1)
        is_off = is_off or name == "default_root_dir"
        found[f"trainer.{name}"] = "leave it out" if is_off else hint
    return found


def _names_the_trainer(value: object) -> str:
    """The key by which a section `trainer` names Lightning's Trainer as its class, or no key."""
    if not isinstance(value, Mapping):
        return ""
    return next((it for it in (TARGET, CLASS_PATH) if is_trainer(value.get(it))), "")
