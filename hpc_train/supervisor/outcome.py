"""How an attempt ended, from what its ranks, its launcher and its watchers saw. Pure."""

from __future__ import annotations

import functools
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpc_train.plan.policy import Refused
from hpc_train.plan.states import Outcome, RankExit
from hpc_train.runs.ranks import ExitRecord

__all__ = [
    "AttemptEvidence",
    "AttemptOutcome",
    "Death",
    "Hang",
    "classify",
    "deaths_in_elastic_log",
    "deaths_in_srun_log",
]


@dataclass(frozen=True, kw_only=True)
class Death:
    """A rank's end as its launcher saw it; `signal` is 0 where it exited by itself."""

    rank: int
    node: str = ""
    code: int = 0
    signal: int = 0


@dataclass(frozen=True, kw_only=True)
class Hang:
    """What the watchdog saw before it stopped the step."""

    reason: str
    late_ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AttemptEvidence:
    """Everything that is known when the ranks are gone.

    Attributes:
        launcher_code: Exit status of srun or the elastic launcher.
        records: Exit records of the ranks, by time.
        deaths: Ends that the launcher reported before it stopped the others, in their order.
        hang: What the watchdog stopped, if it did.
        lost_nodes: Nodes that no longer answer.
        unlaunched: Nodes on which srun could not start the step, with its words.
        oom_nodes: Nodes whose kernel killed for memory.
        stop_outcome: What a stop from outside means here: preempted, timeout or cancelled.
        stop_reason: The same in words.
        saved_step: The newest checkpoint of this attempt; None where it made none.
        launcher_tail: The launcher's last words.
        started: Whether any rank gave a sign of life.
        disk_trouble: Why nothing can be written into the run directory; empty if it can.
    """

    world_size: int
    launcher_code: int
    records: Sequence[ExitRecord] = ()
    deaths: Sequence[Death] = ()
    hang: Hang | None = None
    lost_nodes: tuple[str, ...] = ()
    unlaunched: Mapping[str, str] = field(default_factory=dict)
    oom_nodes: tuple[str, ...] = ()
    stop_outcome: Outcome | None = None
    stop_reason: str = ""
    saved_step: int | None = None
    launcher_tail: str = ""
    started: bool = False
    disk_trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class AttemptOutcome:
    """The outcome, the culprit, and a sentence for the history.

    Attributes:
        blamed: Nodes to leave out from now on.
        gone: Those of them that no longer answer.
        refused: Why the preflight did not let the ranks start, as `plan.policy` needs it.
    """

    outcome: Outcome
    reason: str
    rank: int | None = None
    node: str = ""
    blamed: tuple[str, ...] = field(default=())
    gone: tuple[str, ...] = field(default=())
    error: str = ""
    where: str = ""
    failed_step: int | None = None
    refused: Refused = ""


STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
SECONDARY = (RankExit.FINISHED, RankExit.SAVED, RankExit.NETWORK, RankExit.WATCHDOG)


def classify(seen: AttemptEvidence) -> AttemptOutcome:
    """Name the outcome and the culprit: the rank that failed first, not those killed after it."""
    if seen.launcher_code == 0 and not seen.hang:
        return AttemptOutcome(outcome=Outcome.COMPLETED, reason="all ranks finished")
    for judge in (
        _cancelled,
        _not_launched,
        _own_failure,
        _killed,
        _lost,
        _hung,
        _stopped,
        _network,
    ):
        ending = judge(seen)
        if ending is not None:
            return ending
    return _unexplained(seen)


def _cancelled(seen: AttemptEvidence) -> AttemptOutcome | None:
    if seen.stop_outcome is not Outcome.CANCELLED:
        return None
    return AttemptOutcome(outcome=Outcome.CANCELLED, reason=seen.stop_reason)


def _not_launched(seen: AttemptEvidence) -> AttemptOutcome | None:
    """A step that srun cannot start as a whole is ended on the nodes where it has begun."""
    if not seen.unlaunched:
        return None
    nodes = tuple(seen.unlaunched)
    words = "; ".join(f"{node}: {why}" for node, why in seen.unlaunched.items())
    return AttemptOutcome(
        outcome=Outcome.NODE_FAILURE,
        reason=f"srun could not start the ranks on {words}",
        node=nodes[0],
        blamed=nodes,
        gone=nodes,
    )


def _own_failure(seen: AttemptEvidence) -> AttemptOutcome | None:
    """A rank says itself that its own code failed: the first one by time is the culprit."""
    failed = [record for record in seen.records if record.code not in SECONDARY]
    if not failed:
        return None
    first = failed[0]
    at = f" at step {first.step}" if first.step is not None else ""
    where = f" ({first.where})" if first.where else ""
    memory = first.kind == "gpu_memory"
    what = "ran out of GPU memory" if memory else f"failed{at}: {first.error}{where}"
    return AttemptOutcome(
        outcome=Outcome.OUT_OF_MEMORY if memory else Outcome.USER_ERROR,
        reason=f"rank {first.rank} on {first.node} {what}{_others(seen)}",
        rank=first.rank,
        node=first.node,
        error=first.error,
        where=first.where,
        failed_step=first.step,
    )


def _killed(seen: AttemptEvidence) -> AttemptOutcome | None:
    """A rank vanished without a word: a signal from outside, the kernel's, or its own crash."""
    spoken = {record.rank for record in seen.records}
    silent = [
        death
        for death in seen.deaths
        if death.signal or (death.rank not in spoken and death.code not in SECONDARY)
    ]
    if not silent or seen.hang:
        return None
    first = silent[0]
    who = f"rank {first.rank}" + (f" on {first.node}" if first.node else "")
    how = f"was killed by {_signal_name(first.signal)}" if first.signal else f"exited {first.code}"
    who_first = functools.partial(AttemptOutcome, rank=first.rank, node=first.node)
    if first.node in seen.oom_nodes or (seen.oom_nodes and not first.node):
        reason = f"{who}: the node ran out of host memory, and its kernel killed the process"
        return who_first(outcome=Outcome.OUT_OF_MEMORY, reason=reason)
    if first.node in seen.lost_nodes:
        return None
    if first.signal in STOP_SIGNALS:
        # It came while Python was still starting, before the rank could note and obey it.
        why = seen.stop_reason or "somebody asked it to stop"
        return who_first(
            outcome=seen.stop_outcome or Outcome.PREEMPTED,
            reason=f"{why}; {who} {how} before it had begun; nothing new was saved",
        )
    if first.signal == signal.SIGKILL:
        reason = f"{who} {how} first, by something outside the training{_others(seen)}"
        return who_first(outcome=Outcome.NODE_FAILURE, reason=reason, error=how)
    reason = f"{who} {how} first, without a Python error{_others(seen)}"
    return who_first(outcome=Outcome.USER_ERROR, reason=reason, error=how)


def _lost(seen: AttemptEvidence) -> AttemptOutcome | None:
    if not seen.lost_nodes:
        return None
    names = ", ".join(seen.lost_nodes)
    verb = "answers" if len(seen.lost_nodes) == 1 else "answer"
    return AttemptOutcome(
        outcome=Outcome.NODE_FAILURE,
        reason=f"{names} no longer {verb}",
        node=seen.lost_nodes[0],
        blamed=seen.lost_nodes,
        gone=seen.lost_nodes,
    )


def _hung(seen: AttemptEvidence) -> AttemptOutcome | None:
    if seen.hang is None:
        return None
    late = seen.hang.late_ranks
    return AttemptOutcome(
        outcome=Outcome.HANG,
        reason=seen.hang.reason,
        rank=late[0] if late else None,
        node=seen.hang.nodes[0] if seen.hang.nodes else "",
        blamed=seen.hang.nodes,
    )


def _stopped(seen: AttemptEvidence) -> AttemptOutcome | None:
    saved = [record for record in seen.records if record.code == RankExit.SAVED]
    if not saved and seen.stop_outcome is None:
        return None
    outcome = seen.stop_outcome or Outcome.PREEMPTED
    step = seen.saved_step
    kept = f"; saved at step {step}" if step is not None else "; nothing new was saved"
    why = seen.stop_reason or f"the ranks were asked to stop ({saved[0].cause or 'signal'})"
    return AttemptOutcome(outcome=outcome, reason=why + kept)


def _network(seen: AttemptEvidence) -> AttemptOutcome | None:
    broken = [record for record in seen.records if record.code == RankExit.NETWORK]
    if not broken:
        return None
    first = broken[0]
    return AttemptOutcome(
        outcome=Outcome.NETWORK_FAILURE,
        reason=f"rank {first.rank} on {first.node} lost its peers first: {first.error}",
        rank=first.rank,
        node=first.node,
        error=first.error,
        failed_step=first.step,
    )


def _unexplained(seen: AttemptEvidence) -> AttemptOutcome:
    tail = seen.launcher_tail.strip().splitlines()
    # srun's own last words are "Job step aborted", whatever the reason.
    last = next((line for line in reversed(tail) if "error" in line), tail[-1] if tail else "")
    words = f": {last}" if last else ""
    if seen.disk_trouble:
        reason = f"the ranks ended, and the run directory cannot be written: {seen.disk_trouble}"
        return AttemptOutcome(outcome=Outcome.USER_ERROR, reason=reason, error=seen.disk_trouble)
    if not seen.records and not seen.started:
        reason = f"the ranks never started (the launcher exited {seen.launcher_code}){words}"
        return AttemptOutcome(outcome=Outcome.NODE_FAILURE, reason=reason, error=reason)
    reason = f"the launcher exited {seen.launcher_code} and no rank says why{words}"
    return AttemptOutcome(outcome=Outcome.NODE_FAILURE, reason=reason, error=reason)


def _others(seen: AttemptEvidence) -> str:
    return "; the others were stopped" if seen.world_size > 1 else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# srun(1): "srun: error: node2: tasks 4-5: Exited with exit code 1", "...: task 5: Killed".
SRUN_TASK = re.compile(r"srun: error: ([^\s:]+): tasks? ([\d,\-\[\]]+): (.+)")
SRUN_GIVES_UP = re.compile(r"srun: (?:Terminating|Force Terminated)")
SRUN_WORDS = {signal.strsignal(number): int(number) for number in signal.valid_signals()}


def deaths_in_srun_log(text: str) -> list[Death]:
    """The tasks that ended before srun began to stop the others, in srun's order."""
    deaths: list[Death] = []
    for line in text.splitlines():
        if SRUN_GIVES_UP.search(line) and deaths:
            break
        found = SRUN_TASK.search(line)
        if found:
            node, tasks, words = found.groups()
            code, number = _srun_words(words)
            deaths += [
                Death(rank=rank, node=node, code=code, signal=number) for rank in _ranks(tasks)
            ]
    return deaths


def _srun_words(words: str) -> tuple[int, int]:
    exited = re.search(r"[Ee]xit(?:ed with exit)? code (\d+)", words)
    if exited:
        return int(exited.group(1)), 0
    name = words.split("(")[0].strip()
    return 0, SRUN_WORDS.get(name, 9 if "Memory" in words else 0)


def _ranks(text: str) -> list[int]:
    ranks: list[int] = []
    for part in text.strip("[]").split(","):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


# torch.distributed.elastic.multiprocessing.errors.ChildFailedError prints such blocks.
ELASTIC_BLOCK = re.compile(
    r"rank\s+: (\d+) \(local_rank: \d+\)\s+exitcode\s+: (-?\d+) \(pid: \d+\)", re.MULTILINE
)


def deaths_in_elastic_log(text: str) -> list[Death]:
    """The ranks that an elastic launcher reports, its root cause first."""
    _, _, root = text.partition("Root Cause")
    found = ELASTIC_BLOCK.findall(root) + ELASTIC_BLOCK.findall(text)
    unique: dict[int, int] = {}
    for rank, code in found:
        unique.setdefault(int(rank), int(code))
    return [
        Death(rank=rank, code=max(code, 0), signal=max(-code, 0)) for rank, code in unique.items()
    ]
