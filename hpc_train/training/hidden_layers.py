"""Layers in a plain list, tuple or dict, where torch sees none of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.training.layers import frames_of, owners
from hpc_train.training.unset_attributes import set_in

_EMPTY = "optimizer got an empty parameter list"
_HOLDERS = {"dict": ("ModuleDict", "ParameterDict"), "list": ("ModuleList", "ParameterList")}


def hidden_layers(error: BaseException) -> str:
    """Which attribute hides them and what to write; empty where the error is of something else."""
    if not isinstance(error, ValueError) or _EMPTY not in str(error):
        return ""
    bare = [it for it in owners(frames_of(error)) if next(iter(it.parameters()), None) is None]
    told = [it for owner in bare for it in _hidden(owner)]
    return "; ".join(dict.fromkeys(told))


def _hidden(owner: Any) -> Iterator[str]:
    for path, module in owner.named_modules():
        for name, value in vars(module).items():
            made = "dict" if isinstance(value, Mapping) else "list"
            if name.startswith("_") or type(value) not in (list, tuple, dict):
                continue
            parts = [*(value.values() if isinstance(value, dict) else value)]
            kinds = {_kind(it) for it in parts}
            if len(kinds) != 1 or None in kinds:
                continue
            of = kinds.pop()
            holder = f"nn.{_HOLDERS[made][of == 'parameters']}"
            dotted = ".".join(filter(None, ("self", path, name)))
            place = set_in(type(module), name)
            at = f" ({place})" if place else ""
            hides = (
                f"{dotted}{at} is a plain {type(value).__name__} of {of}, which torch passes over"
            )
            brackets = "{...}" if made == "dict" else "[...]"
            yield f"{hides}: write self.{name} = {holder}({brackets})"


def _kind(value: object) -> str | None:
    if hasattr(type(value), "named_modules"):
        return "modules"
    return "parameters" if type(value).__name__ == "Parameter" else None
