"""How an attempt ended: every judge, each with the outcomes that it may give. Pure.

What follows an outcome stands beside its name in `plan.states`; `plan.policy` decides by it.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from hpc_train.diagnose.stacks import APART, TOGETHER, is_own_place, line_of_place
from hpc_train.diagnose.uneven_shares import UNEVEN
from hpc_train.plan.policy import Refused
from hpc_train.plan.states import ALL_FINISHED, GPU_FULL, HOST_FULL, KILLED_BY, Outcome, RankExit
from hpc_train.runs.ranks import ENDED_ITSELF, UNSAVED, WORKER_KILLED, ExitRecord
from hpc_train.supervisor.deaths import environment_refused, signal_name
from hpc_train.supervisor.evidence import AttemptEvidence


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


DISK = "the run directory cannot be written: {}: see df -h and quota there, then hpc-train resume"
STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
SECONDARY = (RankExit.FINISHED, RankExit.SAVED, RankExit.NETWORK, RankExit.WATCHDOG)


Judge = TypeVar("Judge", bound=Callable[[Any], "AttemptOutcome | None"])
# Each judge by its name, and what it may say.
JUDGES: dict[str, tuple[Outcome, ...]] = {}


def may_say(*outcomes: Outcome) -> Callable[[Judge], Judge]:
    """Enter a judge into `JUDGES`; that it says something else is an error of ours."""

    def enter(judge: Judge) -> Judge:
        JUDGES[judge.__name__.strip("_")] = outcomes

        @functools.wraps(judge)
        def checked(evidence: object) -> AttemptOutcome | None:
            ending = judge(evidence)
            if ending is not None and ending.outcome not in outcomes:
                raise AssertionError(f"{judge.__name__} must not say {ending.outcome.value}")
            return ending

        return cast("Judge", checked)

    return enter


def classify(seen: AttemptEvidence) -> AttemptOutcome:
    """Name the outcome and the culprit: the rank that failed first, not those killed after it."""
    for judge in (
        _cancelled,
        _took_no_step,
        _completed,
        _not_launched,
        _left_alone,
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


@may_say(Outcome.USER_ERROR)
def _took_no_step(seen: AttemptEvidence) -> AttemptOutcome | None:
    """A script ended with 0; nobody else can tell whether it has trained."""
    stepped = any(record.kind != "left" or record.step is not None for record in seen.records)
    if seen.launcher_code != 0 or seen.hang or seen.may_take_no_steps or stepped:
        return None
    first = next((record.first_step for record in seen.records), 0)
    before = f"; it went on from step {first}, and may have been complete by then" if first else ""
    why = f"the script ended with exit code 0 and took no optimizer step{before}"
    reason = f"{why}; if that is right: script.may_take_no_steps=true"
    return AttemptOutcome(outcome=Outcome.USER_ERROR, reason=reason)


@may_say(Outcome.USER_ERROR)
def _left_alone(seen: AttemptEvidence) -> AttemptOutcome | None:
    """A script left with 0 on some ranks, and the others waited for them."""
    left = [record for record in seen.records if record.kind == "left"]
    cut_off = [record.rank for record in seen.records if record.kind == "network"]
    if not left or seen.stop_outcome is not None or not (cut_off or seen.hang):
        return None
    first, others = left[0], f"rank {cut_off[0]}" if cut_off else "others"
    how = f"left with exit code 0 behind step {first.step or 0}, and {others} still trained"
    return AttemptOutcome(
        outcome=Outcome.USER_ERROR,
        reason=f"rank {first.rank} on {first.node} {how}: all ranks have to end together",
        rank=first.rank,
        node=first.node,
    )


@may_say(Outcome.COMPLETED)
def _completed(seen: AttemptEvidence) -> AttemptOutcome | None:
    if seen.launcher_code != 0 or seen.hang:
        return None
    # srun may end well though the ranks did not: theirs is the word that counts.
    codes = {record.code for record in seen.records}
    if RankExit.SAVED in codes or (seen.ranks_tell and not seen.all_finished):
        return None
    early = next((record.cause for record in seen.records if record.cause), "")
    return AttemptOutcome(outcome=Outcome.COMPLETED, reason=early or ALL_FINISHED)


@may_say(Outcome.CANCELLED)
def _cancelled(seen: AttemptEvidence) -> AttemptOutcome | None:
    """Whatever the ranks and their launcher say; but a training that is complete is complete."""
    is_complete = seen.launcher_code == 0 and not seen.hang and seen.all_finished
    if seen.stop_outcome is not Outcome.CANCELLED or is_complete:
        return None
    reason = seen.stop_reason
    if seen.ranks_stayed:
        within = f" within {seen.asked_for_s:.0f} s" if seen.asked_for_s is not None else ""
        reason += f"; the ranks did not leave{within} and were killed{_kept(seen.saved_step)}"
    return AttemptOutcome(outcome=Outcome.CANCELLED, reason=reason)


@may_say(Outcome.NODE_FAILURE)
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


@may_say(Outcome.USER_ERROR, Outcome.OUT_OF_MEMORY)
def _own_failure(seen: AttemptEvidence) -> AttemptOutcome | None:
    """A rank says itself that its own code failed: the first one by time is the culprit."""
    failed = [
        record
        for record in seen.records
        if record.code not in SECONDARY
        # An exit in a handler of the user's for the signal by which it was asked to leave.
        and not (record.kind == ENDED_ITSELF and seen.stop_outcome is not None)
    ]
    if not failed:
        return None
    first = failed[0]
    at = f" at step {first.step}" if first.step is not None else ""
    where = f" ({first.where})" if first.where else ""
    memory = first.kind == "gpu_memory"
    what = f"{GPU_FULL}{at}{where}" if memory else f"failed{at}: {first.error}{where}"
    if first.kind == WORKER_KILLED and seen.oom_nodes:
        memory = True
        what = f"{what}: the node {HOST_FULL}, and its kernel killed the data worker"
    if first.kind == ENDED_ITSELF:
        what = f"ended itself{at}: {first.error}{where}"
    reason = f"rank {first.rank} on {first.node} {what}"
    return AttemptOutcome(
        outcome=Outcome.OUT_OF_MEMORY if memory else Outcome.USER_ERROR,
        reason=first.error if first.kind == UNSAVED else reason,
        rank=first.rank,
        node=first.node,
        error=first.error,
        where=first.where,
        failed_step=first.step,
    )


@may_say(
    Outcome.OUT_OF_MEMORY,
    Outcome.PREEMPTED,
    Outcome.TIMEOUT,
    Outcome.NODE_FAILURE,
    Outcome.USER_ERROR,
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
    first = next((death for death in silent if death.rank in seen.over_memory), silent[0])
    who = f"rank {first.rank}" + (f" on {first.node}" if first.node else "")
    how = f"{KILLED_BY} {signal_name(first.signal)}" if first.signal else f"exited {first.code}"
    who_first = functools.partial(AttemptOutcome, rank=first.rank, node=first.node)
    if words := seen.over_memory.get(first.rank):
        return who_first(outcome=Outcome.OUT_OF_MEMORY, reason=f"{who} was killed: {words}")
    if first.node in seen.oom_nodes or (seen.oom_nodes and not first.node):
        reason = f"{who}: the node {HOST_FULL}, and its kernel killed the process"
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
        reason = f"{who} {how} first, by something outside the training"
        return who_first(outcome=Outcome.NODE_FAILURE, reason=reason, error=how)
    if seen.disk_trouble:
        reason = f"{who} {how} first, and {DISK.format(seen.disk_trouble)}"
        return who_first(outcome=Outcome.USER_ERROR, reason=reason, error=seen.disk_trouble)
    crash, words = seen.crashes.get(first.rank), seen.last_words.get(first.rank, "")
    ends = f"its log ends with: {words}" if words else "without a Python error"
    reason = f"{who} {how} first, {crash.place if crash else ends}"
    where = crash.where if crash else ""
    return who_first(outcome=Outcome.USER_ERROR, reason=reason, error=how, where=where)


@may_say(Outcome.NODE_FAILURE)
def _lost(seen: AttemptEvidence) -> AttemptOutcome | None:
    if not seen.lost_nodes:
        return None
    verb = "answers" if len(seen.lost_nodes) == 1 else "answer"
    names = ", ".join(seen.lost_nodes)
    taken = set(seen.lost_nodes) <= set(seen.taken_nodes)
    by_slurm = f"Slurm took {names} from the job (node failure; sinfo -R may say why)"
    return AttemptOutcome(
        outcome=Outcome.NODE_FAILURE,
        reason=by_slurm if taken else f"{names} no longer {verb}",
        node=seen.lost_nodes[0],
        blamed=seen.lost_nodes,
        gone=seen.lost_nodes,
    )


@may_say(Outcome.HANG)
def _hung(seen: AttemptEvidence) -> AttemptOutcome | None:
    if seen.hang is None:
        return None
    late = seen.hang.late_ranks if len(seen.hang.late_ranks) < seen.world_size else ()
    who, places, uneven = seen.hang.who, seen.hang.places, seen.hang.uneven
    if uneven:
        who = uneven
    elif places:
        who = f"{APART}: {'; '.join(places)}; {TOGETHER}"
    # Ranks that wait at different lines are all there: no node keeps the others waiting.
    nodes = () if uneven or places else seen.hang.nodes
    lines = [place for place in places if is_own_place(place)] or places
    at = f"it hung at {' and '.join(map(line_of_place, lines))}" if lines else ""
    return AttemptOutcome(
        outcome=Outcome.HANG,
        reason="; ".join(filter(None, (seen.hang.reason, who))),
        rank=late[0] if late and not (uneven or places) else None,
        node=nodes[0] if nodes else "",
        blamed=nodes,
        error=UNEVEN if uneven else at,
        failed_step=seen.hang.step,
    )


@may_say(Outcome.PREEMPTED, Outcome.TIMEOUT)
def _stopped(seen: AttemptEvidence) -> AttemptOutcome | None:
    saved = [record for record in seen.records if record.code == RankExit.SAVED]
    if not saved and seen.stop_outcome is None:
        return None
    outcome = seen.stop_outcome or Outcome.PREEMPTED
    why = seen.stop_reason or f"the ranks were asked to stop ({saved[0].cause or 'signal'})"
    return AttemptOutcome(outcome=outcome, reason=why + _kept(seen.saved_step))


@may_say(Outcome.NETWORK_FAILURE)
def _network(seen: AttemptEvidence) -> AttemptOutcome | None:
    broken = [record for record in seen.records if record.code == RankExit.NETWORK]
    if not broken:
        return None
    first = broken[0]
    what = "cannot begin" if first.kind == "storage" else "lost its peers first"
    return AttemptOutcome(
        outcome=Outcome.NETWORK_FAILURE,
        reason=f"rank {first.rank} on {first.node} {what}: {first.error}",
        rank=first.rank,
        node=first.node,
        error=first.error,
        failed_step=first.step,
    )


@may_say(Outcome.NODE_FAILURE, Outcome.NETWORK_FAILURE, Outcome.USER_ERROR)
def _unexplained(seen: AttemptEvidence) -> AttemptOutcome:
    tail = seen.launcher_tail.strip().splitlines()
    # srun's own last words are "Job step aborted", whatever the reason.
    last = next((line for line in reversed(tail) if "error" in line), tail[-1] if tail else "")
    words = f": {last}" if last else ""
    if seen.disk_trouble:
        reason = f"the ranks ended, and {DISK.format(seen.disk_trouble)}"
        return AttemptOutcome(outcome=Outcome.USER_ERROR, reason=reason, error=seen.disk_trouble)
    if not seen.records and (why := environment_refused(seen.launcher_tail)):
        reason = f"the ranks' environment could not be made: {why}"
        return AttemptOutcome(outcome=Outcome.USER_ERROR, reason=reason, error=why)
    if not seen.records and not seen.started:
        away = "Slurm's controller did not answer, and " if seen.no_controller else ""
        reason = f"{away}the ranks never started (the launcher exited {seen.launcher_code}){words}"
        kind = Outcome.NETWORK_FAILURE if away else Outcome.NODE_FAILURE
        return AttemptOutcome(outcome=kind, reason=reason, error=reason)
    if seen.ended_themselves:
        who = "rank 0" if seen.world_size == 1 else "the ranks"
        reason = (
            f"{who} ended {'itself' if seen.world_size == 1 else 'themselves'} with exit code 0"
        )
        reason += " before the run was complete (os._exit, or exit() in C code)"
        return AttemptOutcome(outcome=Outcome.USER_ERROR, reason=reason)
    reason = f"the launcher exited {seen.launcher_code} and no rank says why{words}"
    return AttemptOutcome(outcome=Outcome.NODE_FAILURE, reason=reason, error=reason)


@dataclass(frozen=True, kw_only=True)
class OrphanEvidence:
    """What is left of an attempt whose supervisor could not say how it ended.

    Attributes:
        slurm_state: Of the job's last start that has ended; empty if nobody can tell.
        supervisor_alone: Whether the job is still the same one: only its supervisor died.
        gone: Nodes of the attempt that Slurm no longer has.
        records: Exit records of its ranks.
        saved_step: The newest checkpoint that it made; None where it made none.
        cancelled: Who has cancelled the run, in words; empty where nobody has.
    """

    slurm_state: str = ""
    supervisor_alone: bool
    gone: tuple[str, ...] = ()
    records: Sequence[ExitRecord] = ()
    saved_step: int | None = None
    cancelled: str = ""


@may_say(Outcome.CANCELLED, Outcome.NODE_FAILURE, Outcome.PREEMPTED, Outcome.TIMEOUT)
def judge_orphan(left: OrphanEvidence) -> AttemptOutcome:
    """Name the outcome of an attempt that has no end, by what Slurm and its ranks say."""
    kept, killed = _kept(left.saved_step), "the supervisor was killed"
    if left.cancelled:
        return AttemptOutcome(outcome=Outcome.CANCELLED, reason=left.cancelled + kept)
    if left.supervisor_alone:
        return AttemptOutcome(outcome=Outcome.NODE_FAILURE, reason=killed + kept)
    if left.slurm_state == "NODE_FAIL":
        names = f": {', '.join(left.gone)}" if left.gone else ""
        return AttemptOutcome(
            outcome=Outcome.NODE_FAILURE,
            reason=f"Slurm lost a node of the job{names} (NODE_FAIL){kept}",
            node=left.gone[0] if left.gone else "",
            blamed=left.gone,
        )
    all_saved = bool(left.records) and all(item.code == RankExit.SAVED for item in left.records)
    if left.slurm_state == "PREEMPTED" or all_saved:
        reason = "the scheduler took the job away before its supervisor could say"
        return AttemptOutcome(outcome=Outcome.PREEMPTED, reason=reason + kept)
    if left.slurm_state in ("REQUEUED", "CANCELLED"):
        reason = f"the job was put back into the queue ({left.slurm_state})"
        return AttemptOutcome(outcome=Outcome.PREEMPTED, reason=reason + kept)
    if left.slurm_state in ("TIMEOUT", "DEADLINE"):
        reason = "the job's limit ended it before its ranks had saved and left"
        return AttemptOutcome(outcome=Outcome.TIMEOUT, reason=reason + kept)
    said = f" (Slurm: {left.slurm_state})" if left.slurm_state else ""
    return AttemptOutcome(outcome=Outcome.NODE_FAILURE, reason=f"{killed}{said}{kept}")


def _kept(saved_step: int | None) -> str:
    return f"; saved at step {saved_step}" if saved_step is not None else "; nothing new was saved"


if unjudged := set(Outcome).difference(*JUDGES.values()):
    raise TypeError(f"no judge gives {', '.join(sorted(outcome.name for outcome in unjudged))}")
