"""Output that nobody takes: a full disk, a closed pipe, a terminal that is gone.

It is lost, and no error of the training, nor of what watches it.
"""

from __future__ import annotations

import errno
import io
import sys
from typing import TextIO

from typing_extensions import Buffer, override

_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EPIPE, errno.EIO)  # EIO: write(2) to a hung-up terminal


class _Forgiving(io.FileIO):
    """Drops what is not taken."""

    @override
    def write(self, data: Buffer, /) -> int:
        """The number of bytes, written or not."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _LOST:
                raise
            return memoryview(data).nbytes


def survive_lost_output() -> None:
    """Let `print` and logging to this process's streams drop lines that are not taken.

    Slurm opens the file of `srun --output` for the task itself, so that a full disk would raise
    in the middle of whatever the training says; `hpc-train run CFG | head` reads a few lines alone.
    """
    sys.stdout = _forgiving(sys.stdout)
    sys.stderr = _forgiving(sys.stderr)


def _forgiving(stream: TextIO) -> TextIO:
    try:
        number = stream.fileno()
    except OSError:  # io.UnsupportedOperation: of a notebook, which takes everything
        return stream
    stream.flush()
    raw = _Forgiving(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
