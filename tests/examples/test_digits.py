from __future__ import annotations

import sys

import pytest
import torch
from sklearn.datasets import load_digits

from hpc_train.errors import ConfigError
from hpc_train.examples.digits import DigitsClassifier, DigitsData


def test_the_images_are_split_the_same_way_every_time() -> None:
    torch.manual_seed(1)
    first = DigitsData()
    first.setup("fit")
    torch.manual_seed(2)
    second = DigitsData()
    second.setup("fit")
    assert len(first.train) == 1437  # type: ignore[arg-type]
    assert len(first.validation) == 360
    assert torch.equal(first.validation[7][0], second.validation[7][0])


def test_the_images_are_those_of_scikit_learn() -> None:
    data = DigitsData()
    data.setup("fit")
    digits = load_digits()
    images, labels = data.validation.dataset.tensors  # type: ignore[attr-defined]
    assert torch.equal(images[:, 0] * 16, torch.tensor(digits.images, dtype=torch.float32))
    assert torch.equal(labels, torch.tensor(digits.target))


def test_batches_have_the_shape_that_the_network_takes() -> None:
    data = DigitsData(batch_size=16)
    data.setup("fit")
    images, labels = next(iter(data.train_dataloader()))
    assert images.shape == (16, 1, 8, 8)
    assert 0 <= float(images.min()) <= float(images.max()) <= 1
    assert labels.shape == (16,)
    assert DigitsClassifier(width=4)(images).shape == (16, 10)


def test_augmentation_moves_images_and_keeps_their_shape() -> None:
    data = DigitsData(augment=True)
    data.setup("fit")
    torch.manual_seed(0)
    seen = {tuple(data.train[0][0].flatten().tolist()) for _ in range(30)}
    assert 2 < len(seen) <= 9
    assert data.train[0][0].shape == (1, 8, 8)


def test_a_missing_scikit_learn_is_said_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ConfigError) as caught:
        DigitsData().setup("fit")
    assert "needs scikit-learn" in caught.value.message
    assert caught.value.hint == "pip install 'hpc-train[examples]'"
