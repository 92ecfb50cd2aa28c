"""Whether this machine's kernel has killed for memory, as far as it counts that."""

from __future__ import annotations

import re
from pathlib import Path

VMSTAT = Path("/proc/vmstat")


def oom_kills(vmstat: Path = VMSTAT) -> int:
    """How many processes this kernel has killed for memory since it started; 0 where none tells.

    Those of memory cgroups among them, as containers and `systemd-run -p MemoryMax=` have. Source:
    Linux, mm/vmstat.c (`oom_kill`, since 4.13) and mm/oom_kill.c.
    """
    try:
        found = re.search(r"^oom_kill (\d+)$", vmstat.read_text(), re.MULTILINE)
    except OSError:  # no Linux
        return 0
    return int(found[1]) if found else 0
