"""An optimizer that gets no parameters: layers in a plain list, tuple or dict, or all frozen."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpc_train.training.failures.frame_text import shown_file
from hpc_train.training.failures.layers import frames_of, owners
from hpc_train.training.failures.unset_attributes import set_in
from hpc_train.training.failures.users_method import lines_of

_EMPTY = "optimizer got an empty parameter list"
_FREEZES = re.compile(r"requires_grad_?\s*(?:=|\()\s*False")
_HOLDERS = {"dict": ("ModuleDict", "ParameterDict"), "list": ("ModuleList", "ParameterList")}


def hidden_layers(error: BaseException) -> str:
    """Which attribute hides them and what to write; empty where the error is of something else."""
    if not isinstance(error, ValueError) or _EMPTY not in str(error):
        return ""
    bare = [it for it in owners(frames_of(error)) if next(iter(it.parameters()), None) is None]
    told = [it for owner in bare for it in _hidden(owner)]
    return "; ".join(dict.fromkeys(told)) or _frozen(owners(frames_of(error)))


def _frozen(models: Iterable[Any]) -> str:
    """That a filter of what is not frozen lets nothing through, and what to write."""
    for model in models:
        parameters = list(model.parameters())
        if not parameters or any(it.requires_grad for it in parameters):
            continue
        kind = type(model)
        lines, first = lines_of(kind)
        found = [first + at for at, line in enumerate(lines) if _FREEZES.search(line)]
        where = f" ({shown_file(inspect.getfile(kind))}:{found[-1]})" if found else ""
        children = model.named_children()  # a head comes last, as a rule
        last = [name for name, it in children if next(it.parameters(), None) is not None]
        behind = " behind that line" if found else ""
        write = f"self.{last[-1]}.requires_grad_(True){behind}, if that is to learn"
        frozen = f"all {len(parameters)} parameters of {kind.__name__} are frozen{where}"
        return f"{frozen}: write {write}" if last else frozen
    return ""


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
