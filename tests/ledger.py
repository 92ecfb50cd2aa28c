"""The proof of exactly-once training: what every rank did at every step, and a comparison.

A test tool. Each rank appends a JSON line per optimizer step to `rank-R.jsonl`: the ids of the
samples it used and a hash of the parameters after the step. A step that was lost and taken again
has several lines; the last attempt's is the one that made the result.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch.distributed.tensor import DTensor
from typing_extensions import override

__all__ = [
    "Comparison",
    "Entry",
    "Ledger",
    "LedgerCallback",
    "compare",
    "compare_samples",
    "hash_tensors",
    "read_ledger",
]


@dataclass(frozen=True)
class Entry:
    """One optimizer step of one rank; `step` is counted from 1 and is the number taken."""

    attempt: int
    rank: int
    epoch: int
    step: int
    samples: list[int]
    parameters: str


def hash_tensors(tensors: Iterable[torch.Tensor]) -> str:
    """16 hexadecimal digits over the bytes of all tensors; collective where they are sharded."""
    digest = hashlib.sha256()
    for tensor in tensors:
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        flat = whole.detach().cpu().contiguous().view(-1).view(torch.uint8)
        digest.update(flat.numpy().data)
    return digest.hexdigest()[:16]


class Ledger:
    """Writes one rank's lines; each is in the file before the next step begins."""

    def __init__(self, folder: Path, *, rank: int, attempt: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"rank-{rank}.jsonl").open("a", encoding="utf-8")
        self._rank = rank
        self._attempt = attempt

    def write(
        self, *, epoch: int, step: int, samples: list[int], parameters: Iterable[torch.Tensor]
    ) -> None:
        """Record that `step` optimizer steps are taken, the last with `samples`."""
        entry = Entry(self._attempt, self._rank, epoch, step, samples, hash_tensors(parameters))
        self._file.write(json.dumps(asdict(entry)) + "\n")
        self._file.flush()


class LedgerCallback(pl.Callback):
    """Keeps the ledger of a Lightning training.

    Args:
        ids: The sample ids in a batch.
    """

    def __init__(
        self, folder: Path, *, rank: int, attempt: int, ids: Callable[[Any], list[int]]
    ) -> None:
        self._ledger = Ledger(folder, rank=rank, attempt=attempt)
        self._ids = ids
        self._samples: list[int] = []

    @override
    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Count the micro batch; write where the optimizer stepped."""
        self._samples += self._ids(batch)
        if trainer.fit_loop._should_accumulate():
            return
        current: Any = trainer.fit_loop.epoch_progress.current
        self._ledger.write(
            epoch=current.processed,
            step=trainer.global_step,
            samples=self._samples,
            parameters=pl_module.parameters(),
        )
        self._samples = []


def read_ledger(folder: Path) -> list[Entry]:
    """All lines of all ranks; a torn last line is left out."""
    entries = []
    for path in sorted(folder.glob("rank-*.jsonl")):
        text = path.read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1].splitlines()
        entries += [Entry(**json.loads(line)) for line in lines]
    return entries


@dataclass
class Comparison:
    """What a comparison found.

    Attributes:
        problems: One line each; empty means exactly once.
        steps: Optimizer steps in the result.
        retaken: Steps that were taken more than once, since an attempt lost them.
    """

    problems: list[str] = field(default_factory=list)
    steps: int = 0
    retaken: int = 0


def _effective(entries: list[Entry]) -> tuple[dict[int, list[Entry]], int]:
    """The entries that made the result, by step, and the number of steps taken again."""
    by_step: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_step[entry.step].append(entry)
    retaken = 0
    for step, found in by_step.items():
        last = max(entry.attempt for entry in found)
        retaken += len({entry.attempt for entry in found}) - 1
        by_step[step] = [entry for entry in found if entry.attempt == last]
    return dict(sorted(by_step.items())), retaken


def compare(reference: list[Entry], observed: list[Entry]) -> Comparison:
    """Hold an interrupted run against an undisturbed one of the same world size.

    Every step has to be there, with the same samples on the same ranks in the same order, and
    with the same parameters after it.
    """
    expected, _ = _effective(reference)
    found, retaken = _effective(observed)
    result = compare_samples(reference, observed)
    result.retaken = retaken
    for step in sorted(expected.keys() & found.keys()):
        theirs = {entry.rank: entry for entry in expected[step]}
        ours = {entry.rank: entry for entry in found[step]}
        if theirs.keys() != ours.keys():
            result.problems.append(f"step {step}: ranks {sorted(ours)}, not {sorted(theirs)}")
            continue
        for rank, entry in theirs.items():
            if ours[rank].samples != entry.samples:
                result.problems.append(f"step {step}, rank {rank}: other samples or order")
            if ours[rank].parameters != entry.parameters:
                result.problems.append(f"step {step}, rank {rank}: other parameters")
    return result


def compare_samples(reference: list[Entry], observed: list[Entry]) -> Comparison:
    """Whether each step used the same samples, whatever ranks they were on."""
    expected, _ = _effective(reference)
    found, retaken = _effective(observed)
    result = Comparison(steps=len(found), retaken=retaken)
    for step in sorted(expected.keys() | found.keys()):
        if step not in found or step not in expected:
            where = "missing" if step not in found else "not in the reference"
            result.problems.append(f"step {step}: {where}")
            continue
        wanted, used = _samples(expected[step]), _samples(found[step])
        if wanted != used:
            again, missed = used - wanted, wanted - used
            result.problems.append(
                f"step {step}: repeated {sorted(again)[:5]}, missed {sorted(missed)[:5]}"
            )
        if len({entry.parameters for entry in found[step]}) > 1:
            result.problems.append(f"step {step}: the ranks' parameters differ")
    result.problems += _repeated_in_epoch(found)
    return result


def _samples(entries: list[Entry]) -> Counter[int]:
    return Counter(sample for entry in entries for sample in entry.samples)


def _repeated_in_epoch(found: dict[int, list[Entry]]) -> list[str]:
    epochs: dict[int, Counter[int]] = defaultdict(Counter)
    for entries in found.values():
        epochs[entries[0].epoch] += _samples(entries)
    return [
        f"epoch {epoch}: sample {sample} used {count} times"
        for epoch, samples in epochs.items()
        for sample, count in samples.items()
        if count > 1
    ]
