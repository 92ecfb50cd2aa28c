"""What the rules found -> failures, each once, the root first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hpc_train.preflight.nccl.nccl_rules import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hpc_train.preflight.nccl.nccl_rules import Evidence, Hit, Hits, Warned
    from hpc_train.preflight.nccl.nccl_timeouts import Timeouts

__all__ = ["failures", "notes"]

# ncclResult_t, nccl.h
_RESULTS = {
    "1": "unhandled CUDA error",
    "2": "system error",
    "3": "internal error",
    "4": "invalid argument",
    "5": "invalid usage",
    "6": "remote error",
}
# What is certain of each word, and where to look.
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


def failures(
    hits: Hits,
    timeouts: Timeouts,
    trace: tuple[str, str, str, Evidence] | None,
    torch_error: tuple[str, Evidence] | None,
) -> Iterator[Failure]:
    """Yield causes from root to consequence; what only follows is left out beside a cause."""
    found = [_failure(hit) for hit in hits.of("cause")]
    if timeout := timeouts.failure():
        found.append(timeout)
    follows = [_failure(hit) for hit in hits.of("follows")]
    found = found or follows[:1]
    warned = [item for item in hits.unknown() if _SAYS_FAILURE.search(_said(item))]
    if not found and trace:
        found = [_of_trace(*trace, tuple(hits.unknown()[:2]))]
    if not found and warned:
        found = [
            Failure(
                name="warning",
                cause="",
                fix=_WHOLE_LOG,
                source="",
                times=warned[0].times,
                hosts=warned[0].hosts,
                evidence=(warned[0].evidence,),
            )
        ]
    if not found and torch_error:
        found = [_of_word(*torch_error)]
    yield from found


def _of_word(word: str, where: Evidence) -> Failure:
    cause, fix = _WORDS[word]
    return Failure(
        name="error_word",
        cause=f"{cause}; this log does not hold NCCL's own reason",
        fix=f"{fix}; {_WHOLE_LOG}",
        source="ncclGetErrorString",
        times=1,
        hosts=(),
        evidence=(where,),
    )


def _said(warned: Warned) -> str:
    return warned.text.partition("NCCL WARN ")[2]


def _of_trace(
    file: str, code: str, why: str, where: Evidence, warned: tuple[Warned, ...]
) -> Failure:
    because = f" ({why})" if why and why != "Operation now in progress" else ""
    before = "after the warning below" if warned else "without a warning"
    return Failure(
        name="error_code",
        cause=f"a call of NCCL ended with {_RESULTS[code]}{because} in {file}, {before}",
        fix=_WHOLE_LOG,
        source="NCCL include/checks.h",
        times=1 + len(warned),
        hosts=(),
        evidence=(*(item.evidence for item in warned), where),
    )


def _failure(hit: Hit) -> Failure:
    return Failure(
        name=hit.rule.name,
        cause=hit.cause,
        fix=hit.fix,
        source=hit.rule.source,
        times=hit.times,
        hosts=tuple(sorted(hit.hosts)),
        evidence=tuple(hit.evidence),
    )


def notes(hits: Hits) -> Iterator[Failure]:
    """Return what is worth telling and no failure, each once."""
    return (_failure(hit) for hit in hits.of("note"))
