"""A data set without samples: what of it is empty, and the folder where it looked for them."""

from __future__ import annotations

import ast
import itertools
import os
import re
import traceback
from collections.abc import Iterator, Mapping, Sized
from pathlib import Path
from typing import Any

from hpc_train.config.secrets import looks_secret
from hpc_train.errors import ConfigError
from hpc_train.training.failures.frame_text import is_users, shown_class, shown_file
from hpc_train.training.failures.unset_attributes import value_of_attribute
from hpc_train.training.failures.users_method import lines_of, parsed

_NO_SAMPLES = "num_samples=0"
_SAMPLER = "torch.utils.data.sampler"
_WILD = re.compile(r"[*?\[]")
_LISTS = ("os.listdir", "os.scandir", "os.walk", "listdir", "scandir", "walk")
_GLOBS = ("glob.glob", "glob.iglob", "glob", "iglob")
_OF_A_PATH = ("iterdir", "glob", "rglob", "walk")
_JOINS = ("Path", "PurePath", "pathlib.Path", "str", "os.path.join", "join", "os.path.expanduser")
_LONGEST = 100  # characters of the line that fills it
_SIZED_BY = ("builtins", "torch", "numpy", "pandas")
_MOST_KEYS = 4
_MOST_ENTRIES = 10_000  # of a folder


class EmptySetError(ConfigError):
    """The set that is to be trained with has no sample."""

    def __init__(self, dataset: Any) -> None:
        why = why_empty(dataset) or "look at what your dataset reads, and where"
        super().__init__("the train set is empty", why)

    def of_keys(self, texts: Mapping[str, str]) -> ConfigError:
        """The same with the keys of the config that may be wrong; see `empty_data`."""
        return ConfigError(self.message, _with_keys(self.hint or "", texts))


def empty_data(error: BaseException, texts: Mapping[str, str] | None = None) -> str:
    """Of torch's "num_samples=0": see `why_empty`.

    Args:
        texts: Those among the arguments of the data, by key.
    """
    if not isinstance(error, ValueError) or _NO_SAMPLES not in str(error):
        return ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        names = frame.f_locals
        if frame.f_globals.get("__name__") == _SAMPLER and "data_source" in names:
            return _with_keys(why_empty(names["data_source"]), texts or {})
    return ""


def _with_keys(why: str, texts: Mapping[str, str]) -> str:
    """The reason, and what the config gives its data: first what the reason has by its name."""
    known = {
        key: text
        for key, text in texts.items()
        if key.startswith("data.") and text and len(text) <= _LONGEST and not looks_secret(key)
    }
    named = [key for key in known if re.search(rf"\b{re.escape(key.rpartition('.')[2])}\b", why)]
    keys = [*dict.fromkeys([*named, *known])]
    if len(keys) > _MOST_KEYS:
        keys = named[:_MOST_KEYS]
    look = f"look at {' and '.join(f'{it} ({known[it]})' for it in keys)}" if keys else ""
    return "; ".join(filter(None, (why, look)))


def why_empty(dataset: Any) -> str:
    """`nets.Texts has no sample: self.files is an empty list (nets.py:40: ...); there is no ...`.

    Empty where its class, or what it holds, does not tell.
    """
    kind, held = type(dataset), getattr(dataset, "__dict__", {})
    named = shown_class(kind)
    if kind.__module__.partition(".")[0] == "torch":
        return _of_torch(kind.__name__, held)
    read = getattr(getattr(kind, "__len__", None), "__code__", None)
    for name in read.co_names if read else ():
        value = held.get(name)
        if not isinstance(value, Sized) or _len(value):
            continue
        place, written = value_of_attribute(kind, name)
        text = ast.unparse(written) if written else ""
        line = ": ".join(filter(None, (place, text if len(text) <= _LONGEST else "")))
        of = f"self.{name} is an empty {type(value).__name__}{f' ({line})' if line else ''}"
        looked = next(_folders(written, _texts(kind, held)), "") if written else ""
        return "; ".join(filter(None, (f"{named} has no sample: {of}", looked)))
    counted = _counted(kind, held)
    return f"{named} has no sample: {counted}" if counted else ""


def _counted(kind: type, held: Mapping[str, Any]) -> str:
    """What a __len__ works out, with the sizes and whole numbers in it; empty where it has none."""
    method: Any = getattr(kind, "__len__", None)
    lines, first = lines_of(method)
    node = parsed(lines)
    returned = [it for it in ast.walk(node) if isinstance(it, ast.Return)] if node else []
    file = getattr(getattr(method, "__code__", None), "co_filename", "")
    if len(returned) != 1 or returned[0].value is None or not is_users(file):
        return ""
    place = f"{shown_file(file)}:{first + returned[0].lineno - 1}"
    text = ast.unparse(returned[0].value)
    known = dict(_sizes(returned[0].value, held))
    if not known or len(text) > _LONGEST:
        return ""
    numbers = " and ".join(f"{name} is {size}" for name, size in known.items())
    return f"__len__ gives {text} ({place}), and {numbers}"


def _sizes(node: ast.expr, held: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """`len(self.series)` and `self.window`, which are known without running the user's code."""
    for it in ast.walk(node):
        if isinstance(it, ast.Call) and ast.unparse(it.func) == "len" and len(it.args) == 1:
            value = held.get(ast.unparse(it.args[0]).removeprefix("self."))
            if type(value).__module__.partition(".")[0] in _SIZED_BY and (size := _len(value)) >= 0:
                yield ast.unparse(it), size
        elif isinstance(it, ast.Attribute) and ast.unparse(it.value) == "self":
            value = held.get(it.attr)
            yield from [(ast.unparse(it), value)] if type(value) is int else []


def _of_torch(kind: str, held: Mapping[str, Any]) -> str:
    inner = held.get("dataset")
    if kind != "Subset" or inner is None:
        return f"it is a {kind} of 0 samples" if kind == "TensorDataset" else ""
    whole = shown_class(type(inner))
    whole = "TensorDataset" if whole.startswith("torch.") else whole
    if not _len(inner):
        return why_empty(inner)
    return f"it is a Subset of 0 of the {_len(inner)} samples of a {whole}"


def _len(value: Any) -> int:
    try:
        return len(value)
    except (TypeError, ValueError, RuntimeError):
        return -1


def _texts(kind: type, held: Mapping[str, Any]) -> dict[str, str]:
    """Paths that it keeps, as its code writes them: `self.root`, and `root` where that is it."""
    found: dict[str, str] = {}
    for name, value in held.items():
        if isinstance(value, (str, Path)):
            found[f"self.{name}"] = str(value)
            _, written = value_of_attribute(kind, name)
            if written and ast.unparse(written) in (name, f"Path({name})", f"str({name})"):
                found[name] = str(value)
    return found


def _folders(written: ast.expr, texts: Mapping[str, str]) -> Iterator[str]:
    """What is to be said of each folder that an expression lists."""
    for call in (it for it in ast.walk(written) if isinstance(it, ast.Call)):
        called, given = ast.unparse(call.func), [*call.args, None][0]
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        if called in _LISTS or called in _GLOBS:
            path, pattern = _path(given, texts), ""
            if path and called in _GLOBS:
                path, pattern = _split(path)
        elif isinstance(call.func, ast.Attribute) and call.func.attr in _OF_A_PATH:
            pattern = _path(given, texts) if call.func.attr == "glob" else ""
            path = _path(of, texts)
        else:
            continue
        if path:
            yield _said_of(Path.cwd() / path, pattern)


def _split(path: str) -> tuple[str, str]:
    """The folder above the first part with a wildcard, and that part with what is below it."""
    parts = Path(path).parts
    plain = [*itertools.takewhile(lambda it: not _WILD.search(it), parts)]
    return str(Path(*plain)), str(Path(*parts[len(plain) :]))


def _path(node: ast.AST | None, texts: Mapping[str, str]) -> str:
    """What an expression is, as far as constants and the object's own texts tell; else empty."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name | ast.Attribute):
        return texts.get(ast.unparse(node), "")
    parts: list[ast.AST] = []
    glue = "/"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
        parts, glue = [node.left, node.right], "/" if isinstance(node.op, ast.Div) else ""
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in _JOINS:
        parts = list(node.args)
    elif isinstance(node, ast.JoinedStr):
        glue = ""
        parts = [it.value if isinstance(it, ast.FormattedValue) else it for it in node.values]
    found = [_path(it, texts) for it in parts]
    return glue.join(found) if found and all(found) else ""


def _said_of(folder: Path, pattern: str) -> str:
    if str(folder).startswith("~") or "~" in folder.parts:
        return ""
    try:
        with os.scandir(folder) as entries:
            names = sorted(it.name for it in itertools.islice(entries, _MOST_ENTRIES))
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no folder {folder}"
    except OSError:  # it may not be listed
        return ""
    if not names:
        return f"{folder} is empty"
    if not pattern or "**" in pattern or any(folder.glob(pattern)):
        return ""  # what was found there was left out
    return f"nothing in {folder} fits {pattern}, as {names[0]} does not"
