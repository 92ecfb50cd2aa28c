"""Ranks of a script's own loop that have exchanged nothing by their second optimizer step."""

from __future__ import annotations

from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.frame_text import shown_file
from hpc_train.training.private.exchanges import exchanges_so_far
from hpc_train.training.rank_failure import users_line

_WRAP = "wrap the model in torch.nn.parallel.DistributedDataParallel"
_SET_UP = "write model, optimizer = fabric.setup(model, optimizer)"

_of_fabric = False


def tell_fabric() -> None:
    """A Fabric is made in this process."""
    global _of_fabric
    _of_fabric = True


def note_unshared(attempt: AttemptDir, *, ranks: int, barriers: int) -> None:
    """Leave a note where no rank can have the gradients of another; on rank 0, before its second.

    Args:
        attempt: Where it is left.
        ranks: How many there are.
        barriers: That this process was at, which exchange nothing.
    """
    exchanges = exchanges_so_far()
    if ranks < 2 or exchanges is None or exchanges > barriers:
        return
    file, _, line = users_line().rpartition(":")
    where = f" ({shown_file(file)}:{line})" if file else ""
    said = (
        f"the {ranks} ranks exchanged nothing up to their second optimizer step{where}: each trains"
        f" a model of its own; unless that is meant, {_SET_UP if _of_fabric else _WRAP}"
    )
    if said not in read_notes(attempt):
        leave_note(attempt, said)
