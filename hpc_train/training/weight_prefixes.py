"""Weights whose names differ by one prefix alone from those of the model that is to take them.

As `module.` of DataParallel and DistributedDataParallel, `_orig_mod.` of torch.compile, and the
name under which a LightningModule keeps a net that was saved by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def with_own_names(
    state: Mapping[str, Any], names: Collection[str]
) -> tuple[Mapping[str, Any], str]:
    """The weights under the names of the model, and what to say of it.

    They are left as they are, and nothing is said, where one prefix alone does not make all of them
    the same.

    Args:
        state: As it was saved.
        names: Of the model's own state_dict.
    """
    if not state or not names or set(state) & set(names):
        return state, ""
    if prefix := _prefix(state, names):
        fit = {name.removeprefix(prefix): value for name, value in state.items()}
        return fit, f"each name begins with {prefix!r}, which the model's do not: taken without it"
    if prefix := _prefix(names, state):
        fit = {f"{prefix}{name}": value for name, value in state.items()}
        return fit, f"the names of the model begin with {prefix!r}: taken with it"
    return state, ""


def _prefix(longer: Collection[str], shorter: Collection[str]) -> str:
    """What all the one have in front of all the other; empty where there is none such."""
    first = next(iter(longer))
    for name in shorter:
        prefix = first.removesuffix(name)
        if prefix.endswith(".") and {f"{prefix}{it}" for it in shorter} == set(longer):
            return prefix
    return ""
