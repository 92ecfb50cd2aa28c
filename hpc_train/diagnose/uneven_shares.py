"""A hang of ranks that have had all of their batches, and of others that have more. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpc_train.diagnose.stacks import Stack, Stage
from hpc_train.runs.ranks import Heartbeat

UNEVEN = "the ranks' shares of the data are not equally long"
_SHOWN = 8


def uneven_shares(stacks: Sequence[Stack], beats: Mapping[int, Heartbeat]) -> str:
    """Which ranks have no batch left where others wait in one that follows; else empty.

    Two things have to agree. By their stacks some are behind the last batch of an epoch, and
    others in forward or backward. By their signs of life these have taken the step of that last
    batch as well, and are in no later epoch: who has left its epoch has left some together with
    all, and what waits for it there stands under an `if`.
    """
    told = [stack for stack in stacks if stack.rank in beats]
    ended = [it.rank for it in told if it.stage in (Stage.VALIDATION, Stage.PAST)]
    more = [it.rank for it in told if it.stage is Stage.BATCH]
    if not ended or not more or len(ended) + len(more) < len(stacks):
        return ""
    if not all(_is_further(beats[one], beats[other]) for one in more for other in ended):
        return ""
    last = min((beats[rank] for rank in ended), key=lambda beat: beat.batch)
    has, its = ("has", "its") if len(ended) == 1 else ("have", "their")
    so_many = _batches([stack for stack in told if stack.rank in ended], beats)
    limit = f"={so_many}" if so_many else ""
    return (
        f"{ranks_text(ended)} {has} had {its} last batch of epoch {last.epoch} at step"
        f" {_steps(last)}, and {ranks_text(more)} {'has' if len(more) == 1 else 'have'} more:"
        f" {UNEVEN}: trainer.limit_train_batches{limit}, or a data set with a length (no"
        " IterableDataset),"
        " of which each rank gets as many"
    )


def _is_further(beat: Heartbeat, ended: Heartbeat) -> bool:
    """Whether a rank in a batch is behind the last step of one that has left this epoch."""
    if beat.epoch is None or ended.epoch is None or beat.epoch > ended.epoch:
        return False
    return beat.step >= _steps(ended)


def _steps(beat: Heartbeat) -> int:
    """Optimizer steps taken; a step counts once its validation is over."""
    return beat.step + (beat.phase == "validate")


def _batches(ended: Sequence[Stack], beats: Mapping[int, Heartbeat]) -> int:
    """How many the shortest share has; 0 where a validation has counted its own batches since."""
    is_told = all(
        stack.stage is Stage.VALIDATION or "validate" not in beats[stack.rank].seconds
        for stack in ended
    )
    return min(beats[stack.rank].batch for stack in ended) if is_told else 0


def ranks_text(ranks: Sequence[int]) -> str:
    """`ranks 0, 3`, of many the first."""
    names = ", ".join(map(str, ranks[:_SHOWN])) + (" ..." if len(ranks) > _SHOWN else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {names}"
