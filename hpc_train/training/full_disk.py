"""A rank's own words on a full disk: lost, and not an error of the training."""

from __future__ import annotations

import errno
import io
import sys
from typing import TextIO

from typing_extensions import Buffer, override

_FULL = (errno.ENOSPC, errno.EDQUOT)


class _Forgiving(io.FileIO):
    """Drops what does not fit."""

    @override
    def write(self, data: Buffer, /) -> int:
        """The number of bytes, written or not."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            return memoryview(data).nbytes


def survive_full_disk() -> None:
    """Let `print` and logging to this process's streams drop lines when their disk is full.

    Slurm opens the file of `srun --output` for the task itself, so that a full disk would raise
    in the middle of whatever the training says.
    """
    sys.stdout = _forgiving(sys.stdout)
    sys.stderr = _forgiving(sys.stderr)


def _forgiving(stream: TextIO) -> TextIO:
    stream.flush()
    raw = _Forgiving(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
