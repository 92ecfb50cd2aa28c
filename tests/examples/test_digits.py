from __future__ import annotations

import torch

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


def test_the_images_are_those_of_the_published_set() -> None:
    data = DigitsData()
    data.setup("fit")
    images, labels = data.validation.dataset.tensors  # type: ignore[attr-defined]
    assert images.shape == (1797, 1, 8, 8)
    assert set((images * 16).unique().tolist()) == {float(ink) for ink in range(17)}
    # Of each digit, as optdigits.names tells it for its test set
    of_each = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert labels.bincount().tolist() == of_each


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
