"""What to write for a key that a script decides."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.origins import Origins


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
