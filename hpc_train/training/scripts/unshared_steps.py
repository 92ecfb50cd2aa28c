"""Ranks of a script's own loop that have exchanged nothing by their second optimizer step."""

from __future__ import annotations

from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.private.accelerate_state import ranks_of_accelerate
from hpc_train.training.private.exchanges import exchanges_so_far
from hpc_train.training.rank_failure import users_line

_WRAP = "wrap the model in torch.nn.parallel.DistributedDataParallel"
_SET_UP = "write model, optimizer = fabric.setup(model, optimizer)"
_PREPARE = "write model, optimizer = accelerator.prepare(model, optimizer)"
_FOR_CPUS = "write cpu=True into the first of its PartialState() and Accelerator()"

_of_fabric = False


def tell_fabric() -> None:
    """A Fabric is made in this process."""
    global _of_fabric
    _of_fabric = True


def users_place() -> str:
    """` (train.py:12)`: the line of the user's that is being executed; empty where there is none.

    Of a file in this folder its name alone.
    """
    file, _, line = users_line().rpartition(":")
    return f" ({shown_file(file)}:{line})" if file else ""


def said_of_unshared(*, ranks: int, known: int) -> str:
    """Where no rank can have the gradients of another, before its second step; else empty.

    Args:
        ranks: How many there are.
        known: Exchanges of this process that were none of gradients, as barriers.
    """
    exchanges = exchanges_so_far()
    if ranks < 2 or exchanges is None or exchanges > known:
        return ""
    return (
        f"the {ranks} ranks exchanged nothing up to their second optimizer step{users_place()}:"
        " each trains a model of its own; unless that is meant,"
        f" {_how_to_share()}"
    )


def _how_to_share() -> str:
    ranks = ranks_of_accelerate()
    if not ranks:
        return _SET_UP if _of_fabric else _WRAP
    return _FOR_CPUS if ranks == 1 else _PREPARE


def note_unshared(attempt: AttemptDir, *, ranks: int, known: int) -> None:
    """Leave a note of that, once; on rank 0."""
    said = said_of_unshared(ranks=ranks, known=known)
    if said and said not in read_notes(attempt):
        leave_note(attempt, said)
