"""States of runs as they are typed behind `--state`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from hpc_train.errors import UsageError
from hpc_train.plan.states import RunState, run_state_of_word


class StateWord(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """A state of a run, by our word or by Slurm's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Our word."""
        if "," in str(value):
            each = " ".join(f"--state {word}" for word in str(value).split(",") if word)
            raise UsageError(f"--state {value}: one state each time", f"write {each}")
        try:
            return run_state_of_word(str(value)).value
        except ValueError:
            return super().convert(value, param, ctx)


def states_option(help_text: str) -> Callable[..., Any]:
    """`--state`, several times: `states` of a command."""
    known = [state.value for state in RunState]
    return click.option("--state", "states", multiple=True, type=StateWord(known), help=help_text)
