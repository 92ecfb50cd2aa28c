"""A sweep: keys with several values each, and the configs of all their combinations."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.config.keys import FIELDS, OF_THE_SCRIPT
from hpc_train.config.load import LoadedConfig, with_values
from hpc_train.config.origins import Origins
from hpc_train.config.ranges import RANGES
from hpc_train.config.schema import Config
from hpc_train.config.scripts.script_file import check_args
from hpc_train.config.scripts.swept_arguments import where_it_belongs
from hpc_train.config.show import escape
from hpc_train.config.submission_words import words_of_point
from hpc_train.config.sweeps.meant_sweep import throttled, with_swept_keys
from hpc_train.config.sweeps.sweep_of_wandb import check_range, check_wandb
from hpc_train.config.whole_forms import flow
from hpc_train.config.words import split_words
from hpc_train.errors import ConfigError

# Slurm's default MaxJobCount (slurm.conf(5)): no controller as it is installed holds more jobs.
MOST_POINTS = 10_000
_RANGE = re.compile(r"range\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?(?:,\s*(-?\d+)\s*)?\)\Z")
_FROM_TO = re.compile(r"(\d+)(?:-|\.\.\.?|:)(\d+)")
_ARGUMENT = re.compile(r"(model|data)\.init_args\.(\w+)\Z")
_SWEEP = "sweep"  # the section
_ARGS = "script.args"


def check_is_one(loaded: LoadedConfig) -> None:
    """Refuse a sweep where one training is wanted.

    Raises:
        ConfigError: with both ways out.
    """
    if loaded.config.sweep:
        fix = (
            "hpc-train submit takes it, in Python hpc_train.submit_sweep(loaded); for one training"
            " leave it out, or write sweep={} where a file has it"
        )
        raise loaded.origins.error("sweep", "makes many trainings of the config", fix)


def points_of(loaded: LoadedConfig) -> list[dict[str, Any]]:
    """Those of a config's sweep; see `sweep_points`."""
    check_wandb(loaded.config.sweep, loaded.origins, loaded.composed.values)
    return sweep_points(loaded.config.sweep, loaded.origins)


def sweep_points(sweep: Mapping[str, Any], origins: Origins) -> list[dict[str, Any]]:
    """The points as value by key, the last key's values changing first.

    Args:
        sweep: The section: for each key a list, or text like `range(3)` or `range(1, 9, 2)`.
        origins: For the file and line of an error.

    Raises:
        ConfigError: for a key without values or with one of them twice, and for too many points.
    """
    axes = dict(_axes(sweep, "", origins))
    number = math.prod(len(values) for values in axes.values())
    if number > MOST_POINTS:
        raise ConfigError(
            f"the sweep has {number:,} points, and at most {MOST_POINTS:,} fit into one",
            "give fewer values, or submit it in parts",
        )
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def without_array(loaded: LoadedConfig) -> str:
    """What trains a sweep where no job array can: its points one by one, with the first's line."""
    first = points_of(loaded)[0]
    filled = _filled_keys(loaded, first)
    values = {key: first[key] for key in filled}
    chosen = [f"{key}={flow(value)}" for key, value in first.items() if key not in filled]
    origins = loaded.origins
    if filled and not origins.is_typed(_ARGS):
        arguments = [_filled(word, values) for word in loaded.config.script.args]
        chosen.append(f"{_ARGS}={flow(arguments)}")
    if not all(origins.is_typed(f"{_SWEEP}.{key}") for key in first):
        chosen.insert(0, f"{_SWEEP}={{}}")
    words = loaded.composed.words or [str(loaded.files[-1])]
    typed = shlex.join(words_of_point(words, chosen, lambda word: _filled(word, values)))
    return f"train its points one by one, the first with: hpc-train run {typed}"


def is_plain(loaded: LoadedConfig, points: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the points differ in nothing but what `config.validate.point_check` looks at.

    So are numbers and texts for arguments of the model and the data, and seeds: `plain_point` then
    gives what reading the config anew would.
    """
    if loaded.config.script.path or "${" in repr(loaded.composed.values):
        return False  # another value may be made of a swept one
    return all(_is_plain(key, value) for point in points for key, value in point.items())


def plain_point(first: Config, overrides: Mapping[str, Any]) -> Config:
    """The config of a point, from that of the first one."""
    changes: dict[str, Any] = {}
    for key, value in overrides.items():
        if found := _ARGUMENT.match(key):
            section, name = found.groups()
            spec = changes.get(section, getattr(first, section))
            changes[section] = {**spec, "init_args": {**spec["init_args"], name: value}}
        else:
            changes[key] = value
    return dataclasses.replace(first, **changes)


def load_point(loaded: LoadedConfig, overrides: Mapping[str, Any]) -> LoadedConfig:
    """The config of one point, read as if its values stood on the command line.

    In the arguments of a script a value takes the place of its key in braces: `--lr {lr}`.

    Raises:
        ConfigError: for a key that is neither in the arguments nor one of the config.
    """
    places = {key: loaded.origins.of(f"{_SWEEP}.{key}") for key in overrides}
    values, script = dict(overrides), loaded.config.script
    if script.path:
        filled = _filled_keys(loaded, values)
        _check_places([key for key in values if key not in filled], loaded)
        if filled:
            chosen = {key: values.pop(key) for key in filled}
            values[_ARGS] = escape([_filled(word, chosen) for word in script.args])
            check_args(values[_ARGS], loaded.origins)
            places[_ARGS] = places[min(filled)]
    try:
        return with_values(loaded, values, places, without=_SWEEP)
    except ConfigError as error:
        of_files = {
            key: value
            for key, value in loaded.config.sweep.items()
            if key in values and not loaded.origins.is_typed(f"{_SWEEP}.{key}")
        }
        with_swept_keys(error, of_files, loaded.config.sweep)
        raise


def _check_places(keys: Sequence[str], loaded: LoadedConfig) -> None:
    """Refuse keys that are not filled in and are none of the config."""
    sections = {key: key.partition(".")[0] for key in keys}
    missing = [key for key, it in sections.items() if it not in FIELDS or it in OF_THE_SCRIPT]
    if missing:
        script, key = loaded.config.script, missing[0]
        args = list(map(str, script.args))
        fix = where_it_belongs(key, missing, args, loaded.origins)
        what = f"has no place in the arguments of {script.path}"
        raise loaded.origins.error(f"{_SWEEP}.{key}", what, fix)


def _filled_keys(loaded: LoadedConfig, overrides: Mapping[str, Any]) -> set[str]:
    """The keys of a point that have a place in the arguments of a script."""
    words = list(map(str, loaded.config.script.args))
    return {key for key in overrides if any(_braced(key) in word for word in words)}


def _filled(word: str, chosen: Mapping[str, Any]) -> Any:
    for key, value in chosen.items():
        if word == _braced(key):
            return value
        word = word.replace(_braced(key), str(value))
    return word


def _braced(key: str) -> str:
    return f"{{{key}}}"


def _is_plain(key: str, value: object) -> bool:
    if key == "seed":
        allowed = RANGES["seed"]
        return type(value) is int and allowed.least <= value <= allowed.most
    return _ARGUMENT.match(key) is not None and type(value) in (bool, int, float, str)


def _axes(
    values: Mapping[str, Any], prefix: str, origins: Origins
) -> Iterator[tuple[str, Sequence[Any]]]:
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            check_range(key, value, origins)
            yield from _axes(value, f"{key}.", origins)
        else:
            yield key, _values(key, value, origins)


def _values(key: str, value: Any, origins: Origins) -> Sequence[Any]:
    full = f"{_SWEEP}.{key}"
    found = _RANGE.match(value.strip()) if isinstance(value, str) else None
    values: Sequence[Any]
    if found:
        numbers = [int(text) for text in found.groups() if text is not None]
        if numbers[2:] == [0]:
            raise origins.error(full, f"is {value}, whose step is 0", "write range(START, END)")
        values = range(*numbers)
    elif isinstance(value, list):
        values = value
        _refuse_doubles(full, value, origins)
    elif isinstance(value, str) and (parts := throttled(value)):
        written = parts[0] if "(" in parts[0] else f"[{parts[0].strip('[]')}]"
        hint = f"write {written}, and submit it with --at-most {parts[1]}"
        raise origins.error(full, f"is {value}, whose %{parts[1]} is of Slurm's --array", hint)
    else:
        words = split_words(value) if isinstance(value, str) else [str(value)]
        is_plain = all(re.fullmatch(r"[\w.+-]+", word) for word in words)
        hint = f"write a list: [{', '.join(words)}]" if is_plain else "write a list"
        many = _FROM_TO.fullmatch(words[0]) if len(words) == 1 else None
        as_range = (
            f"range({many[1]}, {int(many[2]) + 1})"
            if many and int(many[1]) < int(many[2])
            else "range(3)"
        )
        raise origins.error(full, f"is {value!r}", f"{hint}, or {as_range}")
    if not values:
        raise origins.error(full, "has no values, so the sweep has no points", "give it some")
    return values


def _refuse_doubles(full: str, values: Sequence[Any], origins: Origins) -> None:
    seen: set[str] = set()
    for item in map(repr, values):
        if item in seen:
            raise origins.error(full, f"has {item} twice", "keep one; to repeat, sweep the seed")
        seen.add(item)
