"""Layers that begin fresh where a model takes weights: those that `init_leave_out` names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hpc_train.config.fit.left_out_layers import KEY, is_left_out, layers_of, tops_of
from hpc_train.config.words import near_words
from hpc_train.errors import CheckError
from hpc_train.plan.states import SUBMIT_AGAIN

_Value = TypeVar("_Value")
_LAYER = "LAYER"  # in the place of a name that nobody can guess
_MOST = 12  # names in a line


@dataclass(frozen=True)
class FreshLayers:
    """What is left out of weights that a model begins with.

    Attributes:
        patterns: As the config has them; none = nothing is left out.
        said: For the log of a rank; empty where nothing is left out.
    """

    patterns: Sequence[str]
    said: str

    @classmethod
    def of(
        cls, own: Collection[str], saved: Collection[str], patterns: Sequence[str], path: Path
    ) -> FreshLayers:
        """Hold the patterns against the names of the model's weights and of those that are saved.

        Raises:
            CheckError: one fits none of them, or nothing is left.
        """
        for pattern in patterns:
            if not any(is_left_out(it, [pattern]) for it in (*own, *saved)):
                raise _fits_nothing(pattern, patterns, dict.fromkeys([*own, *saved]), path)
        if not patterns:
            return cls((), "")
        kept = [it for it in saved if not is_left_out(it, patterns)]
        if not kept:
            said = f"{KEY}: {', '.join(patterns)} leaves out all weights of {path}"
            raise CheckError(said, "name fewer layers, or leave init_from out as well")
        return cls(patterns, _said(own, saved, patterns, len(kept)))

    def fresh(self, own: Mapping[str, _Value]) -> dict[str, _Value]:
        """Of the model's weights those that stay as they are."""
        return {name: it for name, it in own.items() if is_left_out(name, self.patterns)}

    def kept(self, state: Mapping[str, _Value]) -> dict[str, _Value]:
        """Those that are not left out."""
        return {name: it for name, it in state.items() if not is_left_out(name, self.patterns)}


def misfits(own: Mapping[str, Any], saved: Mapping[str, Any]) -> list[str]:
    """The layers without which the rest would fit; none where that is not most of the model."""
    shapes = {name: _shape(it) for name, it in saved.items()}
    fit = [name for name, it in own.items() if name in shapes and shapes[name] == _shape(it)]
    others = [it for it in dict.fromkeys([*own, *saved]) if it not in set(fit)]
    layers = layers_of(others, fit)
    left = [it for it in fit if not is_left_out(it, layers)]
    return layers if 2 * len(left) >= len(own) else []


def _shape(value: Any) -> tuple[int, ...] | None:
    """Of a tensor, or of what the metadata of shards have of one."""
    size = getattr(value, "shape", None) or getattr(value, "size", None)
    return None if size is None or callable(size) else tuple(size)


def _said(own: Collection[str], saved: Collection[str], patterns: Sequence[str], taken: int) -> str:
    fresh = [it for it in own if is_left_out(it, patterns)]
    dropped = [it for it in saved if is_left_out(it, patterns) and it not in set(fresh)]
    said = [f"left out ({KEY}: {', '.join(patterns)})"]
    said += [f"begin fresh: {_listed(fresh)}"] if fresh else []
    said += [f"not of this model: {_listed(dropped)}"] if dropped else []
    return "; ".join([*said, f"{taken} others are taken"])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{', '.join(names[:_MOST])}{more}"


def _fits_nothing(
    pattern: str, patterns: Sequence[str], names: Collection[str], path: Path
) -> CheckError:
    what = f"{KEY}: {pattern!r} fits no weight of the model, and none of {path}"
    known = f"their layers: {_listed(tops_of(names, patterns))}"
    layers = _layers(names)
    nested = [it for it in layers if it.endswith(f".{pattern}")]  # what is above it is missing
    meant = next(iter([*nested, *near_words(pattern, layers)]), "")
    # What is typed next is taken from here: never the name again that fits nothing.
    typed = ",".join((meant or _LAYER) if it == pattern else it for it in patterns)
    where = f"; {known}" if meant else f", {_LAYER} one of {known}"
    return CheckError(what, f"{SUBMIT_AGAIN} {KEY}=[{typed}]{where}")


def _layers(names: Collection[str]) -> list[str]:
    """All layers, those above in front of those below them."""
    parts = [name.split(".") for name in names]
    ends = range(1, max(map(len, parts), default=0) + 1)
    return [*dict.fromkeys(".".join(it[:end]) for end in ends for it in parts)]
