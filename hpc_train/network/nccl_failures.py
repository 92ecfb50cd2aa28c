"""What the rules found -> failures, each once, the root first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hpc_train.network.nccl_rules import Failure

if TYPE_CHECKING:
    from hpc_train.network.nccl_rules import Evidence, Hit, Hits, Warned
    from hpc_train.network.nccl_timeouts import Timeouts

__all__ = ["judge"]

# ncclGetErrorString's words in the order of ncclResult_t (nccl.h, from 1): what is certain of each,
# and where to look.
_WORDS = {
    "unhandled cuda error": (
        "a CUDA call inside NCCL failed",
        "nvidia-smi and dmesg | grep -i xid on the nodes",
    ),
    "unhandled system error": (
        "a call of the system inside NCCL failed (sockets, shared memory, verbs)",
        "interfaces, /dev/shm and memlock of the nodes",
    ),
    "internal error": ("NCCL stopped at a check of its own", "NCCL_* settings and versions"),
    "invalid argument": ("NCCL refused an argument", "the call that the traceback names"),
    "invalid usage": (
        "NCCL refused the call as invalid use",
        "one GPU a rank, and no more ranks than GPUs that the process sees",
    ),
    "remote process exited": ("a peer ended or could not be reached any more", "the peers' logs"),
}
# Weaker words (cannot, retry, timeout) stand in warnings after which NCCL goes on.
_SAYS_FAILURE = re.compile(r"(?i)\b(?:fail|error|mismatch|invalid|abort|timed out|refused|denied)")
_WHOLE_LOG = "run with NCCL_DEBUG=INFO on all ranks, and read the log of the rank that ended first"


def judge(
    hits: Hits,
    timeouts: Timeouts,
    trace: tuple[str, str, str, Evidence] | None,
    torch_error: tuple[str, Evidence] | None,
    initialised: int,
) -> tuple[tuple[Failure, ...], tuple[Failure, ...]]:
    """Return failures from root to consequence, and notes.

    What only follows from a failure is left out beside a cause. Where nothing says that the job
    stopped, a warning before an initialisation that succeeded was overcome: it is a note.

    Args:
        hits: What the rules found.
        timeouts: What torch's watchdog said.
        trace: (file, code, the kernel's word, line) of an error that was passed up.
        torch_error: (one of ncclGetErrorString's words, line).
        initialised: How many lines the rules had seen at the last `Init COMPLETE`.
    """
    causes, follows = hits.of("cause"), hits.of("follows")
    timeout = timeouts.failure()
    notes = [_failure(hit) for hit in hits.of("note")]
    warned = [item for item in hits.unknown() if _SAYS_FAILURE.search(_said(item))]
    if not (follows or timeout or trace or torch_error):
        notes += [_failure(hit, "this was overcome: ") for hit in causes if hit.last < initialised]
        causes = [hit for hit in causes if hit.last >= initialised]
        warned = [item for item in warned if item.first >= initialised]
    found = [_failure(hit) for hit in causes] + [timeout] * bool(timeout)
    first = min((hit.first for hit in follows), default=hits.lines + 1)
    has_code = trace is not None and trace[1] not in "36"
    if follows and follows[0].rule.name == "aftermath" and has_code:
        follows = []  # the code says more
    if not found and follows and not any(item.first < first for item in warned):
        found = [_failure(follows[0])]
    if not found and trace and not follows:
        found = [_of_trace(*trace, tuple((warned or hits.unknown())[:2]))]
    if not found and warned:
        found = [_unknown(warned[0])]
    if not found and torch_error:
        found = [_of_word(*torch_error)]
    return tuple(item for item in found if item), tuple(notes)


def _unknown(warned: Warned) -> Failure:
    return Failure(
        name="warning",
        cause="",
        fix=_WHOLE_LOG,
        times=warned.times,
        hosts=warned.hosts,
        evidence=(warned.evidence,),
    )


def _of_word(word: str, where: Evidence) -> Failure:
    cause, fix = _WORDS[word]
    return Failure(
        name="error_word",
        cause=f"{cause}; this log does not hold NCCL's own reason",
        fix=f"{fix}; {_WHOLE_LOG}",
        source="ncclGetErrorString",
        evidence=(where,),
    )


def _said(warned: Warned) -> str:
    return warned.text.partition("NCCL WARN ")[2]


def _of_trace(
    file: str, code: str, why: str, where: Evidence, warned: tuple[Warned, ...]
) -> Failure:
    word = list(_WORDS)[int(code) - 1]
    because = f" ({why})" if why and why != "Operation now in progress" else ""
    before = "after the warning below" if warned else "without a warning"
    return Failure(
        name="error_code",
        cause=f"a call of NCCL ended with {word}{because} in {file}, {before}",
        fix=_WHOLE_LOG,
        source="NCCL include/checks.h",
        times=1 + len(warned),
        evidence=(*(item.evidence for item in warned), where),
    )


def _failure(hit: Hit, before: str = "") -> Failure:
    return Failure(
        name=hit.rule.name,
        cause=before + hit.cause,
        fix=hit.fix,
        source=hit.rule.source,
        times=hit.times,
        hosts=tuple(sorted(hit.hosts)),
        evidence=tuple(hit.evidence),
    )
