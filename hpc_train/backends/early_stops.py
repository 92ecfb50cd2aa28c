"""A training that EarlyStopping ended: its count goes on with the run, and more steps end so."""

from __future__ import annotations

import re

from hpc_train.backends.submit_again import can_submit_again, submit_again
from hpc_train.config.specs import callbacks_of
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import Outcome
from hpc_train.runs.events import read_events
from hpc_train.runs.history import attempts_in
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import plain_word

# As `training.loggers.early_end` says it; of others it names no class.
_ENDED = re.compile(r"(?P<what>(?P<who>[^\W\d]\w*) ended it at step \d+[^:]*)(?:: (?P<why>.*))?")
_NO_CALLBACK_THAT_COUNTS = ("Timer",)
_NOT_PATIENCE = re.compile("threshold|not finite")
_PATIENCE = 3  # Lightning's own, where none is given


def early_stop(run: RunDir, plan: Plan) -> str:
    """That the callback ended the run's newest attempt; empty where it did not."""
    found = _found(run, plan)
    return found["what"] if found else ""


def ends_again(run: RunDir, plan: Plan) -> str:
    """What is said of the run where it is made longer; empty where nothing of it is known."""
    found = _found(run, plan)
    if found is None:
        return ""
    when, kept = "at the next validation that is no better", "its patience"
    if _NOT_PATIENCE.search(found["why"] or ""):
        when, kept = "once its threshold is met", "its thresholds"
    way = with_more_patience(run, plan)
    return f"{found['what']}, and ends it again {when}: a run keeps {kept}; {way}"


def with_more_patience(run: RunDir, plan: Plan) -> str:
    """The command of a new run that begins with these weights, where it can be typed."""
    found = _found(run, plan)
    words = [f"init_from={plain_word(run.path)}"]
    is_patience = found is not None and not _NOT_PATIENCE.search(found["why"] or "")
    word = _longer(plan, found["who"]) if found and is_patience else ""
    what = "more patience" if is_patience else "other thresholds"
    if not (word and can_submit_again(run)):
        changed = f"{submit_again(run, *words)}, with {what} in the config"
        return f"a run of its own has these weights: {changed}"
    return f"with {what} from these weights: {submit_again(run, word, *words)}"


def _found(run: RunDir, plan: Plan) -> re.Match[str] | None:
    attempts = attempts_in(read_events(run.events)) if plan.verb == "fit" else []
    last = attempts[-1] if attempts and plan.script is None else None
    if last is None or last.outcome is not Outcome.COMPLETED:
        return None
    found = _ENDED.match(last.reason)
    return None if found is None or found["who"] in _NO_CALLBACK_THAT_COUNTS else found


def _longer(plan: Plan, name: str) -> str:
    """KEY=VALUE for twice the patience; empty where the config does not have the callback so."""
    for key, one in callbacks_of(plan.training.trainer):
        spec = one if isinstance(one, dict) else {}
        if str(spec.get("class_path")).rpartition(".")[2] != name:
            continue
        patience = (spec.get("init_args") or {}).get("patience", _PATIENCE)
        if isinstance(patience, int):
            longer = max(2 * patience, 1)
            return f"{key}.init_args.patience={longer}"
    return ""
