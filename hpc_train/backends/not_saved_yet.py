"""A run that has not ended and has saved nothing yet, whose weights are asked for."""

from __future__ import annotations

import shlex
import time

from hpc_train.backends.observe import observe
from hpc_train.backends.submit_again import can_submit_again, submit_again
from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import RunState
from hpc_train.runs.events import read_events
from hpc_train.runs.history import has_ended
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word

RUN = "RUN"
_SUBMIT = "hpc-train submit "


class NotSavedYetError(HpcTrainError):
    """The weights may come: the run waits, or trains."""


def refuse_not_saved_yet(run: RunDir, then: str = "") -> None:
    """Refuse it while it waits or trains; its queue is asked where its history has no end.

    Args:
        run: It has saved nothing.
        then: The command that takes them, with RUN for the run; empty where a config begins so.

    Raises:
        NotSavedYetError: with what waits for its end.
    """
    if has_ended(read_events(run.events)):
        return
    (status,) = observe([run], time.time())
    if status.state.ended:
        return
    does = f"still trains (step {status.step})"
    if status.state is RunState.PENDING:
        does = "has not begun yet"
    word = run_word(run.path)
    wait = f"hpc-train logs -f {word}"
    fix = f"put `{wait} &&` in front of it, which waits for its end"
    if then:
        fix, whole = f"{wait} && {then.replace(RUN, word)}", _submit_and_wait(run)
        after = then.replace(RUN, shlex.quote(run.name))
        fix += f"; in one line with its submission: {whole} && {after}" if whole else ""
    raise NotSavedYetError(f"{run.name} ({run.run_id}) {does}, and has saved no checkpoint", fix)


def _submit_and_wait(run: RunDir) -> str:
    """Its submission with --wait; empty where it was no single one, or can not be typed again."""
    line = submit_again(run) if can_submit_again(run) else ""
    own, mark, behind = line.partition(" -- ")
    return f"{own} --wait{mark}{behind}" if own.startswith(_SUBMIT) else ""
