"""What `predict` gives, in the run's folder in the order of the data set."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from hpc_train.runs.ranks import leave_note
from hpc_train.training.private.lightning import pl
from hpc_train.training.resume.lightning_adapter import LightningAdapter


class PredictionFiles(pl.Callback):
    """Writes `predictions.pt`, or one file a rank where the outputs are not one a sample.

    Args:
        adapter: Knows which samples this rank was given.
        folder: Where to write; with several loaders the files are `predictions-0.pt` and on.
    """

    def __init__(self, adapter: LightningAdapter, folder: Path) -> None:
        self._adapter = adapter
        self._folder = folder
        self._outputs: dict[int, list[Any]] = {}

    @override
    def on_predict_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keep what the model gave, on the CPU."""
        self._outputs.setdefault(dataloader_idx, []).append(_on_cpu(outputs))

    @override
    def on_predict_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """Every rank writes its own part; rank 0 puts them together."""
        indices = self._adapter.predicted
        for number, of_loader in enumerate(indices):
            outputs = self._outputs.get(number, [])
            if of_loader is None:  # one rank alone: the order is that of the loader
                of_loader = _counted(outputs)
            part = {"indices": of_loader[: len(outputs)], "outputs": outputs}
            name = f"predictions-{number}" if len(indices) > 1 else "predictions"
            self._folder.mkdir(parents=True, exist_ok=True)
            torch.save(part, self._folder / f"{name}-rank-{trainer.global_rank}.pt")
            trainer.strategy.barrier("predictions")
            if trainer.is_global_zero and (
                said := _put_together(self._folder, name, trainer.world_size)
            ):
                rank = self._adapter.state.rank
                leave_note(rank.run.attempt(rank.attempt), said)


def _put_together(folder: Path, name: str, ranks: int) -> str:
    """Make one file of those of the ranks; what is to be said where that cannot be, else empty."""
    files = [folder / f"{name}-rank-{rank}.pt" for rank in range(ranks)]
    parts = [torch.load(file, weights_only=False) for file in files]
    indices = [batch for part in parts for batch in part["indices"]]
    try:
        whole = in_order(indices, [output for part in parts for output in part["outputs"]])
    except ValueError as error:
        print(f"predictions  {folder}/{name}-rank-*.pt: {error}", flush=True)  # noqa: T201
        given = next((it for part in parts for it in part["outputs"]), None)
        return _left_apart(files, name, given)
    torch.save(whole, folder / f"{name}.pt")
    for file in files:
        file.unlink()
    print(f"predictions  {folder / name}.pt", flush=True)  # noqa: T201 - a rank's log
    return ""


def _left_apart(files: list[Path], name: str, given: Any) -> str:
    """How to read the ranks' own files, and what predict_step has to return for one of them all."""
    has_rows = isinstance(given, (Tensor, list, tuple, Mapping))
    what = f"a {type(given).__name__} a batch" + (", without a row a sample" if has_rows else "")
    more = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
    read = f'torch.load("{files[0]}", weights_only=False)["outputs"]'
    return (
        f"predict_step gives {what}, so that there is no {name}.pt: {read} has what each batch"
        f" gave{more}; for one file in the order of the data, return a tensor with a row a sample"
    )


def in_order(indices: list[list[int]], outputs: list[Any]) -> Any:
    """The outputs of batches as one output, in the order of the data set.

    Args:
        indices: Of the samples of each batch, by position in the set.
        outputs: For each batch a tensor or a list with a row a sample, or a tuple or dictionary of
            these.

    Returns:
        The same with rows of all samples; tensors whose rows differ in shape become a list.

    Raises:
        ValueError: an output has not a row for each sample.
    """
    first = outputs[0] if outputs else []
    if isinstance(first, Mapping):
        return {key: in_order(indices, [output[key] for output in outputs]) for key in first}
    if isinstance(first, tuple):
        columns = zip(*outputs, strict=True)
        return tuple(in_order(indices, list(column)) for column in columns)
    for batch, output in zip(indices, outputs, strict=True):
        has_rows = isinstance(output, list) or (isinstance(output, Tensor) and output.ndim > 0)
        if not has_rows or len(output) != len(batch):
            raise ValueError("predict_step's outputs have not a row for each sample")
    order = sorted((sample, place) for place, sample in enumerate(chain(*indices)))
    places = [place for _, place in order]
    if isinstance(first, Tensor) and len({output.shape[1:] for output in outputs}) == 1:
        return torch.cat(outputs)[places]
    rows = [row for output in outputs for row in output]
    return [rows[place] for place in places]


def _counted(outputs: list[Any]) -> list[list[int]]:
    """Positions of samples that came in order, as many as the outputs have rows."""
    counted, begin = [], 0
    for output in outputs:
        rows = output
        while isinstance(rows, (Mapping, tuple)) and rows:
            rows = next(iter(rows.values() if isinstance(rows, Mapping) else rows))
        size = len(rows) if isinstance(rows, (Tensor, list)) else 1
        counted.append(list(range(begin, begin + size)))
        begin += size
    return counted


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {key: _on_cpu(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_on_cpu(item) for item in value)
    return [_on_cpu(item) for item in value] if isinstance(value, list) else value
