"""The KEY=VALUE that a fix says to submit again with, as it is typed behind a config."""

from __future__ import annotations

import re

from hpc_train.config.keys import FIELDS

_NAMES = "|".join(FIELDS)
_KEY = rf"(?:{_NAMES})(?:\.[A-Za-z_]\w*)*(?==)|(?:{_NAMES})(?:\.[A-Za-z_]\w*)+|\w+_batch_size"
# At its beginning or behind a word that says to write it: what stands further on may be an example
# (`as in KEY=VALUE`), or only shows more of the failure (`KEY=VALUE names that line`).
_TYPED = re.compile(rf"(?:^|\? |\b(?:write|set) )({_KEY})(=|: )([^\s,;()]+)")
_NO_VALUE = re.compile(r"[A-Z_]+|.*(?:\.\.\.|[{}\[\]'\"]).*")  # in its place
_WORDS = ("a", "an", "the", "one", "of", "no", "what", "where")  # behind `KEY: ` in a sentence
_LAST_WORDS = re.compile(r"\((?P<fix>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*\Z")


def literal_fix(fix: str) -> str:
    """`trainer.val_check_interval=16` of `trainer.val_check_interval=16 or less; ...`; or empty.

    The first of a fix, where that is a key of a config and its value is no placeholder.
    """
    found = _TYPED.search(fix)
    if found is None:
        return ""
    key, sign, value = found[1], found[2], found[3].rstrip(".:`")
    is_value = value and not _NO_VALUE.fullmatch(value) and (sign == "=" or value not in _WORDS)
    return f"{key}={value}" if is_value else ""


def fix_in_brackets(reason: str) -> str:
    """What a failure's reason ends with in brackets; empty where there is none."""
    found = _LAST_WORDS.search(reason)
    return found["fix"] if found else ""
