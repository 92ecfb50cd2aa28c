"""What a layer of torch's was given, where its shape is not what the layer was made for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hpc_train.training.frame_values import shape_of
from hpc_train.training.layers import as_written, failed_layer, frames_of, shown_layer

_OF_PRODUCT = re.compile(r"mat1 and mat2 shapes cannot be multiplied|size mismatch, ")
_OF_CHANNELS = re.compile(r"expected input\[[\d, ]+\] to have \d+ channels, but got \d+")


def unfit_input(error: BaseException) -> str:
    """What to write for the layer, or for its input; empty where the error is of something else."""
    said = str(error)
    if not isinstance(error, RuntimeError):
        return ""
    is_product, is_channels = _OF_PRODUCT.search(said), _OF_CHANNELS.search(said)
    frames = frames_of(error) if is_product or is_channels else []
    found = failed_layer(frames) if frames else None
    shape = shape_of(found[1]) if found else None
    if found is None or not shape:
        return ""
    layer = found[0]
    if is_product and type(layer).__name__ == "Linear":
        return _of_linear(layer, shape, frames)
    if is_channels and type(layer).__name__.startswith("Conv"):
        return _of_convolution(layer, shape, frames)
    return ""


def _of_linear(layer: Any, shape: tuple[int, ...], frames: Sequence[FrameType]) -> str:
    said = f"{shown_layer(layer, frames)} is given the shape {list(shape)}"
    last, each = shape[-1], math.prod(shape[1:])
    fits = as_written(layer, in_features=last)
    if len(shape) < 3:
        return f"{said}: write {fits}, or give it {layer.in_features} features a sample"
    product = " * ".join(map(str, shape[1:]))
    if each == layer.in_features:
        return (
            f"{said}, and {product} = {each}: write x.flatten(1), or nn.Flatten(), in front of it"
        )
    flat = f"x.flatten(1) in front of it and {as_written(layer, in_features=each)}"
    if len(shape) == 3:  # a sequence, or an image without channels
        return f"{said}: write {flat}, or {fits} for each of the {shape[1]} rows"
    return f"{said}, and {product} = {each}: write {flat}"


def _of_convolution(layer: Any, shape: tuple[int, ...], frames: Sequence[FrameType]) -> str:
    said = f"{shown_layer(layer, frames)} is given the shape {list(shape)}"
    dimensions = len(layer.kernel_size) + 2
    channels = layer.in_channels
    if len(shape) == dimensions - 1 and shape[-1] != channels:  # which torch takes as one sample
        lacks = f"{said}, without a dimension for the channels: write x.unsqueeze(1)"
        return lacks if channels == 1 else f"{lacks} and {as_written(layer, in_channels=1)}"
    if len(shape) != dimensions:
        return ""
    if shape[-1] == channels:
        order = ", ".join(map(str, (0, dimensions - 1, *range(1, dimensions - 1))))
        return f"{said}, with the channels last: write x.permute({order}) in front of it"
    return (
        f"{said}: write {as_written(layer, in_channels=shape[1])}, or give it {channels} channels"
    )
