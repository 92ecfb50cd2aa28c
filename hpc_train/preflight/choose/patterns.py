"""How NCCL reads the lists in NCCL_SOCKET_IFNAME and NCCL_IB_HCA.

Source: parseStringList and matchIfList in NCCL's misc/utils.cc; `^` and `=` are read once, at the
start, for the whole list (NCCL user guide, environment variables).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NameList:
    """A list as NCCL understands it."""

    negated: bool  # it began with `^`: what matches is left out
    exact: bool  # `=` followed: names must be equal; otherwise each is a prefix
    items: tuple[tuple[str, int], ...]  # (name, port), port 0 for any

    @classmethod
    def parse(cls, text: str) -> NameList:
        """Return the list that NCCL makes of `text`."""
        negated = text.startswith("^")
        rest = text[1:] if negated else text
        exact = rest.startswith("=")
        rest = rest[1:] if exact else rest
        items = []
        for part in rest.split(","):
            name, _, port = part.partition(":")
            if name:
                items.append((name, int(port) if port.isdigit() else 0))
        return cls(negated=negated, exact=exact, items=tuple(items))

    def matches(self, name: str, port: int = 0) -> bool:
        """Return whether NCCL would use this interface, or this port of this HCA."""
        hit = any(
            (name == wanted if self.exact else name.startswith(wanted))
            and (number == 0 or port in (0, number))
            for wanted, number in self.items
        )
        return hit != self.negated

    def misread(self) -> list[str]:
        """Return items with a `^` or `=` inside the list, which NCCL takes for part of a name."""
        return [name for name, _ in self.items if name[0] in "^="]

    def by_prefix_only(self, names: list[str]) -> list[str]:
        """Return names that match although nobody wrote them (mlx5_1 also takes mlx5_10)."""
        if self.exact or self.negated:
            return []
        wanted = {name for name, _ in self.items}
        return [
            name
            for name in names
            if name not in wanted
            # A prefix such as `ib` or `mlx5` is meant as one: no device bears it as its name.
            and any(name.startswith(item) and item in names for item in wanted)
        ]
