"""What is worth knowing of validation data before their first batch, though the run goes on."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from hpc_train.runs.ranks import leave_note, read_notes
from hpc_train.training.failures.empty_data import why_empty
from hpc_train.training.failures.frame_text import shown_class
from hpc_train.training.failures.unbatched_sets import hook_gives, is_set
from hpc_train.training.failures.users_method import own_method
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.resume.sample_order import EvenBatchSampler

# Of a Trainer's fn, TrainerFn.FITTING and the like: the hook, and what is done with its samples.
_HOOKS = {
    "fit": ("val_dataloader", "validated"),
    "validate": ("val_dataloader", "validated"),
    "test": ("test_dataloader", "tested"),
    "predict": ("predict_dataloader", "predicted"),
}


def tell_of_evaluation(rank: RankConfig, trainer: Any, given: list[Any], dealt: list[Any]) -> None:
    """On rank 0, a note for each loader that gives no batches, or others than it says.

    Args:
        given: The user's loaders.
        dealt: The same with the samples of this rank.
    """
    hook, done = _HOOKS.get(str(getattr(trainer.state.fn, "value", "")), ("", ""))
    if rank.rank != 0 or not hook:
        return
    data = trainer.datamodule
    maker = data if own_method(data, hook) is not None else trainer.lightning_module
    attempt = rank.run.attempt(rank.attempt)
    for loader, share in zip(given, dealt, strict=True):
        if said := said_of(loader, share, done):
            note = f"{hook_gives(maker, hook) or f'{hook} gives'} {said}"
            if note not in read_notes(attempt):
                leave_note(attempt, note)


def said_of(loader: Any, share: Any, done: str) -> str:
    """What a hook gives that gives no batches, or others than it says; empty of any other.

    Args:
        loader: The user's.
        share: What takes its place.
        done: `validated`.
    """
    if is_set(loader):
        name = type(loader).__name__
        write = f"write DataLoader({name}(...), batch_size=32)"
        return f"a {name}, a data set without batches: each sample is {done} by itself; {write}"
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return ""
    try:
        samples = len(loader.dataset)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return ""
    if not samples:
        why = why_empty(loader.dataset)
        empty = f"no sample, so nothing is {done}: "
        return f"{empty}{why or f'its {shown_class(type(loader.dataset))} is empty'}"
    sampler = getattr(share, "batch_sampler", None)
    if not loader.drop_last or not isinstance(sampler, EvenBatchSampler):
        return ""
    sizes = sampler.sizes
    if sizes == [loader.batch_size]:
        return ""
    of = " or ".join(map(str, sizes))
    kept = f"each of the {samples} samples is {done} once, in batches of {of}"
    return f"a loader with batch_size={loader.batch_size} and drop_last=True: {kept}"
