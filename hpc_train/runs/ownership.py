"""Whose a run is: what one may read may be another user's, who alone can change it."""

from __future__ import annotations

import os
from pathlib import Path


def owner_of(path: Path) -> str:
    """The name of the user whose it is, or the number of one whom this machine does not know."""
    try:
        return path.owner()
    except KeyError:
        return f"user {path.stat().st_uid}"


def other_owner(path: Path) -> str:
    """The user whose folder of a run this is, where it cannot be changed; else empty.

    A folder that its group may write to, of a run that several look after, can be.
    """
    files = (it for it in (path, path / "plan.json", path / "events.jsonl") if it.exists())
    closed = [it for it in files if not os.access(it, os.W_OK)]
    anothers = (it for it in closed if it.stat().st_uid != os.getuid())
    return next((owner_of(it) for it in anothers), "")


def not_yours(path: Path, what: str, doing: str) -> str:
    """`x7 is a run of root: only they can cancel it`; empty where it can be done.

    Args:
        path: The folder.
        what: It, as it is called.
        doing: The verb.
    """
    owner = other_owner(path)
    return f"{what} of {owner}: only they can {doing} it" if owner else ""
