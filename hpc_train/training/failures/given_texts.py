"""Texts that code got where it works with a number or calls a function: which name has one."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import traceback
from collections.abc import Mapping
from types import FrameType

from hpc_train.config.specs import INIT_ARGS
from hpc_train.training.failures.frame_values import failing_line, value_of

_OF_A_TEXT = re.compile(r"'str'|\bstr\b|invalid combination of arguments")
_NOT_CALLABLE = "'str' object is not callable"
# Where a function of one word is looked for, and what is written for short in front of a word.
_OF_FUNCTIONS = ["torch", "torch.nn.functional", "torch.nn"]
_SHORT = {"nn": "torch.nn", "F": "torch.nn.functional"}
_WHOLE = re.compile(r"[-+]?\d+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def fix_of_text(error: BaseException, texts: Mapping[str, str] | None = None) -> str:
    """What to do about an error that comes of a text; empty where it does not tell of one.

    Args:
        texts: Among the arguments of the config's model and data, by key.
    """
    if not isinstance(error, TypeError):
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames:
        return ""
    if str(error) == _NOT_CALLABLE:
        return _called(frames[-1]) or _called_there(error, texts or {})
    return _for_a_number(frames[-1]) if _OF_A_TEXT.search(str(error)) else ""


def _called(frame: FrameType) -> str:
    held = getattr(frame.f_locals.get("self"), "__dict__", {})
    texts = {it: held[it] for it in frame.f_code.co_names if isinstance(held.get(it), str)}
    if len(texts) != 1:
        return ""
    ((name, text),) = texts.items()
    return f"self.{name} is the text {text!r}, and no function: {_made_of(f'self.{name}', text)}"


def _called_there(error: BaseException, texts: Mapping[str, str]) -> str:
    """Of an argument or another name that the user's line calls, and of the key that it is from."""
    line = failing_line(error)
    if line is None or line[0] is not [*traceback.walk_tb(error.__traceback__)][-1][0]:
        return ""
    frame, nodes = line
    calls = [it for it in nodes if isinstance(it, ast.Call)]
    called = {ast.unparse(it.func): it for it in calls if type(value_of(it.func, frame)) is str}
    if len(called) != 1:
        return ""
    ((name, call),) = called.items()
    text = value_of(call.func, frame)
    keys = [it for it, given in texts.items() if given == text and INIT_ARGS in it.split(".")]
    if len(keys) != 1:
        return f"{name} is the text {text!r}, and no function: {_made_of(name, text)}"
    said = f"{name} is the text {text!r}, from {keys[0]}, and no function"
    module, word = _named_by(text)
    is_made = module and not (call.args or call.keywords)
    if not (is_made and inspect.isclass(getattr(sys.modules[module], word))):
        return f"{said}: {_made_of(name, text)}"
    argument = keys[0].rpartition(".")[2]
    there = f"the line {argument} = getattr({_as_in(frame, module)}, {argument}) in __init__"
    return f"{said}: write {keys[0]}: {word}, and {there} of the class that takes it"


def _as_in(frame: FrameType, module: str) -> str:
    """A module by the name that a file has it under, as nn for torch.nn."""
    names = [it for it, value in frame.f_globals.items() if value is sys.modules[module]]
    return names[0] if names else module


def _made_of(name: str, text: str) -> str:
    """How the name gets what its text names; in general words where that is not known."""
    module, word = _named_by(text)
    if not module:
        return "give the object itself, or make it of the text there"
    if inspect.isclass(getattr(sys.modules[module], word)):
        return f"a config has {{class_path: {module}.{word}}} for it, and code {word}()"
    if module.partition(".")[0] == "torch":
        return f"make one of it, {name} = getattr({module}, {word!r})"
    return f"import {module} in that file, and write {name} = {module}.{word}"


def _named_by(text: str) -> tuple[str, str]:
    """The imported module and the name in it that a text means; two empty ones where none."""
    holder, _, word = text.rpartition(".")
    candidates = [holder] if holder else _OF_FUNCTIONS
    if holder.partition(".")[0] in _SHORT:
        candidates = [holder.replace(short, full, 1) for short, full in _SHORT.items()]
    modules = [it for it in candidates if hasattr(sys.modules.get(it), word)] if word else []
    return (modules[0], word) if modules else ("", "")


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
