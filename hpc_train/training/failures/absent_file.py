"""A file to be read that is not there: what may be meant by its path, or where it was looked for.

Python's own error has the path as `filename`. That of a data worker, which torch makes anew of its
text, and those of several libraries have it in their text alone: NumPy (lib/_datasource.py), h5py
(h5f.open), polars (os error 2), safetensors, and pyarrow, whose whole text it is.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

from hpc_train.config.meant_words.near_paths import meant_path
from hpc_train.runs.snapshot import copy_at
from hpc_train.training.failures.frame_text import IN_WORKER, nodes_of
from hpc_train.training.failures.frame_values import failing_line, value_of

_MOST_NAMES = 10_000  # of a folder
_MOST_SHOWN = 3
_LACKS = ": bring it there, or take it out of what names it"
_JOINED = "write os.path.join(FOLDER, NAME) for FOLDER + NAME"
_SAID = re.compile(
    r"No such file or directory(?: \(os error 2\))?: ['\"](?P<quoted>[^'\"]+)['\"]"
    r"|No such file or directory(?: \(os error 2\))?: (?P<bare>[^\s'\"]+)$"
    r"|name = '(?P<h5>[^']+)', errno = 2\b"
    r"|^FileNotFoundError: (?P<numpy>\S+\.\w+) not found\.$"
    r"|^FileNotFoundError: (?P<whole>[^\s:]+\.[A-Za-z]\w{0,7})$"
)


def absent_file(error: BaseException, said: str) -> str:
    """What to write for its path; empty where the error is of something else.

    Args:
        error: What the line raised.
        said: The error in one line, `FileNotFoundError: x.csv not found.`
    """
    if not isinstance(error, FileNotFoundError) or error.filename2 is not None:
        return ""
    found = _SAID.search(said) if error.filename is None else None
    told = next(filter(None, found.groups()), "") if found else ""
    path = told or error.filename
    if not isinstance(path, str) or not path or (told and Path(told).exists()):
        return ""
    if slash := _without_slash(path, error):
        return slash
    meant = meant_path(path, Path.cwd())
    if not meant and (lacks := _of_its_folder(Path(path))):
        return lacks
    if Path(path).is_absolute():
        return meant
    if path.startswith("~"):
        return f"nothing replaces ~ here: os.path.expanduser({path!r}), or the whole path"
    begins = f"a relative path begins in {Path.cwd()}"
    copy = None if meant else copy_at(Path.cwd())
    if copy and (copy.original / path).exists():
        link = f"snapshot.link=[{Path(path).parts[0]}]"
        lacks = f"the copy of {copy.original} (snapshot: git), which lacks what git does not track"
        return f"{begins}, {lacks}: submit it with {link}, or write the whole path"
    return f"{begins}: {meant or 'write the whole path'}"


def _without_slash(path: str, error: FileNotFoundError) -> str:
    """That a folder and the name in it were put together without a slash; empty otherwise."""
    for end in range(len(path) - 1, 0, -1):
        folder, name = path[:end], path[end:]
        if folder[-1] not in "./" and name[0] != "/" and (Path(folder) / name).exists():
            lacks = f"{name} is in the folder {folder}, and a slash between them is missing"
            return f"{lacks}: {_with_slash(error, folder)}"
    return ""


def _with_slash(error: FileNotFoundError, folder: str) -> str:
    """`write os.path.join(self.root, name) for self.root + name`, or the same without its names."""
    # Of a data worker's error the frames are those of who asked for the batch.
    line = None if IN_WORKER in str(error) else failing_line(error)
    if line is None:
        return _JOINED
    frame, nodes = line
    for node in (*nodes, *nodes_of(frame)):
        if isinstance(node, ast.BinOp) and value_of(node.left, frame) == folder:
            left, right = ast.unparse(node.left), ast.unparse(node.right)
            return f"write os.path.join({left}, {right}) for {ast.unparse(node)}"
        if isinstance(node, ast.FormattedValue) and value_of(node.value, frame) == folder:
            braces = f"{{{ast.unparse(node.value)}}}"
            return f"write {braces}/ for {braces} in the f-string"
    return _JOINED


def _of_its_folder(path: Path) -> str:
    """That its folder is there with others of its kind; empty where it is not, or it has none."""
    if not path.suffix or path.parent == Path():
        return ""
    try:
        with os.scandir(path.parent) as entries:
            seen = [it.name for it, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except OSError:
        return ""
    alike = sorted(it for it in seen if it.endswith(path.suffix))
    if not alike:
        return ""
    said = f"{path.parent} has no {path.name}, and"
    if len(alike) <= _MOST_SHOWN:
        return f"{said} {', '.join(alike)}{_LACKS}"
    more = " or more" * (len(seen) == _MOST_NAMES)
    return f"{said} {len(alike)}{more} other {path.suffix} files{_LACKS}"
