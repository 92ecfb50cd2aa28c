"""Slurm's hostlists: `rack[1-2]n[01-02],gpu7` to names in Slurm's order, and back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z", re.ASCII)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z", re.ASCII)
_PIECE = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_MAX_HOSTS = 65536  # Slurm's own limit of nodes a job (MAX_SLURM_NODES, 64k)


def expand(hostlist: str) -> list[str]:
    """Names in the order Slurm wrote them, which is the order of SLURM_NODEID.

    ClusterShell's NodeSet sorts what it expands, and the first name here is where rank 0 lives;
    so this side is our own, and the tests hold it against NodeSet's.

    Raises:
        ValueError: when the text is not a hostlist, or names more than 65,536 hosts.
    """
    text = hostlist.strip()
    pieces = _PIECE.findall(text)
    if not text or ",".join(pieces) != text:
        raise ValueError(f"{hostlist!r} is not a hostlist such as rack[1-2]n[01-02],gpu7")
    names: list[str] = []
    for piece in pieces:
        names.extend(itertools.islice(_expand_piece(piece), _MAX_HOSTS + 1 - len(names)))
    if len(names) > _MAX_HOSTS:
        raise ValueError(f"{hostlist!r} names more than {_MAX_HOSTS} hosts")
    for name in names:
        if _NAME.match(name) is None:
            raise ValueError(f"{hostlist!r} is not a hostlist: {name!r} is no host name")
    return names


def fold(names: Iterable[str]) -> str:
    """The shortest hostlist for `names`, sorted, each once; empty for none.

    Raises:
        ValueError: when a name holds anything but letters, digits, `.`, `_` and `-`.
    """
    wanted = sorted(set(names))
    for name in wanted:
        if _NAME.match(name) is None:
            raise ValueError(f"{name!r} is no host name")
    if len(wanted) < 2:
        return "".join(wanted)
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet  # 30 ms, and rarely needed

    return str(NodeSet.fromlist(wanted, resolver=RESOLVER_NOGROUP))


def folded(names: Sequence[str]) -> str:
    """`fold` for people: names that are no host names are listed as they stand."""
    try:
        return fold(names)
    except ValueError:
        return ", ".join(names)


def fold_numbers(numbers: Iterable[int]) -> str:
    """`0-2,5`, as sbatch's --array takes it; each once, in ascending order."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _expand_piece(piece: str) -> Iterator[str]:
    parts = re.split(r"\[([^\]]*)\]", piece)
    choices = [_numbers(part, piece) if index % 2 else (part,) for index, part in enumerate(parts)]
    return map("".join, itertools.product(*choices))


def _numbers(ranges: str, piece: str) -> list[str]:
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.match(part)
        if match is None:
            raise ValueError(f"{piece!r} is not a hostlist: [{ranges}] is no list of numbers")
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low):
            raise ValueError(f"{piece!r} is not a hostlist: {part} runs backwards")
        if int(high) - int(low) >= _MAX_HOSTS:
            raise ValueError(f"{piece!r} names more than {_MAX_HOSTS} hosts")
        numbers += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return numbers
