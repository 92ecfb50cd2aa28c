"""The places of a sweep's values in the arguments of a script, for a refusal."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from hpc_train.config.origins import Origins
from hpc_train.config.whole_forms import flow

_ARGS = "script.args"
_VALUE = re.compile(r"[^-]|-\.?\d")  # of an option, how it begins


def where_it_belongs(key: str, missing: Sequence[str], args: Sequence[str], at: Origins) -> str:
    """What to write for values without a place: all arguments, where they stand.

    Args:
        key: The one that is told of.
        missing: It, and other keys without a place.
        args: Of the script, as they are.
        at: Where these stand.
    """
    words = list(args)
    for name in missing:
        words = _placed(name, words)
    what = f"write {{{key}}} where the value belongs"
    if not args or at.is_typed(_ARGS):
        return f"{what}: -- {' '.join(map(_typed, words))}"
    return f"{what}, at {at.prefix(_ARGS)}args: {flow(words)}"


def _placed(key: str, words: Sequence[str]) -> list[str]:
    """With `{key}` as the value of its option, or with that option at the end."""
    for at, word in enumerate(words):
        name, sign, _ = word.partition("=")
        if name.lstrip("-+").replace("-", "_") != key.replace("-", "_"):
            continue
        if sign:
            return [*words[:at], f"{name}={{{key}}}", *words[at + 1 :]]
        if name[:1] == "-":
            is_given = at + 1 < len(words) and _VALUE.match(words[at + 1])
            return [*words[: at + 1], f"{{{key}}}", *words[at + (2 if is_given else 1) :]]
    are_pairs = bool(words) and all(re.match(r"[^-=]+=", word) for word in words)  # Hydra's
    return [*words, f"{key}={{{key}}}"] if are_pairs else [*words, f"--{key}", f"{{{key}}}"]


def _typed(word: str) -> str:
    """As a shell takes it: braces with one word in them stay as they are."""
    return word if re.fullmatch(r"[\w@%+=:,./-]*\{[\w.-]+\}", word) else shlex.quote(word)
