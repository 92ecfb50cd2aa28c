"""Hydra's `--multirun lr=1,2` at one of our commands: the line that does it, in these words."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence

_SWITCHES = ("-m", "--multirun")
_SEVERAL = re.compile(r"[A-Za-z_][\w.]*=[^\s,'\"(\[{]+(?:,[^\s,'\"(\[{]+)+")
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
    is_local = "--cluster=local" in words or ("--cluster", "local") in itertools.pairwise(words)
    if typed[0] == "submit" and not is_local:
        swept = [[*["--sweep"] * bool(_SEVERAL.fullmatch(it)), it] for it in words]
        return f"write {command} {shlex.join(word for pair in swept for word in pair)}"
    if typed[0] not in ("submit", "run"):
        return ""
    first = [it.partition(",")[0] if _SEVERAL.fullmatch(it) else it for it in words]
    return f"one training at a time here, the first is: {command} {shlex.join(first)}"
