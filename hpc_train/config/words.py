"""One way to say "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(
    word: str, candidates: Iterable[str], *, prefix: str = "", cutoff: float = 0.6
) -> str:
    """`did you mean 'nodes'?`, or nothing when no candidate is near."""
    import difflib  # only on the way to an error

    near = difflib.get_close_matches(word, list(candidates), n=2, cutoff=cutoff)
    if not near:
        return ""
    return "did you mean " + " or ".join(f"'{prefix}{match}'" for match in near) + "?"
