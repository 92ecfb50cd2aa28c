"""What the rules found -> failures, each once, the root first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hpc_train.preflight.nccl.nccl_rules import WHOLE_LOG, Failure

if TYPE_CHECKING:
    from hpc_train.preflight.nccl.nccl_rules import Evidence, Hit, Hits
    from hpc_train.preflight.nccl.nccl_timeouts import Timeouts

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
        trace: (file, code, the kernel's word, line) of an error that was passed up.
        torch_error: (one of ncclGetErrorString's words, line).
        initialised: How many texts the rules had seen at the last `Init COMPLETE`.
        hits, timeouts: What the rules found, and what torch's watchdog said.
    """
    causes, follows, notes = (hits.of(kind) for kind in ("cause", "follows", "note"))
    told = [hit.failure() for hit in notes]
    timeout = timeouts.failure()
    warned = [hit for hit in hits.unknown() if _SAYS_FAILURE.search(_said(hit))]
    if not (follows or timeout or trace or torch_error):
        overcome = [hit for hit in causes if hit.last < initialised]
        told += [hit.failure("this was overcome: ") for hit in overcome]
        causes = [hit for hit in causes if hit not in overcome]
        warned = [hit for hit in warned if hit.first >= initialised]
    if follows and follows[0].rule.name == "aftermath" and trace and trace[1] not in "36":
        follows = []  # the code says more
    first = min((hit.first for hit in follows), default=0)
    found = [hit.failure() for hit in causes]
    if timeout:
        found.append(timeout)
    if not found and follows and not any(hit.first < first for hit in warned):
        found = [follows[0].failure()]
    if not found and trace and not follows:
        found = [_of_trace(*trace, (warned or hits.unknown())[:2])]
    if not found and warned:
        found = [warned[0].failure()]
    if not found and torch_error:
        found = [_of_word(*torch_error)]
    return tuple(found), tuple(told)


def _of_word(word: str, where: Evidence) -> Failure:
    cause, fix = _WORDS[word]
    return Failure(
        name="error_word",
        cause=f"{cause}; this log does not hold NCCL's own reason",
        fix=f"{fix}; {WHOLE_LOG}",
        evidence=(where,),
    )


def _said(hit: Hit) -> str:
    return hit.evidence[0].text.partition("NCCL WARN ")[2]


def _of_trace(file: str, code: str, why: str, where: Evidence, warned: list[Hit]) -> Failure:
    word = list(_WORDS)[int(code) - 1]
    because = f" ({why})" if why and why != "Operation now in progress" else ""
    before = "after the warning below" if warned else "without a warning"
    return Failure(
        name="error_code",
        cause=f"a call of NCCL ended with {word}{because} in {file}, {before}",
        fix=WHOLE_LOG,
        times=1 + len(warned),
        evidence=(*(hit.evidence[0] for hit in warned), where),
    )
