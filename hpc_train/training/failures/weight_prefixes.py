"""Weights whose names differ by one prefix alone from those of the model that is to take them.

As `module.` of DataParallel and DistributedDataParallel, `_orig_mod.` of torch.compile, and the
name under which a LightningModule keeps a net that was saved by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def with_own_names(
    state: Mapping[str, Any], names: Collection[str], needed: Collection[str] | None = None
) -> tuple[Mapping[str, Any], str]:
    """The weights under the names of the model, and what to say of it.

    They are left as they are, and nothing is said, where one prefix alone does not make all of them
    the same.

    Args:
        state: As it was saved.
        names: Of the model's own state_dict.
        needed: Those that have to be among the weights; all by default.
    """
    if needed is not None and len(needed) < len(names):
        return _with_needed(state, needed)
    if not state or not names or set(state) & set(names):
        return state, ""
    if prefix := _prefix(state, names):
        return _taken_without(prefix, state)
    if prefix := _prefix(names, state):
        return _taken_with(prefix, state)
    return state, ""


def _taken_without(prefix: str, state: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    fit = {name.removeprefix(prefix): value for name, value in state.items()}
    return fit, f"each name begins with {prefix!r}, which the model's do not: taken without it"


def _taken_with(prefix: str, state: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    fit = {f"{prefix}{name}": value for name, value in state.items()}
    return fit, f"the names of the model begin with {prefix!r}: taken with it"


def _with_needed(
    state: Mapping[str, Any], needed: Collection[str]
) -> tuple[Mapping[str, Any], str]:
    """The same where the weights have to have some of the model's names, and may have others."""
    if not state or not needed or set(state) & set(needed):
        return state, ""
    first = next(iter(needed))
    for name in state:
        prefix = name.removesuffix(first)
        if prefix.endswith(".") and all(f"{prefix}{it}" in state for it in needed):
            return _taken_without(prefix, state)
        prefix = first.removesuffix(name)
        is_shared = prefix.endswith(".") and all(it.startswith(prefix) for it in needed)
        if is_shared and all(it.removeprefix(prefix) in state for it in needed):
            return _taken_with(prefix, state)
    return state, ""


def _prefix(longer: Collection[str], shorter: Collection[str]) -> str:
    """What all the one have in front of all the other; empty where there is none such."""
    first = next(iter(longer))
    for name in shorter:
        prefix = first.removesuffix(name)
        if prefix.endswith(".") and {f"{prefix}{it}" for it in shorter} == set(longer):
            return prefix
    return ""
