"""Which layers of a model take none of the weights that it begins with: `init_leave_out`.

A name means the layer and all below it: `head` is `head.weight` and `head.bias`. One with a `*`, a
`?` or brackets is a pattern of the whole name, or of that of a layer.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config

KEY = "init_leave_out"
_SOURCES = ("run", "path", "ckpt", "ckpt_path", "checkpoint", "file", "weights")
_WILD = re.compile(r"[*?\[]")


def check_left_out(config: Config, origins: Origins) -> None:
    """Refuse layers to leave out of no weights, and an empty name.

    Raises:
        ConfigError: with the key.
    """
    names = config.init_leave_out
    if names and not config.init_from:
        other = "or leave it out: all layers begin fresh"
        is_typed = origins.is_typed(KEY)
        hint = f"write init_from{'=' if is_typed else ': '}RUN beside it, {other}"
        raise origins.error(KEY, f"is {', '.join(names)}, and there is no init_from", hint)
    if not all(it.strip() for it in names):
        raise origins.error(KEY, "has an empty name", f"write {KEY}: [head]")


def two_keys(value: object, *, typed: bool) -> str:
    """For `init_from: {run: digits, leave_out: [head]}`: the two keys to write; else empty."""
    if not isinstance(value, Mapping) or not value:
        return ""
    source = next((value[it] for it in _SOURCES if isinstance(value.get(it), str)), "RUN")
    of_layers = (it for key, it in value.items() if key not in _SOURCES)
    layers = next((it for it in of_layers if isinstance(it, list | str)), ["LAYER"])
    names = ", ".join(map(str, [layers] if isinstance(layers, str) else layers))
    if typed:
        return f"write init_from={source} {KEY}=[{names.replace(' ', '')}]"
    return f"write init_from: {source} and, below it, {KEY}: [{names}]"


def is_left_out(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name of a state_dict is one of these, or of a layer that is."""
    return any(_fits(name, it) for it in patterns)


def _fits(name: str, pattern: str) -> bool:
    pattern = pattern.strip().removesuffix(".")
    if not _WILD.search(pattern):
        return name == pattern or name.startswith(f"{pattern}.")
    return any(fnmatch.fnmatchcase(it, pattern) for it in [name, *_above(name)])


def _above(name: str) -> Iterator[str]:
    """The layers that a weight is of, the nearest first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def layers_of(names: Collection[str], others: Collection[str]) -> list[str]:
    """The fewest layers that have all of `names` and none of `others`, where there are such.

    A layer of the lowest kind goes as a whole: a bias that fits is nothing without its weight.
    """
    layers: dict[str, None] = {}
    for name in names:
        above = [*_above(name)][::-1]
        free = (it for it in above if not any(is_left_out(other, [it]) for other in others))
        nearest = above[-1] if above else ""
        below = [it for it in (*names, *others) if nearest and it.startswith(f"{nearest}.")]
        is_lowest = bool(below) and not any("." in it[len(nearest) + 1 :] for it in below)
        layers[next(free, nearest if is_lowest else name)] = None
    return [*layers]


def tops_of(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The layers at the depth of the deepest pattern, for one that fits none of them."""
    depth = max((it.count(".") for it in patterns), default=0) + 1
    return [*dict.fromkeys(".".join(it.split(".")[:depth]) for it in names)]
