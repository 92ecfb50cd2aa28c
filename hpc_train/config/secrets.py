"""Which names hold secrets: they are passed on by name, and their values are never written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from hpc_train.config.origins import Origins

# TOKENIZERS_PARALLELISM is in every other script and is no secret: the word must end a part.
_SECRET = re.compile(
    r"(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(?:_|\Z)", re.IGNORECASE
)

_LONG = 20  # from here on a word of small letters and digits is rather a key than a name


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is treated as a secret: WANDB_API_KEY, HF_TOKEN."""
    return _SECRET.search(name) is not None


def how_to_pass(name: str) -> str:
    """What to write for a variable whose value is a secret."""
    return f"list it in env.passthrough: [{name}], and set it in the shell that submits"


def check_passthrough(values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse anything but names in `env.passthrough`, without a word of what is there instead.

    Args:
        values: Of the whole config.

    Raises:
        ConfigError: with the names that are meant.
    """
    section = values.get("env")
    given = section.get("passthrough") if isinstance(section, Mapping) else None
    given = re.split(r"[,\s]+", given.strip(" []")) if isinstance(given, str) else given
    entries = given if isinstance(given, list) else [] if given is None else [given]
    if all(entry is None or (isinstance(entry, str) and _is_name(entry)) for entry in entries):
        return
    names = [name for entry in entries for name in _names_in(entry)]
    raise origins.error(
        "env.passthrough",
        "holds more than names of variables, and is written into the run directory",
        f"names only: [{', '.join(names) or 'WANDB_API_KEY'}]; the values are those of the shell"
        " that submits",
    )


def _is_name(entry: str) -> bool:
    is_long = len(entry) >= _LONG and re.search("[a-z]", entry) and re.search(r"\d", entry)
    return bool(re.fullmatch(r"\w*", entry)) and not (is_long and entry not in os.environ)


def _names_in(entry: object) -> list[str]:
    """What stands in front of a value, or is looked up: NAME=value, $NAME, ${oc.env:NAME}."""
    if isinstance(entry, Mapping):
        return [name for key in entry for name in _names_in(str(key))]
    written = re.match(r"\$?\{?(?:oc\.env:)?([A-Za-z_]\w*)(?=[=:}]|\Z)", str(entry))
    return [written[1]] if written and _is_name(written[1]) else []
