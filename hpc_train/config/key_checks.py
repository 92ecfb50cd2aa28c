"""The keys of a config, before their values are looked at."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.meant_words.unknown_key import unknown_key
from hpc_train.config.origins import Origins
from hpc_train.config.required import check_required
from hpc_train.config.words import OF_DATA
from hpc_train.config.yaml_slips.missing_colons import pairs_meant


def check_keys(values: Mapping[str, Any], origins: Origins, path: Path) -> None:
    """Refuse a key that there is not, a section that is none, and a config without what it needs.

    Args:
        values: Of the whole config, not typed yet.
        path: The file, for messages.

    Raises:
        ConfigError: with the key, and what to write.
    """
    for name in values:
        if "." in name:
            from hpc_train.config.yaml_slips.pointed_keys import (
                with_a_point,  # on the way to an error
            )

            raise with_a_point(name, values, origins)
        if name not in FIELDS:
            raise unknown_key(name, FIELDS, origins, values)
        if name in SECTIONS:
            _check_section(name, values, origins)
    check_required(values, origins, path)
    for name in ("model", "data", "trainer"):
        if meant := pairs_meant(values.get(name)):
            raise origins.error(name, f"is {values[name]!r}", f"write below it {meant}")
        if name != "trainer" and isinstance(values.get(name), str):
            raise origins.error(name, f"is {values[name]!r}", _as_object(name, values[name]))


def _as_object(key: str, written: str) -> str:
    """What to write for the text that stands where the model or the data are an object."""
    from hpc_train.config.specs import CLASS_PATH, wanted_of  # on the way to an error
    from hpc_train.config.whole_forms import whole_form

    is_path = written.startswith(("/", "~", "./", "../")) or Path(written).exists()
    is_path = is_path or written.endswith(OF_DATA)
    if is_path and Path(written).suffix != ".py":
        form = whole_form({}, wanted_of(key))[1:-1]
        argument = f"a path is an argument of it: {key}.init_args.NAME={written}"
        return f"{key} names the class ({form}); {argument}"
    if written.startswith(("/", "~", "../")):  # code elsewhere
        return f"name the class with its module, as in {key}: {whole_form({}, wanted_of(key))}"
    return f"write {key}: {whole_form({CLASS_PATH: written}, wanted_of(key))}"


# Sections that others write as a file alone: the key of it, and what it looks like.
_KEY_OF_A_FILE = {
    "script": ("path", r".+\.py"),
    "container": ("image", r"\S+\.(?:sif|sqsh|img)|/\S+|\w+://\S+"),
}


def _check_section(name: str, values: Mapping[str, Any], origins: Origins) -> None:
    value = values[name]
    if isinstance(value, bool) and "enabled" in SECTIONS[name]:
        word = str(value).lower()
        is_typed = origins.is_typed(name)
        hint = f"write {name}.enabled={word}" if is_typed else f"write {name}: {{enabled: {word}}}"
        raise origins.error(name, f"is {str(value).lower()}", hint)
    if not isinstance(value, Mapping):
        example = f"write keys below it, such as {name}: {{{SECTIONS[name][0]}: ...}}"
        example = "write snapshot: git" if name == "snapshot" else example
        meant = pairs_meant(value)
        key, form = _KEY_OF_A_FILE.get(name, ("", ""))
        if key and not meant and isinstance(value, str) and re.fullmatch(form, value):
            is_typed = origins.is_typed(name)
            fix = (
                f"{name}.{key}={shlex.quote(value)}" if is_typed else f"{name}: {{{key}: {value}}}"
            )
            raise origins.error(name, f"is {value!r}", f"write {fix}")
        if name == "notify" and isinstance(value, str) and not meant:
            from hpc_train.config.meant_words.notify_words import of_section

            if hint := of_section(value, values, typed=origins.is_typed(name)):
                raise origins.error(name, "is a section, and has a text", hint)  # maybe a secret
        if isinstance(value, list):
            from hpc_train.config.yaml_slips.dashes import without_dashes  # on the way to an error

            example = without_dashes(value) or example
        example = f"write below it {meant}" if meant else example
        raise origins.error(name, f"is {value!r}", f"it is a section: {example}")
    for key in value:
        if "." in str(key):
            from hpc_train.config.yaml_slips.pointed_keys import (
                with_a_point_below,  # on the way to an error
            )

            raise with_a_point_below(name, key, values, origins)
        if key not in SECTIONS[name]:
            raise unknown_key(f"{name}.{key}", SECTIONS[name], origins, values)
