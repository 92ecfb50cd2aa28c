"""How the ranks of an attempt ended: what they have left, and what can be known beside it."""

from __future__ import annotations

import re
from dataclasses import replace

from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.log_tail import words_before_traceback
from hpc_train.runs.ranks import ExitRecord, read_exits, read_heartbeats
from hpc_train.supervisor.silent_ends import silent_ends


def read_ends(
    folder: AttemptDir, said: str, world_size: int, *, is_whole: bool
) -> list[ExitRecord]:
    """Their exit records, by time, and those of ranks that could write none.

    Args:
        said: By their launcher.
        is_whole: That is a srun which has ended by itself, with nobody asked to stop.
    """
    told = [_with_words(record, folder) for record in read_exits(folder)]
    if not is_whole:
        return told
    return [*told, *silent_ends(said, told, read_heartbeats(folder), world_size)]


def _with_words(record: ExitRecord, folder: AttemptDir) -> ExitRecord:
    """An exit code alone tells nothing: what was printed before it does (argparse's error)."""
    if not re.fullmatch(r"SystemExit: -?\d+", record.error):
        return record
    words = words_before_traceback(folder.rank_log(record.rank))
    return replace(record, error=f"{record.error}, after {words!r}") if words else record
