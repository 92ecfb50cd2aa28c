"""Texts for arguments without an annotation whose default is a number: what a class expects."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hpc_train.config.python_text.argument_values import ArgumentError
from hpc_train.config.python_text.class_kind import Located
from hpc_train.config.python_text.modules import Names
from hpc_train.config.words import meant_number, shown, with_commas

_NUMBER = r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_NUMBERS = re.compile(rf"[\[(]?\s*{_NUMBER}(?:[\s,;:|]+{_NUMBER})*[\s,%]*[\])]?", re.IGNORECASE)
_SWITCH = re.compile("true|false|yes|no|on|off", re.IGNORECASE)


_NUMERIC = (int, float)
_OF_ARRAYS = re.compile(r"(?:torch|np|numpy|nn)(?:\.\w+)+")
UNKNOWN = object()  # a default that only Python could work out


@dataclass(frozen=True)
class Expression:
    """A default such as `torch.float32`."""

    text: str

    def __repr__(self) -> str:
        return self.text


class Function(Expression):
    """A default such as `lambda x: x`."""

    def __repr__(self) -> str:
        return "a function"


@dataclass(frozen=True)
class _Default:
    value: Any
    is_annotated: bool

    @property
    def has_plain_number(self) -> bool:
        """Whether nothing but the default tells the type, and that is a number or a switch."""
        return isinstance(self.value, (float, int)) and not self.is_annotated

    @property
    def is_list_of_numbers(self) -> bool:
        """Whether nothing but the default tells the type, and that is a list of numbers."""
        many = self.value if isinstance(self.value, (list, tuple)) else ()
        return bool(many) and not self.is_annotated and all(type(it) in _NUMERIC for it in many)


def check_texts_for_numbers(class_path: str, arguments: Mapping[str, Any], found: Located) -> None:
    """Refuse a list of numbers, or a number in quotes, where the default is a number.

    Raises:
        ArgumentError: naming the argument.
    """
    defaults = _defaults(found.name, found.names) if found.names else {}
    for name, value in arguments.items():
        default_here = defaults.get(name)
        if isinstance(value, list) and default_here and default_here.is_list_of_numbers:
            _check_commas(class_path, name, value, default_here.value)
    for name, value, default in _texts(arguments, found):
        is_switch = isinstance(default, bool)
        if not (_SWITCH if is_switch else _NUMBERS).fullmatch(value.strip()):
            continue
        message = f"is the text {value!r}, and {class_path} has {default} there by default"
        if is_switch:
            raise ArgumentError(message, f"write {value.lower()} without quotes", name)
        # A default of 0 takes 0.5 as well: only an annotation tells that a number has to be whole.
        raise ArgumentError(message, f"write a number{meant_number(value, 'float')}", name)


def _check_commas(class_path: str, name: str, value: list[Any], default: Any) -> None:
    """Refuse `[1 2]`, which is a list of one text."""
    if any(isinstance(it, str) and _NUMBERS.fullmatch(it.strip()) for it in value):
        message = f"is {value!r}, and {class_path} has {default} there by default"
        raise ArgumentError(message, f"write numbers, with commas: {with_commas(value)}", name)


def texts_for_numbers(
    class_path: str, arguments: Mapping[str, Any], found: Located
) -> dict[str, str]:
    """By argument what is to be said of each text or list there: it may be meant."""
    texts = {
        name: f"is the text {value!r}, and {class_path} has {default} there by default"
        for name, value, default in _texts(arguments, found)
    }
    others = {
        name: f"is {shown(value)}, and {class_path} has {default.value} there by default{more}"
        for name, default in (_defaults(found.name, found.names) if found.names else {}).items()
        if (more := _unlike(value := arguments.get(name), default)) is not None
    }
    return {**texts, **others}


def _unlike(value: Any, default: _Default) -> str | None:
    """What is to be said more of a value that is of another kind than its default; else None.

    Null says nothing: code that has a number there by default often takes None for `no limit`.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if default.is_list_of_numbers:
        return "; a list has brackets: [...]" if is_number else None
    if not default.has_plain_number or value is None or isinstance(value, str):
        return None
    if isinstance(value, list):
        return "; to try one after another: --sweep KEY=VALUES"
    if isinstance(default.value, bool):
        return "" if not isinstance(value, bool) and value not in (0, 1) else None
    if isinstance(value, (bool, Mapping)):
        return ""
    # 0 and 1 are also what people write for 0.0 and 1.0
    is_whole = type(default.value) is int and default.value not in (0, 1)
    return "" if is_whole and isinstance(value, float) else None


def _texts(
    arguments: Mapping[str, Any], found: Located
) -> Iterator[tuple[str, str, float | int | bool]]:
    """Each argument that is a text, and the number or the switch that the class has there."""
    defaults = _defaults(found.name, found.names) if found.names else {}
    for name, value in arguments.items():
        default = defaults.get(name)
        if isinstance(value, str) and default is not None and default.has_plain_number:
            yield name, value, default.value


def defaults_of(found: Located) -> dict[str, Any]:
    """By argument what the class has there; an argument whose default is not known is left out."""
    defaults = _defaults(found.name, found.names) if found.names else {}
    return {name: it.value for name, it in defaults.items() if it.value is not UNKNOWN}


def _defaults(name: str, names: Names, steps: int = 12) -> dict[str, _Default]:
    """Of the arguments of `__init__`, or of one that a base in the file has."""
    definition = names.definitions.get(name)
    start = definition if isinstance(definition, ast.FunctionDef) else None
    if isinstance(definition, ast.ClassDef) and not definition.decorator_list:
        methods = (it for it in definition.body if isinstance(it, ast.FunctionDef))
        start = next((it for it in methods if it.name == "__init__"), None)
        bases = [it.id for it in definition.bases if isinstance(it, ast.Name)]
        if start is None or start.args.kwarg is not None:
            above = [_defaults(it, names, steps - 1) for it in bases if steps and it != name]
            inherited = {key: value for many in reversed(above) for key, value in many.items()}
            return inherited | (_of(start) if start else {})
    return _of(start) if start else {}


def _of(start: ast.FunctionDef) -> dict[str, _Default]:
    if start.decorator_list:
        return {}
    places = [*start.args.posonlyargs, *start.args.args]
    last = places[len(places) - len(start.args.defaults) :]
    pairs = [*zip(last, start.args.defaults, strict=True)]
    pairs += [
        (it, default)
        for it, default in zip(start.args.kwonlyargs, start.args.kw_defaults, strict=True)
        if default is not None
    ]
    return {it.arg: _Default(_value(default), _is_told(it.annotation)) for it, default in pairs}


def _is_told(annotation: ast.expr | None) -> bool:
    """Whether an annotation says what the value is; a bare `tuple` leaves what is in it open."""
    return annotation is not None and ast.unparse(annotation) not in ("list", "tuple")


def _value(default: ast.expr) -> Any:
    """What a default is, `-1` and `1e-3` included."""
    try:
        return ast.literal_eval(default)
    except ValueError:
        text = ast.unparse(default)
        if isinstance(default, ast.Lambda):
            return Function(text)
        return Expression(text) if _OF_ARRAYS.fullmatch(text) else UNKNOWN
