"""Keys with points in a file, as `model.init_args.lr: 0.5`: where each belongs in that file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.origins import Origins
from hpc_train.errors import ConfigError

_LINE = "; keys with points are for the command line"


def with_a_point(name: str, values: Mapping[str, Any], origins: Origins) -> ConfigError:
    """The refusal of such a key, with all of its section that stand in the same file.

    Args:
        name: As `trainer.max_epochs`.
        values: Of the whole config.
        origins: For its file and line.
    """
    section, _, key = name.partition(".")
    said = "is one key with a point in it"
    if not section:
        return _error(
            origins, name, said, f"what only holds an anchor begins with x-: x-{key}: ..."
        )
    file = origins.of_pointed(name).rpartition(":")[0]
    dotted = [
        it
        for it in values
        if it.startswith(f"{section}.") and origins.of_pointed(it).rpartition(":")[0] == file
    ]
    said = f"{said}, as {dotted[1]} is" if len(dotted) == 2 else said
    said = f"{said}, as {len(dotted) - 1} more of {section} are" if dotted[2:] else said
    hint = in_the_file({it: values[it] for it in dotted}, file)
    error = _error(origins, name, said, f"{hint}{_LINE}")
    error.keys = tuple(dotted) or (name,)  # one mend for all of them
    return error


def in_the_file(dotted: Mapping[str, Any], file: str) -> str:
    """What to write into a file for keys with points, which may have their section already."""
    whole = f"write {_flow(_nested(tuple(dotted), dotted))[1:-1]}"
    return _standing(tuple(dotted), dotted, _tree(file)) or whole


def stands_at_the_top(name: str, file: str) -> bool:
    """Whether a file has this key itself, and not a sweep in it."""
    return _depth([name], _tree(file))[0] == 1


def _error(origins: Origins, name: str, said: str, hint: str) -> ConfigError:
    """Of the place of the key itself: in another file the section may have the same key."""
    return Origins({name: origins.of_pointed(name)}).error(name, said, hint)


def _standing(dotted: Sequence[str], values: Mapping[str, Any], tree: yaml.Node | None) -> str:
    """What to write where the file has the section, or a part of the keys; empty where it has not.

    Args:
        dotted: The keys.
        values: Of the whole config, with their values.
        tree: Of the file.
    """
    told: dict[str, dict[str, Any]] = {}
    for name in dotted:
        words = _words(name)
        depth, line, where = _depth(words, tree)
        if not depth:
            return ""
        there = f"there is {'.'.join(words[:depth])} on line {line}"
        below = words[depth:]
        if not below:
            told[f"{there}: write {_flow(values[name])} there"] = {}
        else:
            _put(told.setdefault(f"{there}: write {where}", {}), below, values[name])
    return "; ".join(f"{said} {_flow(it)[1:-1]}" if it else said for said, it in told.items())


def _words(name: str) -> list[str]:
    return [it for it in name.split(".") if it]


def _depth(words: Sequence[str], tree: yaml.Node | None) -> tuple[int, int, str]:
    """How many of the words, from the first one, stand in the file; the line of the last.

    And where a key of its own is written.
    """
    depth = line = 0
    while isinstance(tree, yaml.MappingNode) and depth < len(words):
        found = next((it for it in tree.value if it[0].value == words[depth]), None)
        if found is None or (depth + 1 < len(words) and not isinstance(found[1], yaml.MappingNode)):
            break
        depth, line, tree = depth + 1, found[0].start_mark.line + 1, found[1]
    is_flow = isinstance(tree, yaml.MappingNode) and tree.flow_style
    return depth, line, "in its braces" if is_flow else "below it"


def _tree(file: str) -> yaml.Node | None:
    try:
        return yaml.compose(Path(file).read_text("utf-8"), Loader=yaml.SafeLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return None


def _nested(dotted: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for name in dotted:
        _put(whole, _words(name), values[name])
    return whole


def _put(into: dict[str, Any], words: Sequence[str], value: Any) -> None:
    for word in words[:-1]:
        below = into.setdefault(word, {})
        into = below if isinstance(below, dict) else into
    into[words[-1]] = value


def _flow(value: Any) -> str:
    from hpc_train.config.whole_forms import flow  # on the way to an error

    return flow(value)


def with_a_point_below(
    section: str, key: str, values: Mapping[str, Any], origins: Origins
) -> ConfigError:
    """The refusal of a key with points in a section, as `slurm.nodes` below `slurm`.

    Args:
        section: As `slurm`.
        key: As it stands below it.
        values: Of the whole config.
        origins: For its file and line.
    """
    full = f"{section}.{key}"
    words = _words(key.removeprefix(f"{section}."))
    error = origins.error(full, "is one key with a point in it")
    error.hint = _in_a_section(section, words, full, values, origins)
    return error


def _in_a_section(
    section: str, words: list[str], full: str, values: Mapping[str, Any], origins: Origins
) -> str:
    own = values[section]
    value = own[full.removeprefix(f"{section}.")]
    if words and words[-1] in SECTIONS[section] and words[0] not in (*FIELDS, *SECTIONS[section]):
        words = words[-1:]
    if len(words) == 1 and words[0] not in SECTIONS[section]:
        from hpc_train.config.meant_words.unknown_key import unknown_key  # needs this package

        meant = {**values, section: {**own, words[0]: value}}
        hint = unknown_key(f"{section}.{words[0]}", SECTIONS[section], origins, meant).hint
        return hint.replace(f"'{section}.", "'")
    if not words or words[0] not in (*FIELDS, *SECTIONS[section]):
        return f"known: {', '.join(SECTIONS[section])}"
    if words[0] in SECTIONS[section] and isinstance(own.get(words[0]), Mapping) and words[1:]:
        return f"write below {section}.{words[0]}: {_flow(_nest(words[1:], value))[1:-1]}"
    pair = _flow(_nest(words, value))[1:-1]
    if words[0] in SECTIONS[section]:
        return f"write {pair}"
    if isinstance(values.get(words[0]), Mapping):
        return f"write below {words[0]}: {_flow(_nest(words[1:], value))[1:-1]}"
    return f"write {pair}, beside {section} and not below it"


def _nest(words: Sequence[str], value: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    _put(whole, words, value)
    return whole
