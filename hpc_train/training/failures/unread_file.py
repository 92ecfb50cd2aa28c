"""A file that torch, numpy, json or pickle does not read: which one, and what it is instead.

The exception names no file as a rule; the frames that failed hold it.
"""

from __future__ import annotations

import csv
import io
import json
import linecache
import os
import pickle
import re
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

# Functions that read a file, by module, and the argument that is the file.
_READERS = {
    ("torch.serialization", "load"): "f",
    ("numpy.lib.npyio", "load"): "file",
    ("numpy.lib._npyio_impl", "load"): "file",
    ("json", "load"): "fp",
}
# What is raised of content alone; of these the user's own open files are looked at as well.
_OF_CONTENT = (
    EOFError,
    pickle.UnpicklingError,
    json.JSONDecodeError,
    csv.Error,
    UnicodeDecodeError,
)
_OF_PLACES = (IndexError, ValueError, StopIteration, KeyError, zipfile.BadZipFile)
_OPENED = re.compile(
    r"\b(?:open|load\w*|genfromtxt|fromfile|read_\w+)\(\s*r?([\"'])(?P<path>[^\"']+)\1"
)
_HEAD = 256  # bytes
_SHOWN = 24
_CUT_LETTER = 3  # bytes of a letter of UTF-8 without its last one
_CUT = re.compile(
    r"PytorchStreamReader failed|pickle data was truncated|Ran out of input|unexpected EOF"
    r"|Failed to read all data for array|cannot reshape array of size|[Uu]nexpected end|not a zip"
)
_NOT_TORCH = re.compile(r"Unsupported operand|[Ii]nvalid load key|Weights only load failed")
_NOT_NUMPY = re.compile(r"allow_pickle=False|[Ff]ailed to interpret file|magic string")
_OBJECTS = re.compile(r"Object arrays cannot be loaded|containing pickled")
_ANEW = "fetch it again, or write it anew"


def unread_file(error: BaseException) -> str:
    """`train.pt is empty (0 bytes): fetch it again, ...`; empty where its content is not why."""
    if isinstance(error, OSError):  # those name the file, and its content was not read
        return ""
    for path, module in _files(error):
        try:
            if not path.is_file():
                continue
            size = path.stat().st_size
            with path.open("rb") as stream:
                head = stream.read(_HEAD)
        except (OSError, ValueError):
            continue
        if isinstance(error, UnicodeDecodeError) and size:
            return f"{path} {_of_bytes(error, head)}"
        if what := _what_it_is(head, size, module, str(error) or type(error).__name__):
            return f"{path} {what}"
        if head.startswith((b"\x93NUMPY", b"\x80")) and (what := _of_objects(str(error), path)):
            return what
    return _of_objects(str(error)) if "Object arrays" in str(error) else ""


def _of_objects(said: str, path: Path | None = None) -> str:
    """Of an array of Python's objects, which numpy reads where it is asked to alone."""
    if not _OBJECTS.search(said):
        return ""
    file = repr(str(path)) if path else "FILE"
    return f"it holds objects: np.load({file}, allow_pickle=True), for a file that you trust"


def _of_bytes(error: UnicodeDecodeError, head: bytes) -> str:
    """Of a file that is read as a text, and is none in that encoding."""
    byte = error.object[error.start]
    if b"\0" in head:
        return (
            f"is no text (byte 0x{byte:02x}): open it with mode 'rb', or by what reads its format"
        )
    found = f"is no text in {error.encoding} (byte 0x{byte:02x})"
    return f"{found}: write encoding='latin-1' (or what it is in) where it is opened"


def _files(error: BaseException) -> Iterator[tuple[Path, str]]:
    """Files that the failed frames read, the innermost first, and the module that reads them."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        module = frame.f_globals.get("__name__", "")
        name = _READERS.get((module, frame.f_code.co_name))
        if name and (path := _path(frame.f_locals.get(name))):
            yield path, module.partition(".")[0]
    if isinstance(error, _OF_CONTENT):
        for frame in reversed(frames):
            yield from ((path, "") for path in _open_files(frame))
    if isinstance(error, _OF_CONTENT + _OF_PLACES):
        yield from ((path, "line") for path in _of_line(error.__traceback__))


def _open_files(frame: FrameType) -> list[Path]:
    """The one file that a frame has open by a name of its own; several may be meant otherwise."""
    values = [it for it in frame.f_locals.values() if isinstance(it, io.IOBase)]
    paths = {path for path in map(_path, values) if path}
    return [*paths] if len(paths) == 1 else []


def _of_line(trace: TracebackType | None) -> Iterator[Path]:
    """Files that the lines which failed open by their names."""
    for frame, line in reversed([*traceback.walk_tb(trace)]):
        text = linecache.getline(frame.f_code.co_filename, line)
        yield from (Path(found["path"]) for found in _OPENED.finditer(text))


def _path(value: Any) -> Path | None:
    if isinstance(value, io.IOBase):
        value = getattr(value, "name", None)
    return Path(value) if isinstance(value, (str, os.PathLike)) else None


def _what_it_is(head: bytes, size: int, module: str, said: str) -> str:
    start = head.lstrip().lower()
    if not size:
        return f"is empty (0 bytes): {_ANEW}"
    if head.startswith(b"version https://git-lfs"):
        return f"is a pointer of Git LFS ({size} bytes), not the file itself: git lfs pull"
    if start.startswith((b"<!doctype html", b"<html")):
        return (
            f"is a page of HTML ({size} bytes), not data: fetch it again, and look at its address"
        )
    if module == "line":  # of such a line the error may be of anything
        return ""
    known = head.startswith((b"PK", b"\x80", b"\x93NUMPY", b"\x1f\x8b"))
    if known and (_CUT.search(said) or said == "EOFError"):
        return f"is cut or damaged ({size} bytes): compare it with its source, {_ANEW}"
    begins = f"({size} bytes{_beginning(head[:_SHOWN])})"
    if module == "torch" and not known and (_CUT.search(said) or _NOT_TORCH.search(said)):
        return f"is no file of torch.save {begins}: {_ANEW}"
    if module == "numpy" and not known and _NOT_NUMPY.search(said):
        return f"is no .npy or .npz file {begins}: {_ANEW}"
    return f"is what was read {begins}" if module == "json" else ""


def _beginning(head: bytes) -> str:
    """The first words of a file that is text; of other bytes nobody reads anything."""
    text = head.decode("utf-8", "ignore")  # a letter may be cut at the end
    cut = len(head) - len(text.encode())
    is_text = cut <= _CUT_LETTER and all(it.isprintable() or it.isspace() for it in text)
    return f", begins with {text!r}" if is_text else ""
