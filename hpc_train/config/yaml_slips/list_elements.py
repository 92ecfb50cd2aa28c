"""An element of a list that is named by its class and not by its number."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET
from hpc_train.config.whole_forms import flow

_MOST = 600  # characters of a list that is told to be typed


def hint_of_element(
    holder: Sequence[Any], name: str, below: Sequence[str], value: Any, prefix: str
) -> str:
    """What to write for `trainer.callbacks.EarlyStopping.patience=5`, or what elements there are.

    Args:
        holder: The list.
        name: What stands in the place of an element's number.
        below: The keys below the element.
        value: What is to be set.
        prefix: The list's key, with a dot behind it.
    """
    names = [_class_of(it) for it in holder]
    found = [number for number, it in enumerate(names) if it.lower() == name.lower()]
    if len(found) == 1 and below:
        spec = holder[found[0]]
        is_argument = CLASS_PATH in spec and below[0] not in (CLASS_PATH, INIT_ARGS)
        keys = [str(found[0]), *([INIT_ARGS] if is_argument else []), *below]
        return f"write {shlex.quote(f'{prefix}{chr(46).join(keys)}={_text(value)}')}"
    if len(holder) == 1 and not below and not name.lstrip("-").isdecimal() and any(names):
        keys = ["0", *([INIT_ARGS] if CLASS_PATH in holder[0] else []), name]
        return f"of {names[0]}: write {shlex.quote(f'{prefix}{chr(46).join(keys)}={_text(value)}')}"
    known = f"its elements are 0 to {len(holder) - 1}" if holder else "it is empty"
    if any(names) and not name.lstrip("-").isdecimal():
        known = f"it has {', '.join(f'{number} {it}'.strip() for number, it in enumerate(names))}"
    if name == str(len(holder)) and not below and any(names):
        return f"to add to it, write {typed_list(prefix[:-1], [*holder, value])}"
    return f"{known}; give the whole list to make it longer: {prefix[:-1]}=[...]"


def typed_list(key: str, elements: Sequence[Any]) -> str:
    """The word that is typed for a list; points for one that no line holds."""
    text = flow(list(elements))
    return shlex.quote(f"{key}={text}") if len(text) <= _MOST else f"{key}=[...], the whole list"


def _class_of(element: Any) -> str:
    spec = element if isinstance(element, Mapping) else {}
    return str(spec.get(CLASS_PATH) or spec.get(TARGET) or "").rpartition(".")[2]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else flow(value)
