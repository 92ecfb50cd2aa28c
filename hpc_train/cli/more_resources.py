"""What a run is to be given beside `hpc-train resume`, where the same would end it there again."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from hpc_train.codec import read_object
from hpc_train.config.schema import SlurmConfig
from hpc_train.plan.notes import long_enough_s
from hpc_train.plan.states import GPU_FULL, HOST_FULL, LIMIT_CHANGED, RunState
from hpc_train.plan.units import memory_mib, slurm_time, time_s
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus

_USED = re.compile(r"its job had (\d+) MiB of memory on that node, of (\d+) MiB")
_OF_HOST = ("of memory on that node, of", HOST_FULL)
_SPARE = 1.25  # of what was used when it was ended, as it had wanted more


def with_more(status: RunStatus, run: RunDir) -> str:
    """The words behind the run's name, and what they mean; empty where nothing is known to help.

    A test or a prediction keeps what its training has.
    """
    if status.evaluates or not status.attempts:
        return ""
    plan = read_object(run.plan)
    options = dict((plan.get("slurm") or {}).get("options") or [])
    if status.state is RunState.TIMED_OUT:
        return _longer(plan, options, as_asked=LIMIT_CHANGED in status.attempts[-1].reason)
    if GPU_FULL in status.reason:
        return _smaller((plan.get("batch") or {}).get("micro_batch_size") or 0)
    if any(it in status.reason for it in _OF_HOST):
        return _more_memory(options.get("mem"), status.reason)
    return ""


def _longer(plan: Mapping[str, Any], options: Mapping[str, str], *, as_asked: bool) -> str:
    """Twice the time, or what leaves a job time to train; empty where there is no limit of its own.

    Args:
        plan: Of the run.
        options: Of sbatch, among them the limit that was asked for.
        as_asked: Its job had less, as somebody has changed its limit.
    """
    limit = options.get("time")
    seconds = time_s(limit) if limit else None
    if not seconds:
        return ""
    is_off = (plan.get("requeue") or {}).get("enabled") is False
    by_itself = "; with requeue.enabled=true behind it the run goes on by itself" if is_off else ""
    if as_asked:
        return f" --time {slurm_time(seconds)}: as was asked for{by_itself}"
    lead_s = (plan.get("slurm") or {}).get("signal_lead_s") or 0
    if 2 * lead_s >= seconds - 1:  # half of the time, since the lead that was meant is longer
        lead_s = max(lead_s, SlurmConfig.signal_lead_s)
    longer_s = long_enough_s(2 * seconds, lead_s)
    what = "twice as long as it had" if longer_s == 2 * seconds else "so that it has time to train"
    return f" --time {slurm_time(longer_s)}: {what}{by_itself}"


def _smaller(micro: int) -> str:
    """Half the samples at once, where a GPU's memory was too small; the training stays the same."""
    same = "half as many samples at once, in the same global batch"
    return f" micro_batch_size={micro // 2}: {same}" if micro > 1 else ""


def _more_memory(asked: str | None, reason: str) -> str:
    """What was used and a quarter, or twice what it had; empty where that was no choice of its."""
    if not asked:
        return ""
    found = _USED.search(reason)
    had_mib = memory_mib(asked)
    wants_mib = max(2 * had_mib, int(found[1]) * _SPARE if found else 0)
    used = f"it had used {found[1]} MiB of {found[2]}" if found else f"it had {asked}"
    return f" slurm.mem={math.ceil(wants_mib / 1024)}G: {used}"
