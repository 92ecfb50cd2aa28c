"""Files that are whole or absent: temporary name beside the target, fsync, rename, fsync."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def fsync_path(path: Path) -> None:
    """Wait until a file's bytes, or the renames in a folder, survive a power cut (fsync(2)).

    Raises:
        OSError: as the file system says.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace `path` by a file holding `text`; readers see the old one or the new one.

    Args:
        durable: False leaves out the fsyncs, for files that are rewritten every second.

    Raises:
        OSError: as the file system says; nothing is left behind under the temporary name.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        fsync_path(path.parent)


def create_text(path: Path, text: str) -> None:
    """Make a file that nobody else has made; who sees it sees all of it.

    Raises:
        FileExistsError: somebody was faster.
        OSError: as the file system says.
    """
    whole = path.with_name(f".{path.name}-{socket.gethostname()}-{os.getpid()}")
    whole.write_text(text, encoding="utf-8")
    try:
        os.link(whole, path)
    finally:
        whole.unlink()
