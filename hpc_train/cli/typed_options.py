"""A fix that names a key, for a person who typed the option that stands for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpc_train.config.flags import FLAGS


def as_options(hint: str, words: Sequence[str]) -> str:
    """`write --partition long` for `write slurm.partition=long` behind `--partition short`.

    The option and the key are refused beside each other, so what was typed has to be changed.

    Args:
        words: Of the command line.
    """
    for flag in FLAGS.values():
        if any(word.partition("=")[0] == flag.option for word in words):
            key = rf"(?<![\w.]){re.escape(flag.key)}=(?=[\w/])"
            hint = re.sub(key, f"{flag.option} ", hint)
    return hint
