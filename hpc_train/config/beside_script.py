"""What is taken beside a script, and what to write for a key that the script decides."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.keys import FIELDS, OF_THE_SCRIPT
from hpc_train.config.origins import Origins
from hpc_train.errors import ConfigError


def hint_beside(name: str, script: str, values: object, origins: Origins) -> str:
    """Of what was typed beside a script there is nothing to keep: it is an argument of the script.

    Args:
        name: The key: model, data, trainer and so on.
        script: Its path.
        values: What the key has.
        origins: Where each key comes from.
    """
    from hpc_train.config.script_arguments import option_for  # on the way to an error

    typed = values if isinstance(values, Mapping) else {}
    keys = [it for it in typed if origins.of(f"{name}.{it}") == COMMAND_LINE]
    if origins.of(name) != COMMAND_LINE and (not keys or len(keys) != len(typed)):
        return "keep one of them"
    options = [(option_for(it, Path(script)), typed[it]) for it in keys]
    words = " ".join(f"{option} {shlex.quote(str(it))}" for option, it in options)
    if options and all(option for option, _ in options):
        return f"it is {script}'s own: hpc-train submit {script} -- {words}, as a run of its own"
    return f"leave it out: {script} makes its own, and its arguments stand behind --"


def is_beside_script(key: str) -> bool:
    """Whether a key of the config is taken beside a script, which makes all else itself."""
    section = key.partition(".")[0].strip()
    return section in (*FIELDS, "cluster_profile") and section not in OF_THE_SCRIPT


def check_beside(path: Path, overrides: Sequence[str]) -> None:
    """Refuse words beside a script that are none of ours: its own come behind `--`."""
    for word in overrides:
        key = word.partition("=")[0].partition(".")[0].strip()
        if "=" not in word or not is_beside_script(key):
            fix = f"arguments of {path.name} come behind --: {path} -- {_as_option(path, word)}"
            if key in FIELDS and "." in word.partition("=")[0] and _has_own_options(path):
                fix = f"{key} belongs to a config, and {path.name} makes its own: change it there"
            fix = "name one script" if word.endswith(".py") else fix
            raise ConfigError(f"{word!r} is nothing that hpc-train takes beside a script", fix)


def _as_option(script: Path, word: str) -> str:
    """`--lr 0.1` for `lr=0.1` where the script declares that option; else the word itself."""
    name, equals, value = word.partition("=")
    text = script.read_text("utf-8", "replace") if script.is_file() else ""
    for option in dict.fromkeys((name, name.replace("_", "-"), name.replace("-", "_"))):
        declared = rf"add_argument\((?:\s*['\"]-\w['\"],)?\s*['\"]--{re.escape(option)}['\"]"
        if equals and re.search(declared, text):
            return f"--{option} {shlex.quote(value)}"
    return word


def _has_own_options(script: Path) -> bool:
    """Whether a script reads its words by argparse and none as `key=value`, as Hydra does."""
    text = script.read_text("utf-8", "replace") if script.is_file() else ""
    others = r"hydra|omegaconf|fiddle|\bfire\b|sys\.argv|nargs|parse_known|CLI"
    return "argparse" in text and re.search(others, text) is None
