"""Paths that no file system takes: too long, or with a NUL; wherever one is met, told alike."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from hpc_train.errors import ConfigError, HpcTrainError, NoSuchRunError

# Linux takes names of so many bytes, and paths with the NUL at their end (limits.h).
MAX_NAME, MAX_PATH = 255, 4096
_SHOWN = 40
_FIX = f"write a name of at most {MAX_NAME} bytes, in a path of less than {MAX_PATH}"


def told_as_typed(
    error: BaseException | None, words: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> HpcTrainError | None:
    """What an operating system's refusal of a path means for who has typed it; else None.

    Args:
        words: Of the command line, in which it may stand: `key=PATH`, `--option PATH`, `PATH`.
        environ: Of which `HPC_TRAIN_RUNS_DIR` may hold it.
    """
    if isinstance(error, ValueError) and "embedded null" in str(error):
        return ConfigError("a path or a name holds a NUL character", "write it without \\0")
    if not isinstance(error, OSError) or error.errno != errno.ENAMETOOLONG:
        return None
    path = os.fsdecode(error.filename or "")
    name = max(path.split("/"), key=len)
    size = len(os.fsencode(name))
    if size > MAX_NAME:
        what = f"{name[:_SHOWN]}... is a name of {size} bytes"
    else:
        what = f"{path[:_SHOWN]}... is a path of {len(os.fsencode(path))} bytes"
    key, is_of_config = _where(name, path, words, environ or {})
    kind = ConfigError if is_of_config else NoSuchRunError
    return kind(f"{key}{what}, and no file system takes that", _FIX)


def how_to_read(error: OSError) -> str:
    """What to do about a file that cannot be read."""
    return _FIX if error.errno == errno.ENAMETOOLONG else "check its permissions"


def _where(
    name: str, path: str, words: Sequence[str], environ: Mapping[str, str]
) -> tuple[str, bool]:
    """The key, the option or the variable that holds it, and whether that is the config's."""
    for place, word in enumerate(words):
        key, equals, value = word.partition("=")
        if equals and (name in value or (len(value) > MAX_NAME and value in path)):
            return f"{key}: ", not key.startswith("--runs-dir")
        if not equals and name in word:
            option = words[place - 1] if place and words[place - 1].startswith("-") else ""
            is_run = option in ("", "--runs-dir") and not word.endswith((".yaml", ".yml", ".py"))
            return (f"{option}: " if option else ""), not is_run
    variable = "HPC_TRAIN_RUNS_DIR"
    held = environ.get(variable, "")
    if len(held) > MAX_NAME and (name in held or held in path):
        return f"{variable}: ", False
    return "", True
