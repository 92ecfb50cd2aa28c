"""Several values where one training is started, or Hydra's `--multirun`: the line that does it."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence

from hpc_train.cli.dotted_options import with_whole_key

_SWITCHES = ("-m", "--multirun")
_SEVERAL = re.compile(r"[A-Za-z_][\w.]*=[^\s,'\"(\[{]+(?:,[^\s,'\"(\[{]+)+")
_PLAIN_SWEEP = re.compile(r"(?P<key>[\w.]+)=(?P<first>[\w.+-]+)(?:,[\w.+-]+)*")
_CONFIGS = (".yaml", ".yml")


def of_multirun(name: str, command: str, typed: Sequence[str]) -> str:
    """What to type; empty where nothing varies, or no config was typed.

    Args:
        name: Of the option that there is not.
        command: `hpc-train submit`.
        typed: The words behind `hpc-train`, the command's name first.
    """
    if name not in ("m", "multirun"):
        return ""
    words = [it for it in typed[1:] if it not in _SWITCHES]
    is_plain = any(it.endswith(_CONFIGS) for it in words) and "--" not in words
    if not is_plain or not any(map(_SEVERAL.fullmatch, words)):
        return ""
    words = [with_whole_key(it, words) for it in words]
    is_local = "--cluster=local" in words or ("--cluster", "local") in itertools.pairwise(words)
    if typed[0] == "submit" and not is_local:
        swept = [[*["--sweep"] * bool(_SEVERAL.fullmatch(it)), it] for it in words]
        return f"write {command} {shlex.join(word for pair in swept for word in pair)}"
    if typed[0] not in ("submit", "run"):
        return ""
    first = [it.partition(",")[0] if _SEVERAL.fullmatch(it) else it for it in words]
    return f"one training at a time here, the first is: {command} {shlex.join(first)}"


def first_point(command: str, typed: Sequence[str]) -> str:
    """What to type for a sweep where one training at a time runs; empty where that is not plain.

    Args:
        command: `hpc-train run`.
        typed: The words behind `hpc-train`, the command's name first.
    """
    whole = [_with_whole_key(it, typed) for it in typed[1:]]
    words, values = list(whole), []
    for at, word in enumerate(whole):
        option, equals, value = word.partition("=")
        if option != "--sweep":
            continue
        value = value if equals else words[at + 1] if at + 1 < len(words) else ""
        found = _PLAIN_SWEEP.fullmatch(value)
        if found is None:
            return ""
        words[at] = f"{found['key']}={found['first']}"
        if not equals:
            words[at + 1] = ""
        values.append(value)
    if not values or not any(it.endswith((".yaml", ".yml", ".py")) for it in words):
        return ""  # of a script, whose {KEY} stand behind --
    line = f"{command} {shlex.join(filter(None, words))}"
    same = "hpc-train submit with the same words"
    there = same if whole == list(typed[1:]) else f"hpc-train submit {shlex.join(whole)}"
    return (
        f"one training at a time here, the first is: {line}; on a cluster all of them are {there}"
    )


def _with_whole_key(word: str, typed: Sequence[str]) -> str:
    option, equals, swept = word.partition("=")
    if option == "--sweep" and equals:
        return f"--sweep={with_whole_key(swept, typed)}"
    return with_whole_key(word, typed)
