"""The event at an attempt's end: a notification, a report or a metric is one more listener here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpc_train.plan.plan import Plan
from hpc_train.plan.policy import AttemptSummary, Decision
from hpc_train.runs.layout import RunDir
from hpc_train.supervisor.notices import notify_of_end


@dataclass(frozen=True, kw_only=True)
class AttemptEnded:
    """An attempt that has ended; the history holds all of it already.

    Attributes:
        attempt: Its outcome, why, how far it came.
        decision: What follows; `decision.state` is the run's state from now on.
    """

    run: RunDir
    plan: Plan
    attempt: AttemptSummary
    decision: Decision


# Called with the event, and with what writes a line into the job's log.
Listener = Callable[[AttemptEnded, Callable[[str], None]], None]


def say_decision(event: AttemptEnded, say: Callable[[str], None]) -> None:
    """Tell the job's log what follows."""
    say(f"decided: {event.decision.action.value}: {event.decision.reason}")


LISTENERS: Sequence[Listener] = (say_decision, notify_of_end)


def tell_listeners(
    event: AttemptEnded, say: Callable[[str], None], listeners: Sequence[Listener] = LISTENERS
) -> None:
    """Call each listener in turn; one that fails is named in the log and stops nobody."""
    for listener in listeners:
        try:
            listener(event, say)
        except Exception as error:  # noqa: BLE001 - a mail that is not sent must not end a run
            say(f"{listener.__name__} failed: {type(error).__name__}: {error}")
