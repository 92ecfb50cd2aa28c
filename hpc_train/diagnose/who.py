"""Who wrote a line: its rank and its node, by its own words and the name of its file."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

_RANK_FILE = re.compile(r"(?:^|[^a-z])rank[-_. ]?(\d{1,6})(?!\d)(?!.*rank[-_. ]?\d)", re.IGNORECASE)
# torch ([rank3]:, [Rank 3], its agent's events, c10d's [3] is setting up), mpirun
# ([1,3]<stderr>). torchrun's [default3]: is a local rank, and a task of srun may be a launcher of
# many.
_RANK_TEXT = re.compile(
    r"\[rank=?(\d+)\]|\[Rank (\d+)\]|(?:^|\s)\[\d+,(\d+)\]<std"
    r'|"global_rank": (\d+), "group_rank"|\[(\d+)\] is setting up NCCL communicator\b'
)
# What a line says of the rank that it is about; others are named further behind.
_RANK_WORDS = re.compile(r"(?:^\W{0,3}|\b[Oo]n )[Rr]ank (\d+)\b(?! of \d)")
LABEL = re.compile(r"^ {0,5}(\d{1,5}): ", re.MULTILINE)  # srun -l; ctest -V writes the same
_OF_NCCL = re.compile(r"NCCL (?:INFO|WARN) ")
_NODE = re.compile(
    r"srun: error: ([\w.-]{1,200}): tasks? |^\S{3} [ \d]\d [\d:]{8} ([\w.-]{1,200}) kernel:"
    r"|^[\d-]{10}T\S{8,20} ([\w.-]{1,200}) kernel:"
    r"|\b(?:JOB|STEP) \S{1,40} (?:STEPD TERMINATED )?ON ([\w.-]{1,200})\b"
    r"|(?:^|\s)([A-Za-z][\w.-]{0,200}):\d{1,10}:\d{1,10} \[\d{1,3}\] .{0,200}NCCL "
    r'|"hostname": "([\w.-]{1,200})", "state": "FAILED"'
)


def rank_of(place: Evidence, *, is_labelled: bool = False) -> int | None:
    """The rank that wrote a line, or of which a launcher wrote it.

    Args:
        is_labelled: Whether a number before it is a task's.
    """
    found = _of_file(place.file) or _RANK_TEXT.search(place.text)
    if found is None and is_labelled:
        found = LABEL.match(place.text)
    if found is None and not _OF_NCCL.search(place.text):
        found = _RANK_WORDS.search(place.text)
    return next((int(rank) for rank in found.groups() if rank), None) if found else None


@lru_cache(maxsize=64)
def _of_file(name: str) -> re.Match[str] | None:
    return _RANK_FILE.search(name.rpartition("/")[2])


def node_of(place: Evidence) -> str:
    """The node that a line names as its own; empty where it names none."""
    found = _NODE.search(place.text)
    return next((name for name in found.groups() if name), "") if found else ""


def is_part_of_address(host: str) -> bool:
    """Whether a host of NCCL's lines may be the first part of an IPv4 address.

    NCCL ends a name at its first dot (getHostName in src/misc/utils.cc), so that many machines
    whose names are addresses are all called `10`.
    """
    return host.isascii() and host.isdigit() and int(host[:4]) < 256
