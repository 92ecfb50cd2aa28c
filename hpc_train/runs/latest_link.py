"""The link from a run's folder to its newest attempt, also where something else has its name.

What follows links as it copies a run (scp -r, rsync -L) leaves a folder there, and an archive of a
system without links a small file.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from pathlib import Path

from hpc_train.runs.layout import RunDir

_LINK_AS_TEXT = re.compile(r"attempts[/\\]\d+\s*")


def link_latest(run: RunDir, number: int) -> str:
    """Let `latest` lead to attempt `number`, whose folder is there.

    A copy of an attempt that has the name is put aside; nothing is removed.

    Returns:
        What a person should know of it; empty where a link, or nothing, was there.
    """
    try:
        note = "" if run.latest.is_symlink() else _put_aside(run, number)
        if run.latest.is_symlink() or not run.latest.exists():
            _link(run, number)
    except OSError as error:
        why = error.strerror or str(error)
        return f"no link {run.latest} could be made ({why}); the newest attempt is in {_in(number)}"
    return note


def _put_aside(run: RunDir, number: int) -> str:
    if run.latest.is_file():
        with contextlib.suppress(ValueError):
            if _LINK_AS_TEXT.fullmatch(run.latest.read_text(encoding="utf-8")):
                run.latest.unlink()  # a link itself, as its copier writes it
    if not run.latest.exists():
        return ""
    aside = run.path / f"latest-copy-{number}"
    copied = _attempt_copied(run)
    if copied is None or os.path.lexists(aside):
        moves = f"mv {shlex.quote(str(run.latest))} {shlex.quote(f'{run.latest}-old')}"
        what = "a folder" if run.latest.is_dir() else "a file"
        at = f"the newest attempt is in {_in(number)}"
        return f"{run.latest} is {what} and no link to the newest attempt: {moves}; {at}"
    run.latest.rename(aside)
    return f"latest was a copy of {_in(copied)} and no link to it: it is {aside.name} now"


def _attempt_copied(run: RunDir) -> int | None:
    """The attempt of which the folder `latest` has the very files, each as long as there."""
    files = _sizes(run.latest) if run.latest.is_dir() else None
    numbers = sorted(int(it.name) for it in run.attempts.iterdir() if it.name.isdecimal())
    same = (it for it in reversed(numbers) if _sizes(run.attempt(it).path) == files)
    return next(same, None)


def _sizes(folder: Path) -> dict[str, int]:
    found = {}
    for place, _, names in os.walk(folder):
        for file in (Path(place, name) for name in names):
            found[str(file.relative_to(folder))] = file.lstat().st_size
    return found


def _link(run: RunDir, number: int) -> None:
    """Replaced at once, as many look through it all the time."""
    link = run.path / f".latest-{number}"
    link.unlink(missing_ok=True)  # of a supervisor that was killed
    link.symlink_to(_in(number))
    link.replace(run.latest)


def _in(number: int) -> str:
    return f"attempts/{number}"
