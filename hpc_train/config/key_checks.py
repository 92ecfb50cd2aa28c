"""The keys of a config, before their values are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.missing_colons import pairs_meant
from hpc_train.config.origins import Origins
from hpc_train.config.required import check_required
from hpc_train.config.unknown_key import unknown_key


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
            section, _, key = name.partition(".")
            hint = f"write {section}: {{{key}: ...}}; keys with points are for the command line"
            hint = hint if section else f"what only holds an anchor begins with x-: x-{key}: ..."
            raise origins.error(name, "is one key with a point in it", hint)
        if name not in FIELDS:
            raise unknown_key(name, FIELDS, origins, values)
        if name in SECTIONS:
            _check_section(name, values, origins)
    check_required(values, origins, path)
    for name in ("model", "data", "trainer"):
        if meant := pairs_meant(values.get(name)):
            raise origins.error(name, f"is {values[name]!r}", f"write below it {meant}")
        if name != "trainer" and isinstance(values.get(name), str):
            # on the way to an error
            from hpc_train.config.specs import CLASS_PATH, wanted_of
            from hpc_train.config.whole_forms import whole_form

            written = f"{name}: {whole_form({CLASS_PATH: values[name]}, wanted_of(name))}"
            raise origins.error(name, f"is {values[name]!r}", f"write {written}")


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
        example = f"write below it {meant}" if meant else example
        raise origins.error(name, f"is {value!r}", f"it is a section: {example}")
    for key in value:
        if key not in SECTIONS[name]:
            raise unknown_key(f"{name}.{key}", SECTIONS[name], origins, values)
