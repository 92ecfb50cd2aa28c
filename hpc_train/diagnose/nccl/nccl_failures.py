"""What the rules found -> failures, each once, the root first."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hpc_train.diagnose.rules import WHOLE_LOG, Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hpc_train.diagnose.rules import Evidence, Hit, Hits

# ncclGetErrorString's words in the order of ncclResult_t (nccl.h, from 1): what is certain of each,
# and where to look.
_WORDS = {
    "unhandled cuda error": (
        "a CUDA call inside NCCL failed",
        "nvidia-smi (AMD: rocm-smi) and dmesg on the nodes",
    ),
    "unhandled system error": (
        "a call of the system inside NCCL failed (sockets, shared memory, verbs)",
        "what else that rank, and the others, wrote before it",
    ),
    "internal error": (
        "NCCL stopped at a check of its own, or of its plugin's",
        "NCCL_* settings and versions",
    ),
    "invalid argument": ("NCCL refused an argument", "the call that the traceback names"),
    "invalid usage": (
        "NCCL refused the call as invalid use",
        "has each rank a GPU of its own (LOCAL_RANK), and does the process see that many?",
    ),
    "remote process exited": ("a peer ended or could not be reached any more", "the peers' logs"),
    # The words of every other number.
    "unknown result code": (
        "NCCL failed with a result that it has no words for",
        "one NCCL: the one that is loaded, and the one that the program was built with",
    ),
}
# The order of `_WORDS`.
_NAMES = (
    "UnhandledCudaError",
    "SystemError",
    "InternalError",
    "InvalidArgument",
    "InvalidUsage",
    "RemoteError",
)
# Weaker words (cannot, retry, timeout) stand in warnings after which NCCL goes on.
_SAYS_FAILURE = re.compile(r"(?i)\b(?:fail|error|mismatch|invalid|abort|timed out|refused|denied)")

# What a program may live with: a component it does not need, a tool of a script that is missing.
_LIVED_WITH = ("ucx_said", "mpi_component", "command_missing")
# The level of a line: torch's C++ and Python log, Python's warnings, loggers.
_WARNED = re.compile(
    r"(?:^|[\s\]:])\[W[ \d]|(?:^|[\s\]:])W\d{3,4} \d\d:\d\d:\d\d"
    r"|(?:^|[\s:])[A-Z]\w{0,40}Warning: |^[\s\d\[:.,-]{0,40}WARNING\b"
)
# An error after which torchrun may join the store of another one on that machine.
_MAY_JOIN = re.compile(
    r"(?:^|[\s\]:])\[?E[ \d].{0,120}failed to listen on any local network address"
)
# Warnings of what ended: CUDA in that process, a connection of Open MPI.
_STATES_END = re.compile(r"CUDA initialization: |Open MPI (?:failed|detected)")
# A job that Slurm starts again appends to its log.
_STARTS_AGAIN = ("requeued",)
_GOES_ON = 20  # lines behind
# What a shell goes on after, by the lines behind it from which on it did: a tool of the set-up, or
# what may have been the job's program.
_SHELL_WENT_ON = {
    **dict.fromkeys(("not_activated", "tool_missing"), 2),
    **dict.fromkeys(("command_missing", "folder_missing", "crlf"), _GOES_ON),
}
_ENDS = 5


def word_of(name: str) -> str:
    """Return the words of ncclGetErrorString for a result's name without its `nccl`."""
    return list(_WORDS)[_NAMES.index(name)]


def judge(
    hits: Hits,
    others: tuple[Failure | None, ...],
    trace: tuple[str, str, str, Evidence] | None,
    torch_error: tuple[str, Evidence] | None,
    initialised: int,
    overcome: Collection[int] = (),
    lines: Mapping[str, int] | None = None,
    *,
    ends_open: bool = False,
) -> tuple[tuple[Failure, ...], tuple[Failure, ...]]:
    """Return failures from root to consequence, and notes.

    What only follows is left out beside a cause. Where nothing says that the job stopped, a
    warning before an initialisation that succeeded was overcome: it is a note.

    Args:
        trace: (file, code, the kernel's word, line) of an error that was passed up.
        torch_error: (one of ncclGetErrorString's words, line).
        others: What torch's watchdog said.
        initialised: How many texts the rules had seen at the last `Init COMPLETE`.
        overcome: The numbers of texts that no rule knows, after which their thread went on.
        lines: The last line by file.
        ends_open: Whether the last line of a log is of an `open` rule.
    """
    causes, follows, last, notes = (hits.of(kind) for kind in ("cause", "follows", "last", "note"))
    beside = [failure for failure in others if failure]
    warned = _of_failures(hit for hit in hits.unknown() if hit.first not in overcome)
    ended = [hit for hit in follows if hit.rule.name in ("raised", "killed")]
    follows = [hit for hit in follows if hit not in ended]
    is_all = not (follows or beside or trace or torch_error)
    last, lived_with = _without_lived_with(last, initialised, lines, is_all=is_all)
    told = [*(hit.failure() for hit in notes), *lived_with]
    if is_all and not last:
        told += [_overcome(it) for it in causes if it.last < initialised]
        causes, ended = ([it for it in some if it.last >= initialised] for some in (causes, ended))
        warned = [hit for hit in warned if hit.first >= initialised]
    if after := _says_less(follows, trace):
        follows = []
    found = [hit.failure() for hit in causes]
    if not found and ended:
        found += _if_first(ended[0], [*follows, *warned], beside, trace, torch_error)
    found = (
        [*found, *beside]
        or _of_consequences(follows, warned, trace, hits.unknown() or after)
        or _least(torch_error, ended or last or _tried_again(hits, ends_open=ends_open))
    )
    beside_it = last or ended or trace or torch_error or beside or warned
    behind = {} if beside_it else _behind_alone([*causes, *follows], lines)
    return _weighed((*found, *_recorded(last, found)), tuple(told), behind)


def _of_failures(hits: Iterable[Hit]) -> list[Hit]:
    """Those of the lines that no rule knows whose words speak of a failure."""
    return [hit for hit in hits if _SAYS_FAILURE.search(_said(hit))]


def _tried_again(hits: Hits, *, ends_open: bool) -> list[Hit]:
    """What a log says again and again, and ends with."""
    return [hit for hit in hits.of("open") if ends_open and hit.times > 1]


def _overcome(hit: Hit) -> Failure:
    return hit.failure("this was overcome: ")


def _least(torch_error: tuple[str, Evidence] | None, ends: Sequence[Hit]) -> list[Failure]:
    """What is told where nothing says more: torch's word of it, or how a process ended."""
    return [_of_word(*torch_error)] if torch_error else [hit.failure() for hit in ends[:1]]


def _says_less(follows: Sequence[Hit], trace: tuple[str, str, str, Evidence] | None) -> list[Hit]:
    """What is only told of an end, where the code that was passed up says more."""
    says_more = follows and follows[0].rule.name == "aftermath" and trace and trace[1] not in "36"
    return list(follows[:1]) if says_more else []


def _behind_alone(hits: Sequence[Hit], lines: Mapping[str, int] | None) -> dict[str, int]:
    """How many lines follow on the one rule that says something; empty where several do."""
    return {hit.rule.name: _behind(hit, lines) for hit in hits} if len(hits) == 1 else {}


def _behind(hit: Hit, lines: Mapping[str, int] | None) -> int:
    """How many lines of its file are behind the last one of a rule."""
    at = hit.at
    return max(0, (lines or {}).get(at.file, at.line) - at.line) if at else 0


def _without_lived_with(
    last: Sequence[Hit], initialised: int, lines: Mapping[str, int] | None, *, is_all: bool
) -> tuple[list[Hit], list[Failure]]:
    """Take out what the log shows to have been lived with: those that stay, and notes.

    Args:
        is_all: Whether nothing else says that anything failed.
    """
    again = [it for it in last if it.rule.name in _STARTS_AGAIN and _behind(it, lines) > _GOES_ON]
    kept = [hit for hit in last if hit not in again]
    notes = [hit.failure() for hit in again]
    if is_all and all(_is_lived_with(it, initialised, lines) for it in kept):
        notes += [_overcome(hit) for hit in kept]
        kept = []
    return kept, notes


def _is_lived_with(hit: Hit, initialised: int, lines: Mapping[str, int] | None) -> bool:
    name = hit.rule.name
    if name in (*_LIVED_WITH, *_SHELL_WENT_ON) and hit.last < initialised:
        return True
    return name in _SHELL_WENT_ON and _behind(hit, lines) > _SHELL_WENT_ON[name]


def _weighed(
    found: tuple[Failure, ...], told: tuple[Failure, ...], behind: Mapping[str, int]
) -> tuple[tuple[Failure, ...], tuple[Failure, ...]]:
    """Make a note of a warning that is alone: of what a program may go on after.

    Args:
        behind: How many lines follow on each rule that may be alone.
    """
    if len(found) != 1 or found[0].name not in behind or not _is_only_warned(found[0]):
        return found, told
    (one,) = found
    has_more = one.times + one.alike > 1
    places = (*one.evidence, *one.firsts)
    if _STATES_END.search(one.evidence[0].text) or any(_MAY_JOIN.search(at.text) for at in places):
        is_end = behind[one.name] <= _GOES_ON
    elif one.kind == "follows":
        is_end = has_more
    else:  # said again until the log ends
        is_end = has_more and behind[one.name] <= _ENDS
    if is_end:
        return found, told
    cause = f"only a warning says so, and a program may go on after it: {one.cause}"
    return (), (*told, replace(one, name="only_warned", cause=cause, kind="note"))


def _is_only_warned(failure: Failure) -> bool:
    said = (failure, *failure.others)
    places = [place for one in said for place in (*one.evidence, *one.firsts)]
    return all(_WARNED.search(at.text) or _MAY_JOIN.search(at.text) for at in places)


def _recorded(last: list[Hit], found: Sequence[Failure]) -> list[Failure]:
    """What torchrun recorded of the rank that failed, where nothing that was found names one."""
    if any(failure.ranks or failure.name == "worker_failed" for failure in found):
        return []
    return [hit.failure() for hit in last if hit.rule.name == "worker_failed"]


def _of_consequences(
    follows: list[Hit],
    warned: list[Hit],
    trace: tuple[str, str, str, Evidence] | None,
    others: list[Hit],
) -> list[Failure]:
    """What is left to tell where no line is a cause: the first of what followed from it."""
    first = min((hit.first for hit in follows), default=0)
    if follows and not any(hit.first < first for hit in warned):
        return [follows[0].failure()]
    if trace and not follows:
        return [_of_trace(*trace, (warned or others)[:2])]
    return [warned[0].failure()] if warned else []


def _if_first(
    ended: Hit,
    hits: Sequence[Hit],
    failures: Sequence[Failure],
    *errors: tuple[str, str, str, Evidence] | tuple[str, Evidence] | None,
) -> list[Failure]:
    """The end of a process, where no sign of another failure is earlier in its file."""
    end = ended.evidence[0]
    signs = [*(hit.evidence[0] for hit in hits), *(it.evidence[0] for it in failures)]
    signs += [error[-1] for error in errors if error]
    is_first = all(end.file != sign.file or end.line <= sign.line for sign in signs)
    return [ended.failure()] if is_first else []


def _of_word(word: str, where: Evidence) -> Failure:
    cause, fix = _WORDS[word]
    return Failure(
        name="error_word",
        cause=f"{cause}; no reason of NCCL's own is recognised in this log",
        fix=f"{fix}; {WHOLE_LOG}",
        evidence=(where,),
    )


def _said(hit: Hit) -> str:
    return hit.evidence[0].text.partition("NCCL WARN ")[2]


def _of_trace(file: str, code: str, why: str, where: Evidence, warned: list[Hit]) -> Failure:
    word = list(_WORDS)[int(code) - 1]
    because = f" ({why})" if why and why != "Operation now in progress" else ""
    before = "after the warning below" if warned else "of which this log has no warning"
    cause = f"a call of NCCL ended with {word}{because} in {file}, {before}"
    if code == "3" and file.startswith("misc/socket") and not warned:
        cause += ": as a rule another rank or thread had failed, or was aborted, first"
    return Failure(
        name="error_code",
        cause=cause,
        fix=WHOLE_LOG,
        times=1 + len(warned),
        evidence=(*(hit.evidence[0] for hit in warned), where),
    )
