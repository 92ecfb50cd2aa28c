"""What to type for a command that there is not, with the words that were typed behind it."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Sequence

from hpc_train.cli.option_hints import command_hint

_FILES = (".yaml", ".yml", ".py")
_BY_OPTION = ("--config", "-c")  # as Lightning's command line has the file
_STARTS = ("submit CFG", "run CFG")


def meant_command(words: Sequence[str], commands: Collection[str]) -> tuple[str, str]:
    """A command that may be meant, and the whole line to type; either may be empty.

    Args:
        words: As they were typed: the first is no command.
        commands: Those that there are.
    """
    name, *behind = words
    if name.endswith(_FILES):
        return f"submit {name}", _starts(name, behind)
    if name == "help":
        known = behind[:1] if behind and behind[0] in commands else []
        return " ".join([*known, "--help"]), ""
    if not (meant := command_hint(name)):
        near = difflib.get_close_matches(name, commands, n=1)
        line = shlex.join(["hpc-train", *near, *behind]) if near and behind else ""
        return (near[0] if near else ""), line
    files = [it for it in behind if _value(it).endswith(_FILES)]
    if "CFG" in meant and files:
        rest = [it for it in behind if it not in (files[0], *_BY_OPTION)]
        if meant in _STARTS:
            return meant, _starts(_value(files[0]), rest)
        return meant, f"hpc-train {meant.replace('CFG', shlex.quote(_value(files[0])))}"
    if "RUN" in meant and behind and not behind[0].startswith("-"):
        return meant, f"hpc-train {meant.replace('RUN', shlex.quote(behind[0]))}"
    return meant, ""


def _value(word: str) -> str:
    """`first.yaml` of `--config=first.yaml`, and any other word itself."""
    return word.partition("=")[2] if word.startswith("-") else word


def _starts(file: str, rest: Sequence[str]) -> str:
    """The lines that train it here and on the cluster, with the keys of the config.

    Options may be another command's: that some were typed is shown, and they are not repeated.
    """
    keys = [it for it in rest if re.fullmatch(r"[A-Za-z_][\w.]*=.*", it)]
    typed = shlex.join([file, *keys]) + (" ..." if len(rest) > len(keys) else "")
    return f"hpc-train run {typed} (here), hpc-train submit {typed} (on the cluster)"
