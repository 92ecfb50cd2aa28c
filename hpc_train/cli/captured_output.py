"""What `submit` has printed, typed where a RUN belongs: `RUN=$(hpc-train submit CFG)`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from hpc_train.errors import UsageError

_COMMANDS = {"submitted": "submit CFG", "resumed": "resume RUN", "run": "test RUN"}
_NAMED = re.compile(r"\bwatch\s+hpc-train status ('[^']+'|\S+)")


def captured_output(words: Sequence[str]) -> UsageError | None:
    """The error to tell, with the run's id and how a script gets it; None for other words.

    Args:
        words: Of the command line: behind the command the output, as one word or, without quotes
            around its variable, as many.
    """
    if len(words) < 2:
        return None
    # Options of the command may stand in front of it.
    text = next((it for it in words[1:] if "\n" in it.strip()), " ".join(words[1:]))
    first = text.split(maxsplit=1)[:1]
    named = _NAMED.search(text)
    if first and named and first[0] in _COMMANDS:
        key = "sweep" if re.search(r"\bjob array\b", text) else "run"
        return _told(words[0], _COMMANDS[first[0]], named[1], key)
    return _of_json(words[0], text)


def _of_json(command: str, text: str) -> UsageError | None:
    """The same of the document that `--json` has printed, quoted or not."""
    if not text.startswith("{"):
        return None
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if not isinstance(document, dict) or "schema_version" not in document:
        return None
    key = next((it for it in ("run", "sweep") if isinstance(document.get(it), str)), "")
    return _told(command, "submit CFG", document[key], key) if key else None


def _told(command: str, printed_by: str, run: str, key: str) -> UsageError:
    name = printed_by.partition(" ")[0]
    gets = f"RUN=$(hpc-train {printed_by} --json | jq -r .{key})"
    return UsageError(
        f"what stands behind {command} is the output of hpc-train {name}, and no RUN",
        f"hpc-train {command} {run}; in a script: {gets}",
    )
