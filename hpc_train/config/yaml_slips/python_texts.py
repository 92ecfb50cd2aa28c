"""Values in Python's words, which YAML reads as texts: `None`, `(3, 3)`, `dict(a=1)`, `1/255`."""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_train.config.python_text.argument_values import ArgumentError, members_of, outer
from hpc_train.config.python_text.class_kind import Located
from hpc_train.config.python_text.default_types import UNKNOWN, Expression, Function, defaults_of
from hpc_train.config.python_text.modules import full_name
from hpc_train.config.words import is_null_word
from hpc_train.config.yaml_slips.tensor_texts import list_of_tensor

_MAKERS = {"dict": dict, "list": list, "tuple": list, "set": list}
_INFINITE = re.compile(
    r"(-?)(?:(?:np|numpy|math|torch)\.inf|float\(['\"]inf(?:inity)?['\"]\)|inf)\Z"
)
_POWER = re.compile(r"[\d.eE ^*/()+-]+\Z")
_DOTTED = re.compile(r"(?:torch|np|numpy|nn|F|math|jnp)(?:\.\w+)+(?:\(.*\))?\Z")
_ARITHMETIC = {
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_MANY = ("list", "tuple", "dict", "List", "Tuple", "Dict", "Sequence", "Iterable", "Mapping")
_NO_PYTHON = "no Python is worked out here"
_SHORT = {"nn": "torch.nn", "F": "torch.nn.functional", "np": "numpy"}
_MOST = 1e18  # 10**10**10 is not worked out


@dataclass(frozen=True)
class _Slip:
    """An argument whose value is a text: what is wrong, what to write, and whether it is sure."""

    name: str
    message: str
    hint: str
    is_sure: bool


@dataclass(frozen=True)
class _Expected:
    """What the class has where a value goes: its default and its annotation, and both in words."""

    default: object
    annotation: str
    takes: str

    @property
    def takes_none(self) -> bool:
        named = re.search(r"\bNone\b|\bOptional\b", self.annotation)
        return self.default is None or named is not None

    @property
    def takes_text(self) -> bool:
        return self._has("str", "Literal", "Any", "object", "Path", "PathLike")

    @property
    def takes_many(self) -> bool:
        if self.annotation:
            return self._has(*_MANY)
        return isinstance(self.default, (list, tuple, dict))

    @property
    def takes_number(self) -> bool:
        if self.annotation:
            return self._has("int", "float")
        return isinstance(self.default, (int, float)) and not isinstance(self.default, bool)

    def _has(self, *names: str) -> bool:
        return any(outer(it) in names for it in members_of(self.annotation))


def check_python_texts(
    class_path: str, arguments: Mapping[str, Any], annotations: Mapping[str, str], found: Located
) -> None:
    """Refuse a value in Python's words where the class has no text in its place.

    Args:
        annotations: By argument, as they are written.

    Raises:
        ArgumentError: naming the argument.
    """
    for slip in _slips(class_path, arguments, annotations, found):
        if slip.is_sure:
            raise ArgumentError(slip.message, slip.hint, slip.name)


def notes_on_python_texts(
    class_path: str, arguments: Mapping[str, Any], annotations: Mapping[str, str], found: Located
) -> dict[str, str]:
    """By argument what is to be said of such a value where it may be meant as a text."""
    return {
        slip.name: f"{slip.message}: {slip.hint}"
        for slip in _slips(class_path, arguments, annotations, found)
        if not slip.is_sure
    }


def _slips(
    class_path: str, arguments: Mapping[str, Any], annotations: Mapping[str, str], found: Located
) -> Iterator[_Slip]:
    defaults = defaults_of(found)
    for name, value in arguments.items():
        default, written = defaults.get(name, UNKNOWN), annotations.get(name, "")
        if isinstance(default, str):
            continue
        by_default = "" if default is UNKNOWN else f"{class_path} has {default!r} there by default"
        plain = written.replace("'", "").replace('"', "") if "Literal" not in written else written
        takes = f"{class_path} takes {plain}" if written else by_default
        place = _Expected(default, written, f", and {takes}" if takes else "")
        may_have_null = not written or "None" in written
        if isinstance(value, list) and may_have_null and _has_none_among_numbers(value):
            message = f"is {value!r}, with the text 'None' (YAML's None is null)"
            yield _Slip(name, message, "write null for None", True)
        elif isinstance(value, str) and is_null_word(value):
            if (written and not place.takes_text) or not _has_text(found, value):
                yield from _null(name, value, place)
        elif isinstance(value, str) and isinstance(default, Function):
            if not place.annotation and not _reads_texts(found, name, value):
                hint = _by_word(name, value, default, found)
                yield _Slip(name, f"is the text {value!r}{place.takes}", hint, False)
        elif isinstance(value, str) and not place.takes_text:
            yield from _expression(name, value, place, found)


def _has_none_among_numbers(value: Sequence[Any]) -> bool:
    others = [it for it in value if it != "None"]
    return 0 < len(others) < len(value) and all(isinstance(it, (int, float)) for it in others)


def _has_text(found: Located, text: str) -> bool:
    """Whether the class, a base of it in its file or a function there has this very text.

    It may compare with it, or hand it on.
    """
    definitions = found.names.definitions if found.names else {}
    own = [found.name]
    for name in own:
        bases = getattr(definitions.get(name), "bases", ())
        own += [it.id for it in bases if isinstance(it, ast.Name) and it.id not in own]
    looked_at = [
        it
        for name, it in definitions.items()
        if name in own or isinstance(it, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    statements = (statement for it in looked_at for statement in _statements(it))
    nodes = (node for it in statements for node in ast.walk(it))
    return any(isinstance(it, ast.Constant) and it.value == text for it in nodes)


def _reads_texts(found: Located, name: str, text: str) -> bool:
    """Whether the class may make a function of a text by itself."""
    if found.definition is None or _has_text(found, text):
        return True
    for node in ast.walk(found.definition):
        looked_at = [node.slice] if isinstance(node, ast.Subscript) else []
        if isinstance(node, ast.Call):
            looked_at = [*node.args, *(it.value for it in node.keywords)]
            if isinstance(node.func, ast.Name) and node.func.id == "getattr":
                return True
        if any(ast.unparse(it) in (name, f"self.{name}") for it in looked_at):
            return True
    return False


def _statements(definition: ast.ClassDef | ast.FunctionDef) -> Iterator[ast.stmt]:
    """What is done, without the defaults of arguments."""
    for statement in definition.body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            yield from _statements(statement)
        else:
            yield statement


def _null(name: str, value: str, place: _Expected) -> Iterator[_Slip]:
    """Of `None`, or another language's word for it, where the class has None or no text."""
    is_pythons = value in ("None", "null", "NULL")
    takes_no_text = not place.takes_text and (place.annotation or place.default is not None)
    is_known = place.default is not UNKNOWN or place.takes_none  # else null is refused as well
    if not is_known and place.annotation and not place.takes_text:
        return
    is_sure = is_known and bool(takes_no_text or (place.takes_none and is_pythons))
    if is_sure or is_pythons or place.takes_none:
        message = f"is the text {value!r} (YAML's None is null){place.takes}"
        hint = "write null" if is_sure else "write null, unless the word is meant"
        if place.takes_number and not place.takes_none:
            hint = "write a number, or null where the class takes None"
        yield _Slip(name, message, hint, is_sure)


def _expression(name: str, value: str, place: _Expected, found: Located) -> Iterator[_Slip]:
    """Of what Python would work out, where the class has a number, a list or a mapping."""
    meant, message = _worth(value.strip()), f"is the text {value!r}{place.takes}"
    if (numbers := list_of_tensor(value)) is not None:
        if not _works_out(found):
            write = f"write {_as_yaml(numbers)}, and torch.tensor(...) of it in the class"
            yield _Slip(name, message, f"{_NO_PYTHON}: {write}", False)
        return
    if isinstance(meant, (list, dict)):
        may_be_meant = place.default is None and not place.annotation
        if place.takes_many or may_be_meant:
            but = "" if place.takes_many else ", unless a text is meant"
            hint = f"write {_as_yaml(meant)}{but}"
            yield _Slip(name, message, hint, place.takes_many)
    elif meant is not UNKNOWN and place.takes_number:
        yield _Slip(name, message, f"write a number: {_as_yaml(meant)}", True)
    elif isinstance(place.default, Expression) and _DOTTED.match(value):
        yield _Slip(name, message, _by_word(name, value, place.default, found), False)


def _works_out(found: Located) -> bool:
    """Whether the class may make of a text what Python would."""
    text = ast.unparse(found.definition) if found.definition else ""
    return re.search(r"\b(?:eval|exec|safe_eval|literal_eval)\(", text) is not None


def _by_word(name: str, value: str, default: Expression, found: Located) -> str:
    """How a word names what is meant: of the module that the class's file has it or the default in.

    By that file's own name of it, `nn` or `torch.nn`, so that the line works there.
    """
    holder, _, word = value.removesuffix("()").rpartition(".")
    if not re.fullmatch(r"[\w.]+", holder) or not word.isidentifier():
        return f"{_NO_PYTHON}: have a word there, and make the object of it in the class"
    imports = found.names.imports if found.names else {}
    module = _SHORT.get(holder) or full_name(holder, imports)
    of_default, _, word_of_default = default.text.rpartition(".")
    is_alike = not isinstance(default, Function) and full_name(of_default, imports) == module
    holder = of_default if is_alike else holder
    first = "" if holder.partition(".")[0] in imports else f"import {module.partition('.')[0]}, "
    line = f"{name} = getattr({module if first else holder}, {name})"
    write = f"{_NO_PYTHON}: {first}write {name}: {word}, and the line {line} in __init__"
    return f'{write}, with {name}="{word_of_default}" by default' if is_alike else write


def _worth(text: str) -> Any:
    """The list, mapping or number that Python would make of a text; UNKNOWN of any other."""
    if infinite := _INFINITE.match(text):
        return float(f"{infinite[1]}inf")
    if _POWER.match(text):  # a calculator's 10^-3, which is another operation of Python's
        text = text.replace("^", "**")
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNKNOWN
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS:
        return _made(node, _MAKERS[node.func.id])
    if isinstance(node, ast.BinOp):
        return _number(node)
    return _literal(node) if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)) else UNKNOWN


def _made(call: ast.Call, kind: type) -> Any:
    if kind is dict and not call.args:
        values = {it.arg: _literal(it.value) for it in call.keywords}
        return UNKNOWN if UNKNOWN in values.values() or None in values else values
    if kind is list and len(call.args) == 1 and not call.keywords:
        value = _literal(call.args[0])
        return value if isinstance(value, list) else UNKNOWN
    return [] if kind is list and not call.args and not call.keywords else UNKNOWN


def _literal(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
        return sorted(value) if isinstance(value, set) else json.loads(json.dumps(value))
    except (ValueError, TypeError, RecursionError):
        return UNKNOWN


def _number(node: ast.expr) -> Any:
    """Of products, quotients and powers alone: 10-20 may be a range."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return value if value is UNKNOWN else -value
    if not isinstance(node, ast.BinOp) or type(node.op) not in _ARITHMETIC:
        return UNKNOWN
    left, right = _number(node.left), _number(node.right)
    if UNKNOWN in (left, right) or (isinstance(node.op, ast.Pow) and abs(right) > 64):
        return UNKNOWN
    try:
        worth = _ARITHMETIC[type(node.op)](left, right)
    except (ArithmeticError, ValueError):
        return UNKNOWN
    return worth if isinstance(worth, (int, float)) and abs(worth) < _MOST else UNKNOWN


def _as_yaml(value: Any) -> str:
    if isinstance(value, float):
        infinite = ".inf" if value > 0 else "-.inf"
        return infinite if math.isinf(value) else f"{value:.12g}"
    return json.dumps(value) if not isinstance(value, dict) else _mapping(value)


def _mapping(value: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {_as_yaml(it)}" for name, it in value.items()) + "}"
