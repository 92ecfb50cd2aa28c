"""Numbers that stand in the DataLoader of `train_dataloader`, held against the config."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hpc_train.config.class_kind import method_of
from hpc_train.config.schema import Config

_MOST_STEPS = 3  # of methods that call others of their class


def loader_notes(class_path: str, config: Config, path: Sequence[str]) -> Iterator[str]:
    """A line each: more data workers than a rank's CPUs, a batch size that is not the config's."""
    workers, cpus = _written(class_path, "num_workers", 5, path), config.slurm.cpus_per_gpu
    if workers is not None and cpus is not None and workers > cpus:
        says = f"{class_path} has train_dataloader start {workers} workers a rank"
        fix = f"slurm.cpus_per_gpu={workers + 1}, or num_workers={cpus - 1}"
        yield f"{says}, and slurm.cpus_per_gpu is {cpus}: write {fix}"
    size = _written(class_path, "batch_size", 1, path)
    if size not in (None, config.global_batch_size, config.micro_batch_size):
        decides = f"global_batch_size, {config.global_batch_size}, decides what a rank has"
        yield f"{class_path} has train_dataloader give batches of {size}, and {decides}"


def _written(class_path: str, argument: str, place: int, path: Sequence[str]) -> int | None:
    """The number in the DataLoader that train_dataloader makes, or a method that it calls.

    Args:
        class_path: Of the data.
        argument: Of DataLoader.
        place: Of the argument among those without a name.
        path: As `sys.path`.

    Returns:
        None where none stands there, or where several loaders have not the same.
    """
    found = {_number(it, argument, place) for it in _loaders(class_path, "train_dataloader", path)}
    return next(iter(found)) if len(found) == 1 else None


def _loaders(
    class_path: str, method: str, path: Sequence[str], steps: int = _MOST_STEPS
) -> Iterator[ast.Call]:
    found = method_of(class_path, method, path) if steps else None
    for call in ast.walk(found[1]) if found else ():
        if not isinstance(call, ast.Call):
            continue
        holder, _, name = ast.unparse(call.func).rpartition(".")
        if name == "DataLoader":
            yield call
        elif holder == "self" and name != method:
            yield from _loaders(class_path, name, path, steps - 1)


def _number(call: ast.Call, argument: str, place: int) -> int | None:
    named = [it.value for it in call.keywords if it.arg == argument]
    value = (*named, *call.args[place : place + 1], None)[0]
    is_number = isinstance(value, ast.Constant) and type(value.value) is int
    return value.value if isinstance(value, ast.Constant) and is_number else None  # type: ignore[return-value]
