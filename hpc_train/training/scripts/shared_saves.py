"""Several ranks of a script that write one file: noticed as they save, and told once.

The ranks share a folder of the attempt: who is the first to save to a path makes a file for it
there, and who finds that of another rank has noticed it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any

from hpc_train.runs.atomic import create_text
from hpc_train.runs.layout import AttemptDir

_PATHS = 64  # a rank says so many and no more: each is a small file
_TOLD = "told"


def path_saved_to(target: Any) -> str:
    """Of a path, or of a stream of one, that torch.save is given; empty for what is no file."""
    is_path = isinstance(target, (str, os.PathLike))  # a Path has a name as well: its last part
    name = target if is_path else getattr(target, "name", None)
    if not isinstance(name, (str, os.PathLike)):
        return ""
    path = os.path.abspath(name)  # noqa: PTH100 - a last link is another file's name, and stays
    return "" if isinstance(path, bytes) or path.startswith("/dev/") else path


class SharedSaves:
    """One rank's part. A full disk costs the word, not the save."""

    def __init__(self, attempt: AttemptDir, *, rank: int, node: str) -> None:
        self._folder = attempt.save_claims
        self._run = attempt.path
        self._rank, self._node = rank, node
        self._seen: set[str] = set()

    def saving(self, target: Any) -> None:
        """This rank saves to a path, or to a stream of one."""
        path = path_saved_to(target)
        if not path or path in self._seen or len(self._seen) >= _PATHS:
            return
        self._seen.add(path)
        with contextlib.suppress(OSError):
            self._claim(path)

    def told(self) -> str:
        """What rank 0 has to say, once; empty before and after."""
        with contextlib.suppress(OSError):
            text = (self._folder / _TOLD).read_text(encoding="utf-8")
            (self._folder / _TOLD).write_text("", encoding="utf-8")
            return text
        return ""

    def _claim(self, path: str) -> None:
        # The same name on another node is the same file where it lies beside the run.
        shared = Path(path).parent.stat().st_dev == self._run.stat().st_dev
        key = path if shared else f"{self._node}:{path}"
        self._folder.mkdir(exist_ok=True)
        claim = self._folder / hashlib.sha256(key.encode()).hexdigest()
        try:
            create_text(claim, str(self._rank))
        except FileExistsError:
            who = f"ranks {claim.read_text(encoding='utf-8')} and {self._rank} both"
            fix = "let one rank save, or put RANK into the name"
            create_text(self._folder / _TOLD, f"WARNING: {who} write {path}: {fix}")
