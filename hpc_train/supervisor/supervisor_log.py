"""The log of the supervisor: each line into the job's output and into the attempt's own file."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class SupervisorLog:
    """Says what happens, with the time of day."""

    file: Path | None = None

    def say(self, text: str) -> None:
        """One line (or some) to standard output and, once there is an attempt, to its log."""
        stamp = time.strftime("%H:%M:%S")
        line = f"{stamp} hpc-train: {text}\n"
        sys.stdout.write(line)
        sys.stdout.flush()
        if self.file is not None:
            # A full disk costs this copy, and not the run.
            with contextlib.suppress(OSError), self.file.open("a", encoding="utf-8") as stream:
                stream.write(line)
