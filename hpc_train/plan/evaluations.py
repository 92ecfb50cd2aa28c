"""What an evaluation needs of the user's classes: methods of the model, one of the data."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.plan.plan import Verb

# Of the methods of the model one will do: Lightning's own predict_step calls `forward`.
NEEDED: Mapping[Verb, tuple[tuple[str, ...], str]] = {
    "test": (("test_step",), "test_dataloader"),
    "validate": (("validation_step",), "val_dataloader"),
    "predict": (("predict_step", "forward"), "predict_dataloader"),
}
