"""What hpc-train's own commands have said in a log: `error: ...`, and the fix in the next line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from hpc_train.diagnose.around import PREFIX
from hpc_train.diagnose.diagnosis import Culprit
from hpc_train.diagnose.log_files import blocks, open_log
from hpc_train.diagnose.rules import MAX_TEXT, Evidence
from hpc_train.diagnose.shorten import shortened

REFUSAL = "own_refusal"  # the rule of such a line that says whose it is
_MAX_BYTES = 2_000_000
_FIX = re.compile(r"  fix: (?P<fix>\S.{0,2000})")
_ERROR = re.compile(r"error: (?P<what>\S.{0,2000})")
# Of other tasks, and of Slurm about their ends.
_FOLLOWS = re.compile(r"error: |  fix: |(?:srun|slurmstepd|salloc): |\s*$")


def fix_below(lines: Sequence[str]) -> str:
    """The fix in the line behind the first one; empty where that says none."""
    found = _FIX.match(_bare(lines[1])) if len(lines) > 1 else None
    return found["fix"].strip() if found else ""


def refused_command(name: str) -> Culprit | None:
    """The command that was refused, where a log ends with that; None where it goes on.

    Args:
        name: Of the log; of a large one nothing is told, nor of one that can't be read again.
    """
    if name == "-":
        return None
    data = b""
    with open_log(name) as file:
        for block in blocks(file):
            data += block
            if len(data) > _MAX_BYTES:
                return None
    lines = data.decode("utf-8", "replace").split("\n") if b"  fix: " in data else []
    behind = itertools.takewhile(lambda line: _FOLLOWS.match(_bare(line)), reversed(lines))
    begin = len(lines) - sum(1 for _ in behind)
    for number, line in enumerate(lines[begin:], begin):
        error = _ERROR.match(_bare(line))
        if error and (fix := fix_below(lines[number : number + 2])):
            text = shortened(line.strip(), MAX_TEXT)
            return Culprit(
                name=REFUSAL,
                cause=f"hpc-train refused: {error['what'].strip()}",
                fix=fix,
                evidence=(Evidence(file=name, line=number + 1, text=text),),
            )
    return None


def _bare(line: str) -> str:
    return PREFIX.sub("", line, count=1)
