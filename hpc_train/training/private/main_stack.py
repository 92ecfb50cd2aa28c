"""Where the main thread is, seen from another one; `sys._current_frames` is CPython's own."""

from __future__ import annotations

import sys
import threading

# Of each frame, the innermost first: file, function, instruction.
Place = tuple[tuple[str, str, int], ...]


def place_of_main_thread() -> Place:
    """Stays the same while the main thread waits inside of C code, and moves with Python code."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    place = []
    while frame is not None:
        place.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lasti))
        frame = frame.f_back
    return tuple(place)
