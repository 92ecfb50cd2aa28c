"""A `--sweep KEY = VALUES` that blanks have taken apart, and how it is typed."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence

_KEY = re.compile(r"[A-Za-z_][\w.]*")
_CONFIG = re.compile(r".*\.(?:ya?ml|py)")


def torn_sweep(typed: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong and what to write, where a blank stands beside the = of a sweep; else None."""
    for number, option in enumerate(typed):
        key, equals, _ = "".join(typed[number + 1 : number + 2]).partition("=")
        if option != "--sweep" or not _KEY.fullmatch(key):
            continue
        behind = list(typed[number + 2 :])
        if typed[number + 1] not in (key, f"{key}="):
            continue
        if not equals and (not behind or behind[0][:1] != "="):
            continue
        first = [] if equals else [behind.pop(0)[1:]]
        if any("=" in it for it in first):
            continue
        more = itertools.takewhile(lambda it: not _is_another(it), behind)
        values = [bare for it in (*first, *more) if (bare := it.strip(","))]
        if values:
            what = f"a blank stands beside the = behind --sweep {key}"
            return what, f"write --sweep {key}={shlex.quote(','.join(values))}"
    return None


def _is_another(word: str) -> bool:
    """Whether a word is no value: an option, an override, a config."""
    is_option = re.match(r"-+[A-Za-z]", word) is not None
    return is_option or "=" in word or _CONFIG.fullmatch(word) is not None
