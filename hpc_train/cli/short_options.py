"""Several of Slurm's short options on one line, as `-p train -N 2 -t 10`: one fix for all."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import click

from hpc_train.cli.option_hints import option_hint
from hpc_train.cli.typed_values import NO_DASHES

_SURE = re.compile(
    rf"(?:write |{NO_DASHES})(--[a-z-]+ \S+|slurm\.\w+=(?!\.\.\.)\S+|name=(?!\.\.\.)\S+)"
)


def hint_for_all(context: click.Context | None, words: Sequence[str]) -> str:
    """What to write for all of them; empty for one alone, and where one has no sure place.

    Args:
        context: Of the command.
        words: The command line.
    """
    from hpc_train.config.meant_words.sbatch_names import SHORT  # on the way to an error

    if context is None:
        return ""
    known = {it for option in context.command.params for it in option.opts}
    own = itertools.takewhile(lambda word: word != "--", words)
    short = [it[:2] for it in own if it[:1] == "-" and it[1:2] in SHORT and it[:2] not in known]
    short = list(dict.fromkeys(short))
    found = [_SURE.fullmatch(option_hint(context, it, words)) for it in short]
    sure = [it[1] for it in found if it]
    return f"write {' '.join(sure)}" if len(short) > 1 and len(sure) == len(short) else ""
