"""With which arguments the model of other weights was made, beside those of this one.

Read from the plan of the run that the weights are of; a default that nobody wrote from the text of
the class. Nothing is loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.python_text.default_types import defaults_of
from hpc_train.errors import HpcTrainError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan

_KEY = "model.init_args."
_PLAIN_WORD = re.compile(r"(?!(?i:true|false|null|none|yes|no|on|off|y|n)\Z)[A-Za-z_][\w./-]*")
_UNKNOWN = object()  # a default that only Python could work out


@dataclass(frozen=True)
class OtherArgument:
    """One that the two models were made with otherwise.

    Attributes:
        name: Of the class.
        was: Its value in the run of the weights; `_UNKNOWN` where the text does not tell.
        now: The same here.
        was_default: Whether nobody wrote it there.
    """

    name: str
    was: Any
    now: Any
    was_default: bool

    @property
    def typed(self) -> str:
        """`model.init_args.hidden=32`, as it is typed; empty where that cannot be said."""
        text = _typed(self.was)
        return f"{_KEY}{self.name}={text}" if text else ""

    @property
    def had(self) -> str:
        """`model.init_args.hidden=32 (its default)`."""
        default = " (its default)" if self.was_default else ""
        had = self.typed or f"{_KEY}{self.name}{'' if self.was_default else f' {self.was!r}'}"
        return f"{had}{default}"

    @property
    def said(self) -> str:
        """`model.init_args.hidden=32 (its default), here 64`."""
        now = "its default" if self.now is _UNKNOWN else _typed(self.now) or repr(self.now)
        return f"{self.had}, here {now}"


def run_of_weights(path: Path) -> RunDir | None:
    """The run in whose folder they lie; None for a file from elsewhere."""
    folder = next((it for it in path.parents if (it / "plan.json").is_file()), None)
    return RunDir(folder) if folder else None


def other_arguments(
    run: RunDir,
    class_path: str,
    now: Mapping[str, Any],
    search_path: Sequence[str],
    saved: Mapping[str, Any] | None = None,
) -> list[OtherArgument]:
    """Those of the model that may give its weights another shape.

    A number below 1, such as a learning rate, gives none.

    Args:
        run: Which the weights are of.
        class_path: Of the model that is to begin with them.
        now: Its arguments.
        search_path: As `sys.path`, with the user's folder first.
        saved: What the model itself has saved with its weights, where that is known: of a default
            that has changed in the code since, the text tells only what it is now.

    Returns:
        None of them where it was another class, or nobody knows.
    """
    try:
        then = read_plan(run).training.model
    except HpcTrainError:
        return []
    if then.class_path != class_path:
        return []
    found = locate(class_path, search_path)
    defaults = defaults_of(found) if found else {}
    changed, kept = [], saved or {}
    for name in dict.fromkeys([*now, *then.init_args, *(it for it in kept if it in defaults)]):
        was = then.init_args.get(name, kept.get(name, defaults.get(name, _UNKNOWN)))
        is_now = now.get(name, defaults.get(name, _UNKNOWN))
        if _plain(was) != _plain(is_now) and not (_is_a_rate(was) or _is_a_rate(is_now)):
            changed.append(OtherArgument(name, was, is_now, name not in then.init_args))
    return changed


def _plain(value: Any) -> Any:
    """As a config has it: a tuple is a list there."""
    return [*map(_plain, value)] if isinstance(value, (list, tuple)) else value


def _is_a_rate(value: object) -> bool:
    return isinstance(value, float) and abs(value) < 1


def _typed(value: Any) -> str:
    """A value in one word of a command line; empty for what is none."""
    if isinstance(value, str):
        return value if _PLAIN_WORD.fullmatch(value) else ""
    try:
        text = json.dumps(_plain(value), separators=(",", ":"))
    except (TypeError, ValueError):
        return ""
    return "" if re.search(r"\s", text) else text
