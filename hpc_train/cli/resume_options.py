"""An option behind `resume` that stands for what a run keeps: `resume RUN --lr 0.001`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import click

from hpc_train.cli.dotted_options import key_in_config
from hpc_train.cli.typed_values import NO_DASHES
from hpc_train.errors import HpcTrainError

_AS_KEY = re.compile(rf"{NO_DASHES}(?P<key>[\w.]+)=(?P<value>.+?)(?:, where.*)?$")


def of_another_training(
    hint: str, context: click.Context, typed: Sequence[str], values: Sequence[str]
) -> str:
    """What to type in place of a key that resume would refuse; else the hint itself.

    Args:
        hint: What is said of the option, as a key of the config.
        context: Of any command.
        typed: The words behind the command's name.
        values: Words that are the option's value, and not the run.
    """
    if context.info_name != "resume":
        return hint
    from hpc_train.backends.kept_in_a_run import KEPT  # on the way to an error
    from hpc_train.backends.lengthen import LENGTH_KEYS

    found = _AS_KEY.match(hint)
    key = found["key"] if found else ""
    lengths = [f"trainer.{it}" for it in LENGTH_KEYS]
    if found is None or key.partition(".")[0] not in KEPT or key in lengths:
        return hint
    words = [it for it in typed if it[:1] != "-" and "=" not in it and it not in values]
    other = _submission(words[0] if words else "", key, "".join(shlex.split(found["value"])))
    return f"resume keeps the training that the run has; another one: {other}"


def _submission(word: str, key: str, value: str) -> str:
    """The command that submits the run's config once more with the key."""
    from hpc_train import api
    from hpc_train.backends.submit_again import can_submit_again, submit_again

    anew = f"hpc-train submit CFG {shlex.quote(f'{key}={value}')}"
    try:
        run = api.Run.find(word).directory
    except HpcTrainError:
        return anew
    if not can_submit_again(run):
        return anew
    found = key_in_config(key, [str(run.config)])
    meant = re.findall(r"[\w.]+\.init_args\.\w+", found.said) or [found.key]
    if found.said and len(meant) != 1:
        return f"{submit_again(run)} KEY=VALUE; {found.said}"
    return submit_again(run, f"{meant[0]}={value}")
