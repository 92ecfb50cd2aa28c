"""What the numbers of one line say together, where none of them alone does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZE = re.compile(r"([\d.]{1,12}) (?:([KMGT])iB|bytes)")
_POWERS = ("", "K", "M", "G", "T")
# Older torch tells only what it has reserved itself: its CUDA context, NCCL's buffers and other
# libraries of the process hold memory beside that, on large GPUs some GiB.
_OWN_SHARE, _OWN_GIB = 0.2, 3.0
# Newer torch asks the driver what the whole process holds.
_TOLD_SHARE, _TOLD_GIB = 0.05, 1.0
# Shards are padded, so that their sizes are no exact multiples.
_PADDED = 0.01
_MAX_SHARDS = 1024


def with_sums(groups: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return what a pattern caught, with what follows from it.

    `held` is the memory of a GPU that others hold: `total` less `free` and what the process has
    itself (`reserved` by torch alone, or `used` as a whole). `beyond` is that `total` where more
    was `asked` for. `missing` and `surplus` tell `n`
    processes from the `of` that were to come. `shards` is how many times the larger of two flat
    sizes is the smaller one, where that is near a whole number.
    """
    return {**groups, **_held(groups), **_beyond(groups), **_came(groups), **_shards(groups)}


def _held(groups: Mapping[str, str | None]) -> dict[str, str | None]:
    total, free = (_gib(groups.get(name)) for name in ("total", "free"))
    reserved, used = (_gib(groups.get(name)) for name in ("reserved", "used"))
    own = reserved if used is None else used
    # In a container the driver may not know the process: it tells 0 bytes, or 2**34 GiB.
    if total is None or free is None or own is None or not 0 < own + free <= total:
        return {}
    rest = total - free - own
    share, least = (_OWN_SHARE, _OWN_GIB) if used is None else (_TOLD_SHARE, _TOLD_GIB)
    if own == 0 or rest < max(share * total, least):
        return {}
    return {"held": f"{rest:.1f} GiB"}


def _beyond(groups: Mapping[str, str | None]) -> dict[str, str | None]:
    asked, total = (_gib(groups.get(name)) for name in ("asked", "total"))
    return {"beyond": groups["total"]} if asked and total and asked > total else {}


def _gib(size: str | None) -> float | None:
    found = _SIZE.match(size or "")
    if found is None:
        return None
    return float(found[1]) * 1024.0 ** (_POWERS.index(found[2] or "") - 3)


def _came(groups: Mapping[str, str | None]) -> dict[str, str | None]:
    came, of = groups.get("n") or "", groups.get("of") or ""
    if not came.isdigit() or not of.isdigit():
        return {}
    more = int(came) - int(of)
    if more == 0:
        return {}
    return {"surplus": str(more)} if more > 0 else {"missing": str(-more)}


def _shards(groups: Mapping[str, str | None]) -> dict[str, str | None]:
    a, b = (int(groups.get(name) or 0) for name in ("flat_a", "flat_b"))
    if not a or not b:
        return {}
    times = max(a, b) / min(a, b)
    is_whole = abs(times - round(times)) < _PADDED and 2 <= round(times) <= _MAX_SHARDS
    return {"shards": str(round(times))} if is_whole else {}
