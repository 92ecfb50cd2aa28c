"""What the locals of a failed line tell that its exception does not say."""

from __future__ import annotations

import ast
import itertools
import linecache
import re
import textwrap
import traceback
from collections.abc import Iterator
from typing import Any

from hpc_train.training.failures.logged_later import logged_later
from hpc_train.training.failures.past_the_end import past_the_end
from hpc_train.training.failures.stacked_batches import stacked_batches
from hpc_train.training.failures.table_keys import table_key
from hpc_train.training.failures.text_columns import text_columns
from hpc_train.training.scripts.lacking_words import lacking_words

_STR_INDEX = re.compile(r"(?:list|tuple) indices must be integers or slices, not str")
_EMPTY_TEXT = re.compile(
    r"could not convert string to float: ''|invalid literal for int\(\) with base \d+: ''"
)
_NO_NUMBER = re.compile(
    r"(?:could not convert string to float|invalid literal for int\(\) with base 10):"
    r" (?P<text>'[^']{1,40}')"
)
_A_FLOAT = re.compile(r"'\s*[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?\s*'")
_HEADS = "must be divisible by num_heads"
_SPLIT = "Sum of input lengths does not equal the length"
_KEYS, _SHOWN = 5, 40  # of a dict: so many keys, with so many characters
_SIZED = ("list", "tuple", "str", "ndarray", "Tensor")


def of_frame(error: BaseException) -> str:
    """What to write, by the values at the failed line; empty where they tell nothing."""
    said = str(error)
    if isinstance(error, RuntimeError | ValueError) and (told := stacked_batches(error)):
        return told
    if isinstance(error, TypeError) and _STR_INDEX.search(said):
        return _of_sequence(error)
    if isinstance(error, IndexError):
        empty = (f"{name} is empty there" for name, it in _indexed(error) if not _len(it))
        return lacking_words(error) or next(empty, "") or past_the_end(error)
    if isinstance(error, KeyError):
        return logged_later(error) or table_key(error) or _of_dict(error)
    if isinstance(error, ValueError) and _EMPTY_TEXT.search(said):
        return (
            "an empty text, as of an empty cell, is no number: skip such a row, or give it a value"
        )
    if isinstance(error, TypeError | ValueError) and (told := text_columns(error)):
        return told
    if isinstance(error, ValueError) and (found := _NO_NUMBER.match(said)):
        return _of_text(error, found["text"])
    if isinstance(error, ValueError) and _SPLIT in said:
        return _of_split(error)
    if isinstance(error, AssertionError) and _HEADS in said:
        return _of_heads(error)
    return _of_saved(error) if isinstance(error, AttributeError) else ""


def _of_sequence(error: BaseException) -> str:
    """What a batch is that was asked for a name."""
    for name, value in _indexed(error):
        if type(value) in (list, tuple) and value:
            kinds = {type(it).__name__ for it in value}
            of = f"{len(value)} {kinds.pop() if len(kinds) == 1 else 'value'}"
            of += "s" if len(value) > 1 else ""
            write = f"x, y = {name}" if len(value) == 2 else f"{name}[0]"
            return f"{name} is a {type(value).__name__} of {of}: write {write}"
    return ""


def _of_dict(error: KeyError) -> str:
    """What the one dict of the line has, that has not what it was asked for."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames or not error.args or "site-packages" in frames[-1].f_code.co_filename:
        return ""
    key = error.args[0]
    lacks = {name: it for name, it in _indexed(error) if isinstance(it, dict) and key not in it}
    if len(lacks) != 1:
        return ""
    ((name, held),) = lacks.items()
    if not held:
        return f"{name} is empty there"
    shown = ", ".join(repr(it)[:_SHOWN] for it in itertools.islice(held, _KEYS))
    more = ", ..." if len(held) > _KEYS else ""
    return f"{name} has {len(held)} key{'s' if len(held) > 1 else ''}: {shown}{more}"


def _of_split(error: BaseException) -> str:
    """The lengths of random_split, against the set that it splits."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        lengths, dataset = (frame.f_locals.get(name) for name in ("lengths", "dataset"))
        if frame.f_code.co_name == "random_split" and isinstance(lengths, list | tuple):
            try:
                has, total = len(dataset), sum(lengths)  # type: ignore[arg-type]
            except TypeError:
                return ""
            if any(isinstance(it, float) for it in lengths):
                return f"the fractions sum up to {total:g}, and have to sum up to 1"
            write = "write lengths that sum up to len(dataset), or fractions such as [0.8, 0.2]"
            return f"the lengths sum up to {total}, and the set has {has} samples: {write}"
    return ""


def _of_text(error: BaseException, text: str) -> str:
    """What a text is that float() or int() was given, where a file is read."""
    if _A_FLOAT.fullmatch(text):  # float() reads it: int() was asked
        return f"{text} is no whole number: write float(...), or int(float(...)), for int(...)"
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    values = itertools.chain.from_iterable(it.f_locals.values() for it in frames)
    readers = [it for it in values if type(it).__module__ == "_csv" and hasattr(it, "line_num")]
    if readers and readers[0].line_num == 1:
        first = "stands in the first line of the file, as a rule its header"
        skip = "skip it: reader = csv.reader(...), next(reader) behind it, and read from reader"
        return f"{text} {first}: {skip}"
    return f"{text} is no number: leave such a column or line out, or give each text a number"


def _of_heads(error: BaseException) -> str:
    """What torch's attention is given, and numbers of heads that fit."""
    names = [*traceback.walk_tb(error.__traceback__)][-1][0].f_locals
    size, heads = names.get("embed_dim"), names.get("num_heads")
    if not isinstance(size, int) or not isinstance(heads, int):
        return ""
    fit = [it for it in range(1, size + 1) if size % it == 0]
    near = [*[it for it in fit if it < heads][-1:], *[it for it in fit if it > heads][:1]]
    is_given = f"num_heads (nhead) is {heads}, and embed_dim (d_model) {size}"
    return f"{is_given}: write {' or '.join(map(str, near))} heads, or a multiple of {heads} for it"


def _of_saved(error: AttributeError) -> str:
    """An argument of __init__ that save_hyperparameters() has put into self.hparams alone.

    Python leaves object and name in the exception since 3.10.
    """
    name, saved = error.name, getattr(error.obj, "__dict__", {}).get("_hparams") or {}
    return (
        f"write self.hparams.{name}, or self.{name} = {name} in __init__" if name in saved else ""
    )


def _indexed(error: BaseException) -> Iterator[tuple[str, Any]]:
    """What the line that failed takes an item of: its name there, and its value."""
    frame, line = [*traceback.walk_tb(error.__traceback__)][-1]
    text = textwrap.dedent(linecache.getline(frame.f_code.co_filename, line)).strip()
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Subscript):
            name = ast.unparse(node.value)
            first, _, attribute = name.partition(".")
            value = frame.f_locals.get(first)
            if attribute:
                value = getattr(value, "__dict__", {}).get(attribute)
            if value is not None:
                yield name, value


def _parsed(text: str) -> ast.AST:
    """One line of a program, also of one that opens a block."""
    for form in (text, f"{text} pass", f"({text}"):
        try:
            return ast.parse(form)
        except (SyntaxError, ValueError):
            continue
    return ast.Module([], [])


def _len(value: Any) -> int:
    is_sized = type(value).__name__ in _SIZED and getattr(value, "ndim", None) != 0
    return len(value) if is_sized else 1
