"""How a script of the user's with a Session is started again: hpc-train cannot do it."""

from __future__ import annotations

from hpc_train.runs.layout import RunDir


def start_again(run: RunDir) -> str:
    """What to do so that such a run goes on: `start it again, and it goes on: loop.py runs/x`."""
    try:
        words = run.session.read_text(encoding="utf-8").strip()
    except OSError:
        words = ""
    return f"start its script again, as before, and it goes on{f': {words}' if words else ''}"
