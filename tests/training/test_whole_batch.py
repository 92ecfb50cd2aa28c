"""A dict that is taken apart, or given to a layer, as if it were a tuple of tensors."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.nn.functional import cross_entropy

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import user_frame
from tests.training.test_failure_words import Net

FILE = "tests/training/test_whole_batch.py"
LINEAR = torch.nn.Linear(2, 2)
X, Y = torch.zeros(3, 2), torch.zeros(3, dtype=torch.long)


def forward(x: Any) -> Any:
    return LINEAR(x)


def step(batch: Any) -> Any:
    x, y = batch
    return cross_entropy(forward(x), y)


def moved(batch: Any) -> Any:
    image, label = batch
    return image.float(), label


def three(batch: Any) -> Any:
    x, y, z = batch
    return x, y, z


def whole(batch: Any) -> Any:
    return forward(batch)


def told(call: Callable[[Any], Any], batch: Any) -> tuple[str, str]:
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        call(batch)
    return fix_of(caught.value), user_frame(caught.value)


def test_the_keys_that_came_for_values_are_told_with_the_line_that_takes_them() -> None:
    line = step.__code__.co_firstlineno + 1
    fix, _ = told(step, {"x": X, "y": Y})
    assert fix == (
        f"batch is a dict with the keys 'x', 'y', and tests/training/test_whole_batch.py:{line}"
        ' takes its keys: write x, y = batch["x"], batch["y"]'
    )
    assert told(step, UserDict({"y": Y, "x": X}))[0].endswith('write x, y = batch["x"], batch["y"]')
    fix, _ = told(moved, {"img": X, "target": Y})
    assert fix.endswith('write image, label = batch["img"], batch["target"]')


def test_a_dict_of_another_number_of_keys_is_told_with_how_to_take_one() -> None:
    fix, _ = told(step, {"a": X, "b": Y, "c": Y})
    assert fix.endswith('takes its keys: write batch["a"] or batch["b"], ... for the value that is'
                        " meant")  # fmt: skip
    assert told(step, {"x": X, "y": Y, "z": Y})[0].endswith('write x, y = batch["x"], batch["y"]')
    assert 'batch["x"]' in told(three, {"x": X, "y": Y})[0]
    assert "the key 'x'," in told(three, {"x": X})[0]


def test_a_dict_in_a_tensors_place_is_told_with_its_keys() -> None:
    fix, place = told(whole, {"x": X, "y": Y})
    assert fix == (
        "forward(batch) is given the whole batch, a dict with the keys 'x', 'y': write"
        ' forward(batch["x"]) or forward(batch["y"])'
    )
    assert place == f"{__file__}:{whole.__code__.co_firstlineno + 1}"


def test_labels_that_are_texts_are_told_with_numbers_for_them() -> None:
    fix, _ = told(step, (X, ("cat", "dog", "cat")))
    assert fix == (
        "y has the texts 'cat', 'dog': have the data set give a number for each, as of"
        ' {"cat": 0, "dog": 1}'
    )
    assert told(step, (X, list("abcd")))[0].endswith('as of {"a": 0, "b": 1, "c": 2, ...}')
    of_numbers = "target takes a tensor, and y is a tuple: write torch.tensor(y)"
    assert told(step, (X, (1, 2)))[0] == of_numbers


class Scores(Net):
    def validation_step(self, batch: Any, index: int) -> None:
        x, y = batch
        self.log("accuracy", (self.layer(x).argmax(1) == y).float().mean())


class Named(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2), f"class{index % 3}"


@pytest.mark.filterwarnings("ignore")
def test_compared_labels_that_are_texts_are_told_with_the_method_that_gives_them() -> None:
    loader, first = torch.utils.data.DataLoader(Named(), batch_size=4), Named.__getitem__.__code__
    quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_checkpointing"), False)
    trainer = pl.Trainer(accelerator="cpu", enable_model_summary=False, **quiet)  # type: ignore[arg-type]
    with pytest.raises(AttributeError) as caught:
        trainer.fit(Scores(), loader, loader)
    where = f"({FILE}:{first.co_firstlineno})"
    assert fix_of(caught.value) == (
        "y has the texts 'class0', 'class1', 'class2': have tests.training.test_whole_batch.Named"
        f'.__getitem__ {where} give a number for each, as of {{"class0": 0, "class1": 1,'
        ' "class2": 2}'
    )


def asked(batch: Any) -> Any:
    return batch["y"].long(), batch["path"]


def compared(batch: Any) -> Any:
    return (batch["y"] == batch["z"]).all()


def test_texts_that_are_asked_for_what_a_tensor_has_are_told_where_they_are_labels() -> None:
    labels, paths, sentences = ["cat", "dog", "cat"], ["a/b", "a/b"], ["one word", "two"]
    assert told(asked, {"y": labels, "path": X})[0].startswith("batch['y'] has the texts 'cat'")
    assert told(compared, {"y": tuple(labels), "z": Y})[0].startswith("batch['y'] has the texts")
    for other in ("cat", ["cat"]):
        assert "texts" not in told(compared, {"y": labels, "z": other})[0]
    for others in (paths, sentences, [1, 2], []):
        assert "texts" not in told(asked, {"y": others, "path": X})[0]


def test_what_is_no_dict_or_fails_for_something_else_is_left_to_others() -> None:
    assert "dict" not in told(step, ("x", "y"))[0]
    assert "dict" not in told(three, (1, 2))[0]
    assert "dict" not in told(step, {1: X, 2: Y})[0]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 3)

    def forward(self, x: Any) -> Any:
        return self.conv(x)

    def training_step(self, batch: Any) -> Any:
        x, y = batch
        return cross_entropy(self(x), y)

    def validation_step(self, batch: Any) -> Any:
        x, y = batch
        return self(x), y

    def made(self, batch: Any) -> Any:
        images, labels, extra = batch
        return torch.as_tensor(images), labels, extra


IMAGES = {"image": torch.zeros(2, 1, 8, 8), "label": torch.zeros(2)}


@pytest.mark.parametrize("batch", [IMAGES, dict(reversed(IMAGES.items()))])
def test_the_line_that_took_the_keys_is_named_however_late_it_fails(batch: Any) -> None:
    line = Net.validation_step.__code__.co_firstlineno + 1
    other = Net.training_step.__code__.co_firstlineno + 1
    place = f"tests/training/test_whole_batch.py:{line} (also line {other})"
    fix, where = told(Net().validation_step, batch)
    write = 'write x, y = batch["image"], batch["label"]'
    assert fix.endswith(f"{place} takes its keys: {write}")
    assert where == f"{__file__}:{line}"


def test_a_line_that_stands_once_is_told_alone() -> None:
    batch = {"a": X, "label": Y, "b": X}
    line = Net.made.__code__.co_firstlineno + 1
    fix, where = told(Net().made, batch)
    assert f"test_whole_batch.py:{line} takes its keys" in fix
    assert fix.endswith('write images, labels, extra = batch["a"], batch["label"], batch["b"]')
    assert where == f"{__file__}:{line}"
