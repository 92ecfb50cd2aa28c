"""What may be meant by a word, or by a text in a number's place."""

from __future__ import annotations

import re
from collections.abc import Iterable


def did_you_mean(
    word: str, candidates: Iterable[str], *, prefix: str = "", cutoff: float = 0.6
) -> str:
    """`did you mean 'nodes'?`, or nothing when no candidate is near."""
    import difflib  # only on the way to an error

    near = difflib.get_close_matches(word, list(candidates), n=2, cutoff=cutoff)
    if not near:
        return ""
    return "did you mean " + " or ".join(f"'{prefix}{match}'" for match in near) + "?"


def meant_number(value: object, types: str) -> str:
    """What a text that stands in a number's place may be meant to be, for the end of a fix."""
    if not isinstance(value, str) or not re.search("int|float", types):
        return ""
    if variable := re.fullmatch(r"\$(\w+)", value):
        return f"; of a variable of the shell: ${{oc.decode:${{oc.env:{variable[1]}}}}}"
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", value):
        return " without quotes; of a variable: ${oc.decode:${oc.env:NAME}}"
    comma = ", with a point" if re.fullmatch(r"-?\d+,\d+", value) else ""
    return f"{comma}; several values: --sweep KEY=VALUES" if "," in value else ""
