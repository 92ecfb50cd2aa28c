"""One squeue for all jobs: its arguments, and a way to start it that costs no import.

`hpc-train list` is to take no longer than Slurm does, so here neither subprocess nor re is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Collection

__all__ = ["BLANK", "Asked", "cells_of", "squeue_argv"]

# Above this many jobs the list of ids is left out and all of the user's jobs are read instead.
IDS_IN_ONE_COMMAND = 500
BLANK = ("None", "None assigned", "N/A", "Unknown")


def squeue_argv(job_ids: Collection[str]) -> list[str]:
    """Asks for `id|state|reason|nodes|start` of some jobs, those that ended lately included."""
    whose = ["--jobs", ",".join(job_ids)] if len(job_ids) <= IDS_IN_ONE_COMMAND else ["--me"]
    return ["squeue", "--noheader", "--states=all", *whose, "--format=%A|%T|%r|%N|%S"]


def cells_of(line: str) -> list[str] | None:
    """Id, state, reason, nodes and start of a line, empty where Slurm says that there is none."""
    cells = line.split("|")
    return ["" if cell in BLANK else cell for cell in cells] if len(cells) == 5 else None


class Asked:
    """A squeue under way.

    Args:
        job_ids: The jobs it is asked for.

    Raises:
        OSError: there is none on the PATH.
    """

    def __init__(self, job_ids: Collection[str]) -> None:
        self.job_ids = frozenset(job_ids)
        self._text: str | None = None
        self._stream, write = os.pipe()
        try:
            self._pid = os.posix_spawnp(
                "squeue",
                squeue_argv(job_ids),
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, write, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
            )
        except OSError:
            os.close(self._stream)
            raise
        finally:
            os.close(write)

    def said(self) -> str:
        """What it said, once it has ended; nothing where it failed, whatever the reason."""
        if self._text is None:
            parts = []
            while part := os.read(self._stream, 1 << 16):
                parts.append(part)
            os.close(self._stream)
            os.waitpid(self._pid, 0)
            self._text = b"".join(parts).decode(errors="replace")
        return self._text
