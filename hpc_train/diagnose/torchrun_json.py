"""What torchrun writes as JSON: its agent's events, and the files in which a rank's error lies.

Sources: torch's elastic/agent/server/api.py (_construct_event), elastic/events/api.py,
elastic/multiprocessing/errors/error_handler.py.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_EVENT = '"torchelastic.worker.status.FAILED"'
# As json.dumps(indent=2) writes an error file.
_MESSAGE = re.compile(
    r'^\s{0,40}"message": "(?P<what>[A-Z]\w{1,80}(?:Error|Exception|Interrupt|Exit)'
    r'(?:: (?:[^"\\]|\\.){1,300})?)"'
)


@dataclass(frozen=True)
class FailedWorker:
    """A rank that an event of torchrun calls failed.

    Attributes:
        who: `rank 1`.
        how: `; after 43 s, with 3 restarts`; may be empty.
        error: Its exception, empty where the record has none.
        code: Its exit code, negative for a signal; empty where the event has none.
    """

    who: str
    host: str
    how: str
    error: str
    code: str


def failed_worker(line: str) -> FailedWorker | None:
    """Return what an event says; None where the line is no event of a rank that failed."""
    if _EVENT not in line:
        return None
    try:
        event = json.JSONDecoder().raw_decode(line, line.index("{"))[0]
        said = event["metadata"]
        if said["global_rank"] is None:
            return None
        codes = json.loads(said.get("metadata") or "{}").get("exit_code") or [""]
        return FailedWorker(
            who=f"rank {int(said['global_rank'])}",
            host=str(said.get("hostname") or ""),
            how=_how(said),
            error=_error(json.loads(said.get("raw_error") or "{}")),
            code="" if codes[0] is None else str(codes[0]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # cut, or of another program


def _how(said: dict[str, Any]) -> str:
    seconds, restarts = said.get("total_run_time"), said.get("agent_restarts")
    after = [f"after {seconds} s"] if isinstance(seconds, int) else []
    again = [f"with {restarts} restart{'s'[: restarts > 1]}"] if restarts else []
    return f"; {', '.join(after + again)}" if after or again else ""


def _error(record: dict[str, Any]) -> str:
    """The message of an error file, which torch's own handler puts into another one."""
    message = record.get("message") or ""
    if isinstance(message, dict):
        message = message.get("message") or ""
    first = str(message).partition("\n")[0]
    return "" if first == "<NONE>" else first[:300]


def error_of_file(line: str) -> str:
    """Return the exception that a line of an error file tells; empty where it is none."""
    found = _MESSAGE.match(line)
    if found is None:
        return ""
    try:
        return str(json.loads(f'"{found["what"]}"')).partition("\n")[0]
    except ValueError:
        return ""
