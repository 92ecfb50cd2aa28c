"""What a layer of torch's was given, where its shape is not what the layer was made for."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_of
from hpc_train.training.failures.frame_values import shape_of
from hpc_train.training.failures.layers import as_written, failed_layer, frames_of, shown_layer

_OF_FORMAT = re.compile(r"same dtype|type .* should be the same|expected scalar type")
_PERMUTED = re.compile(r"x\.permute\([\d, ]+\)")
_TO_FLOAT = ("float64", "int64", "int32", "int16", "int8", "uint8", "bool")


def unfit_input(error: BaseException) -> str:
    """What to write for the layer, or for its input; empty where the error is of something else."""
    if not isinstance(error, RuntimeError | ValueError):
        return ""
    if _OF_FORMAT.search(str(error)):
        return _of_format(frames_of(error))
    told = next((told for pattern, told in _TOLD.items() if re.search(pattern, str(error))), None)
    frames = frames_of(error) if told else []
    found = failed_layer(frames) if frames else None
    shape = shape_of(found[1]) if found else None
    if found is None or not shape or told is None:
        return ""
    kind, of = told
    if not type(found[0]).__name__.startswith(kind):
        return ""
    said = f"{shown_layer(found[0], frames)} is given the shape {list(shape)}"
    fix = of(found[0], shape)
    if _PERMUTED.search(fix) and any(_views(it) for it in frames):
        # Its strides pass through the layers, and view takes no tensor of such strides.
        fix = _PERMUTED.sub(r"\g<0>.contiguous()", fix)
    return f"{said}{fix}" if fix else ""


def _views(frame: FrameType) -> bool:
    """Whether the function of the user's calls `.view(...)` of something."""
    calls = (it.func for it in nodes_of(frame) if isinstance(it, ast.Call))
    is_own = is_users(frame.f_code.co_filename)
    return is_own and any(isinstance(it, ast.Attribute) and it.attr == "view" for it in calls)


def _of_format(frames: Sequence[FrameType]) -> str:
    """Of integers, or doubles, for a layer of floats."""
    found = failed_layer(frames)
    weight = getattr(found[0], "weight", None) if found else None
    if found is None or weight is None:
        return ""
    given, takes = (str(it.dtype).removeprefix("torch.") for it in (found[1], weight))
    if takes != "float32" or given not in _TO_FLOAT:
        return ""
    said = f"{shown_layer(found[0], frames)} takes {takes} and is given {given}"
    bytes_of = ", or x.float() / 255 of images, which are bytes" if given == "uint8" else ""
    return f"{said}: write x.float() in front of it{bytes_of}"


def _of_linear(layer: Any, shape: tuple[int, ...]) -> str:
    last, each = shape[-1], math.prod(shape[1:])
    fits = as_written(layer, in_features=last)
    if len(shape) < 3:
        return f": write {fits}, or give it {layer.in_features} features a sample"
    product = " * ".join(map(str, shape[1:]))
    if each == layer.in_features:
        return f", and {product} = {each}: write x.flatten(1), or nn.Flatten(), in front of it"
    flat = f"x.flatten(1) in front of it and {as_written(layer, in_features=each)}"
    if len(shape) == 3:  # a sequence, or an image without channels
        return f": write {flat}, or {fits} for each of the {shape[1]} rows"
    return f", and {product} = {each}: write {flat}"


def _of_convolution(layer: Any, shape: tuple[int, ...]) -> str:
    dimensions = len(layer.kernel_size) + 2
    channels, single = layer.in_channels, as_written(layer, in_channels=1)
    if len(shape) == dimensions - 1 and shape[-1] != channels:
        one = f", which torch takes for one sample of {shape[0]} channels"
        write = "x.unsqueeze(1)" if channels == 1 else f"x.unsqueeze(1) and {single}"
        return f"{one}: write {write} where the {shape[0]} are samples without channels"
    if len(shape) != dimensions:
        return ""
    if shape[-1] == channels:
        order = ", ".join(map(str, (0, dimensions - 1, *range(1, dimensions - 1))))
        return f", with the channels last: write x.permute({order}) in front of it"
    return f": write {as_written(layer, in_channels=shape[1])}, or give it {channels} channels"


def _of_norm(layer: Any, shape: tuple[int, ...]) -> str:
    """Of a batch norm for another number of dimensions; those of a pair fit both."""
    fitting = {2: 1, 3: 1, 4: 2, 5: 3}.get(len(shape))
    if fitting is None or shape[1] != layer.num_features:
        return ""
    return f": write nn.BatchNorm{fitting}d({layer.num_features})"


def _of_pool(layer: Any, shape: tuple[int, ...]) -> str:
    dimensions = int(type(layer).__name__[-2])
    size = " x ".join(map(str, shape[-dimensions:]))
    fix = "leave out a layer that halves them, or give larger ones"
    return f", images of {size}, which are too small for it: {fix}"


def _of_recurrent(layer: Any, shape: tuple[int, ...]) -> str:
    if len(shape) == 3 and shape[1] == layer.input_size:
        return ", with the features in its middle: write x.transpose(1, 2) in front of it"
    fits = as_written(layer, input_size=shape[-1])
    return f": write {fits}, or give it {layer.input_size} features at the end"


# What the message has, the layers that it is told of, and what follows the shape.
_TOLD: Mapping[str, tuple[str | tuple[str, ...], Callable[[Any, tuple[int, ...]], str]]] = {
    r"mat1 and mat2 shapes cannot be multiplied|size mismatch, ": ("Linear", _of_linear),
    r"expected input\[[\d, ]+\] to have \d+ channels, but got \d+": ("Conv", _of_convolution),
    r"expected \dD(?: or \dD)? input \(got \dD input\)": ("BatchNorm", _of_norm),
    r"input\.size\(-1\) must be equal to input_size": (("LSTM", "GRU", "RNN"), _of_recurrent),
    r"Output size is too small": (("MaxPool", "AvgPool"), _of_pool),
}
