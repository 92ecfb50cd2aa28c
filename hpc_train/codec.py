"""Frozen dataclasses to JSON and back, checked on the way in because another machine wrote it."""

from __future__ import annotations

import dataclasses
import json
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
D = TypeVar("D", bound="Document")


class Document:
    """A frozen dataclass that is written as JSON and read back."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON's own types."""
        document: dict[str, Any] = encode(self)
        return document

    @classmethod
    def from_json(cls: type[D], data: Any) -> D:
        """Return what `to_json` wrote; raises ValueError, which names the field, for the rest."""
        return decode(cls, data)

    @classmethod
    def read(cls: type[D], path: Path) -> D:
        """Return the document in a file; raises OSError or ValueError where there is none."""
        return decode(cls, json.loads(path.read_text(encoding="utf-8")))


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty where there is none that can be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def encode(value: Any) -> Any:
    """Return `value` as JSON's own types; dataclasses become objects, tuples become lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def decode(kind: type[T], data: Any) -> T:
    """Return an instance of the dataclass `kind` made from JSON data.

    Unknown keys are left out, so that an older reader takes a newer writer's document.

    Raises:
        ValueError: A value has another type than its field, or a field without default is absent.
    """
    made: T = _dataclass(kind, data, kind.__name__)
    return made


def _dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object, got {type(data).__name__}")
    hints = _hints(kind)
    known: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            known[field.name] = _value(hints[field.name], data[field.name], f"{where}.{field.name}")
    try:
        return kind(**known)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None


_HINTS: dict[Any, dict[str, Any]] = {}


def _hints(kind: Any) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def _value(hint: Any, data: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if data is None and type(None) in get_args(hint):
            return None
        (inner,) = [arg for arg in get_args(hint) if arg is not type(None)]
        return _value(inner, data, where)
    if origin is Literal:
        if data not in get_args(hint):
            raise ValueError(f"{where}: {data!r} is none of {get_args(hint)}")
        return data
    if origin in (list, tuple):
        _expect(data, list, where)
        inner, *others = get_args(hint)
        kinds = [inner, *others] if others and others != [...] else [inner] * len(data)
        if len(kinds) != len(data):
            raise ValueError(f"{where}: expected {len(kinds)} values, got {len(data)}")
        parts = enumerate(zip(kinds, data, strict=True))
        return origin(_value(part, item, f"{where}[{i}]") for i, (part, item) in parts)
    if origin is dict:
        _expect(data, dict, where)
        inner = get_args(hint)[1]
        return {key: _value(inner, item, f"{where}.{key}") for key, item in data.items()}
    return _scalar(hint, data, where)


def _scalar(hint: Any, data: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint, data, where)
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if hint is int and isinstance(data, bool):
        raise ValueError(f"{where}: expected int, got bool")
    if hint is not Any and isinstance(hint, type):
        _expect(data, hint, where)
    return data


def _expect(data: Any, kind: type, where: str) -> None:
    if not isinstance(data, kind):
        raise ValueError(f"{where}: expected {kind.__name__}, got {type(data).__name__}")
