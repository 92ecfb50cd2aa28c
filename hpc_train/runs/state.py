"""The user's own folder of things to remember, beside all runs (XDG Base Directory, STATE_HOME)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def state_dir(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/hpc-train`, by default `~/.local/state/hpc-train`; it need not exist."""
    state = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "/")) / ".local" / "state"
    return Path(state) / "hpc-train"
