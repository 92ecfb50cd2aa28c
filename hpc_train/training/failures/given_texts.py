"""Texts that code got where it works with a number or calls a function: which name has one."""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import traceback
from types import FrameType

_OF_A_TEXT = re.compile(r"'str'|\bstr\b|invalid combination of arguments")
_NOT_CALLABLE = "'str' object is not callable"
# Where a function of one word is looked for, and what is written for short in front of a word.
_OF_FUNCTIONS = ["torch", "torch.nn.functional", "torch.nn"]
_SHORT = {"nn": "torch.nn", "F": "torch.nn.functional"}
_WHOLE = re.compile(r"[-+]?\d+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def fix_of_text(error: BaseException) -> str:
    """What to do about an error that comes of a text; empty where it does not tell of one."""
    if not isinstance(error, TypeError):
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames:
        return ""
    if str(error) == _NOT_CALLABLE:
        return _called(frames[-1])
    return _for_a_number(frames[-1]) if _OF_A_TEXT.search(str(error)) else ""


def _called(frame: FrameType) -> str:
    held = getattr(frame.f_locals.get("self"), "__dict__", {})
    texts = {it: held[it] for it in frame.f_code.co_names if isinstance(held.get(it), str)}
    if len(texts) != 1:
        return ""
    ((name, text),) = texts.items()
    return f"self.{name} is the text {text!r}, and no function: {_made_of(name, text)}"


def _made_of(name: str, text: str) -> str:
    """How the attribute gets what its text names; in general words where that is not known."""
    holder, _, word = text.rpartition(".")
    candidates = [holder] if holder else _OF_FUNCTIONS
    if holder.partition(".")[0] in _SHORT:
        candidates = [holder.replace(short, full, 1) for short, full in _SHORT.items()]
    modules = [it for it in candidates if hasattr(sys.modules.get(it), word)] if word else []
    if not modules:
        return "give the object itself, or make it of the text there"
    named = getattr(sys.modules[modules[0]], word)
    if inspect.isclass(named):
        dotted = f"{modules[0]}.{word}"
        return f"a config has {{class_path: {dotted}}} for it, and code {word}()"
    if modules[0].partition(".")[0] == "torch":
        return f"make one of it, self.{name} = getattr({modules[0]}, {word!r})"
    return f"import {modules[0]} in that file, and write self.{name} = {modules[0]}.{word}"


def _for_a_number(frame: FrameType) -> str:
    """Of an argument, or another local name, of the function that failed."""
    texts = {
        name: value
        for name, value in frame.f_locals.items()
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip())
    }
    if len(texts) != 1:
        return ""
    ((name, text),) = texts.items()
    return as_number(name, text)


def as_number(name: str, text: str, *, whole: bool = False) -> str:
    """How the text that `name` has becomes a number, or a whole one, where it comes from."""
    kind = "int" if whole or _WHOLE.fullmatch(text.strip()) else "float"
    if option := _option_of(text):
        return f'{name} is the text {text!r}: write add_argument("{option}", type={kind})'
    return f"{name} is the text {text!r}: write {kind}({name}), or a number where it comes from"


def _option_of(text: str) -> str:
    """The option of this process that was given this text; empty where none or several were."""
    words = sys.argv[1:]
    pairs = list(itertools.pairwise(words))
    pairs += [(word.partition("=")[0], word.partition("=")[2]) for word in words]
    options = [word for word, value in pairs if word.startswith("-") and value == text]
    return options[0] if len(options) == 1 and "=" not in options[0] else ""
