"""Which of the metrics that are logged is meant by a name that is not."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpc_train.config.words import near_words

_STAGES = {
    **dict.fromkeys(("validation", "validate", "valid", "val"), "val"),
    **dict.fromkeys(("training", "train"), "train"),
    "test": "test",
}
_STEPS = {"val": "validation_step", "train": "training_step", "test": "test_step"}
_NEAR = 0.7
# A metric in the name of a model's file (lightning/pytorch, ModelCheckpoint).
_IN_NAMES = re.compile(r"\{([^{}:]+)")


def metrics_in(filename: str) -> list[str]:
    """`val_loss` of a ModelCheckpoint's `{epoch}-{val_loss:.2f}`, with epoch and step."""
    return _IN_NAMES.findall(filename)


def near_metrics(metric: str, names: Iterable[str]) -> str:
    """`did you mean 'val_acc'?` for val_accuracy, not for val_loss; empty where none is near.

    What a validation logs is never near to what a training does, however alike they look.
    """
    known = {name: _parts(name) for name in sorted(names)}
    stage, rest = _parts(metric)
    alike = [it for it, (other, _) in known.items() if not (stage and other and stage != other)]
    same = [it for it in alike if known[it][1] == rest]
    near = [it for it in same if known[it][0] == stage] or same
    if not near:
        plain = {"_".join(filter(None, known[it])): it for it in alike}
        wanted = "_".join(filter(None, (stage, rest)))
        near = [plain[it] for it in near_words(wanted, plain, cutoff=_NEAR)]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def of_stage(metric: str, names: Iterable[str]) -> list[str]:
    """What is logged in the stage that the metric names; all where it names none."""
    stage = _parts(metric)[0]
    return sorted(it for it in names if not stage or _parts(it)[0] == stage)


def step_of(metric: str) -> str:
    """`validation_step` for val_loss; empty where the name tells no stage."""
    return _STEPS.get(_parts(metric)[0], "")


def _parts(metric: str) -> tuple[str, str]:
    """`val`, `loss` of Validation/Loss: the stage, where it begins with one, and the rest."""
    words = [it for it in re.split(r"[\W_]+", metric.lower()) if it]
    stage = _STAGES.get(words[0], "") if len(words) > 1 else ""
    return stage, "_".join(words[bool(stage) :])
