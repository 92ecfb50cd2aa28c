"""Values of a config held against what the text of a class says of its arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hpc_train.config.python_text.class_kind import Located, derives_from, locate
from hpc_train.config.python_text.refusal_hints import hint_of
from hpc_train.config.python_text.refused_values import refusal_of
from hpc_train.config.python_values import in_yaml
from hpc_train.config.specs import CLASS_PATH, TARGET
from hpc_train.config.whole_forms import flow
from hpc_train.config.words import did_you_mean, is_number, meant_number, split_words, with_commas
from hpc_train.config.yaml_slips.plain_texts import no_text_hint
from hpc_train.errors import ConfigError

_OPTIONAL = re.compile(r"Optional\[(\w+)\]\Z|(\w+) \| None\Z")
# Annotations that a value of YAML either fits or does not.
_PLAIN_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "write a whole number"),
    "float": ((int, float), "write a number"),
    "bool": ((bool,), "write true or false"),
    "str": ((str,), ""),
}
# Annotations of which at least the form of a value of YAML is known; none within a union.
_FORM = re.compile(
    r"(?:Optional\[)?(?:\w+\.)*(list|tuple|dict|List|Tuple|Dict|Module)"
    r"(?:\[((?:(?!\] \|(?! None\Z)).)*?)\])?\]?(?: \| None)?\Z"
)
_FORMS: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("list", "tuple"), (list, "write a list: [...]")),
    "dict": (Mapping, "write a mapping: {key: value}"),
    "module": (Mapping, "write {class_path: ..., init_args: {...}}"),
}
# Less of them is nothing that a DataLoader or a callback can work with, unless the class itself
# compares them with something: -1 may be all.
_LEAST = {"num_workers": 0, "batch_size": 1, "prefetch_factor": 1, "patience": 0}
_STRUCTURAL = ("Protocol", "ABC")  # what has their methods fits, whatever it derives from


class ArgumentError(ConfigError):
    """An argument that a class does not take.

    Attributes:
        name: The argument.
        no_texts: Where it has to be a text, or a list of them: the elements that are none. None
            where something else is wrong with it.
    """

    def __init__(
        self, message: str, hint: str, name: str, no_texts: Sequence[int] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.name, self.no_texts = name, no_texts


def check_values(
    class_path: str,
    arguments: Mapping[str, Any],
    annotations: Mapping[str, str],
    required: Sequence[str],
    found: Located,
    search_path: Sequence[str],
) -> None:
    """Hold each value against the annotation of its argument, as far as that tells.

    Args:
        annotations: By argument, as they are written.
        required: Arguments that have no default.
        found: The class.
        search_path: As `sys.path`.

    Raises:
        ArgumentError: naming the argument.
    """
    for name, value in arguments.items():
        if value != value:
            raise ArgumentError("is nan", "write a number", name)
        written = annotations.get(name, "")
        annotation = _OPTIONAL.sub(r"\1\2", written)
        if value is not None and (form := _FORM.match(written)):
            _check_form(class_path, name, value, form)
            if form[1] == "Module" and not {CLASS_PATH, TARGET} & {*value}:
                made = f"{{class_path: {_module_for(value, found)}, init_args: {flow(value)}}}"
                message = f"is {flow(value)}, and {class_path} takes {written}"
                raise ArgumentError(message, f"write {name}: {made}", name)
        _check_members(class_path, name, value, written, found, search_path)
        may_be_null = annotation != written or name not in required
        if annotation not in _PLAIN_TYPES or (value is None and may_be_null):
            continue
        types, fix = _PLAIN_TYPES[annotation]
        if not isinstance(value, types) or (isinstance(value, bool) and annotation != "bool"):
            message = f"is {value!r}, and {class_path} takes {annotation}"
            if annotation == "str":
                if isinstance(value, Mapping) and not any(value.values()):
                    fix = f'put it in quotes: "{{{", ".join(map(str, value))}}}"'
                    raise ArgumentError(message, fix, name)
                raise ArgumentError(message, no_text_hint(value), name, ())
            raise ArgumentError(message, fix + meant_number(value, annotation), name)


def check_refused(
    class_path: str, arguments: Mapping[str, Any], found: Located, filled_in: Sequence[str]
) -> None:
    """Refuse what the class itself would, by its text, and numbers that nothing can work with.

    Args:
        filled_in: Arguments whose values hpc-train gives where the config does not.

    Raises:
        ArgumentError: naming the argument.
    """
    if not isinstance(found.definition, ast.ClassDef):
        return
    tests = _tests_of(found.definition)
    for name, least in _LEAST.items():
        value = arguments.get(name)
        if type(value) is int and value < least and not re.search(rf"\b{name}\b", tests):
            raise ArgumentError(f"is {value}", f"write {least} or more", name)
    ahead = arguments.get("prefetch_factor")
    if ahead and arguments.get("num_workers") == 0 and "num_workers" not in tests:
        message = f"is {ahead}, and num_workers is 0: there is no worker that fetches ahead"
        raise ArgumentError(message, "write null, or num_workers: 1 or more", "prefetch_factor")
    may_refuse = _raises(found.definition)
    if may_refuse and (refusal := refusal_of(found.definition, arguments, filled_in)):
        named = [it for it in arguments if re.search(rf"(?<![^\W_]){it}", refusal.test)]
        if not named:
            return
        value, why = arguments[named[-1]], refusal.said or refusal.test
        choices = [it for it in refusal.choices if it is not None]
        near = did_you_mean(value, map(str, choices)) if isinstance(value, str) else ""
        meant = near or f"write {' or '.join(map(in_yaml, choices))}"
        other = hint_of(refusal.test, named, _arguments_of(found.definition))
        other = other or f"correct its init_args: line {refusal.line} of {found.module} decides"
        message = f"is {value!r}, which {class_path} refuses: {why}"
        raise ArgumentError(message, meant if choices else other, named[-1])


def _arguments_of(definition: ast.ClassDef) -> set[str]:
    """What `__init__` takes by name."""
    for method in definition.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return {it.arg for it in (*method.args.args[1:], *method.args.kwonlyargs)}
    return set()


def _check_form(class_path: str, name: str, value: Any, form: re.Match[str]) -> None:
    kind, fix = _FORMS[form[1].lower()]
    each = (form[2] or "...").split(", ")
    is_fixed = form[1].lower() == "tuple" and "..." not in each and "[" not in form[2]
    is_object = isinstance(value, Mapping) and CLASS_PATH in value
    if not is_object and not isinstance(value, kind):
        raise ArgumentError(f"is {value!r}, and {class_path} takes {form[0]}", fix, name)
    message = f"is {value!r}, and {class_path} takes {form[0]}"
    if kind is Mapping and not is_object and each[0] in ("int", "str"):
        other = next((it for it in value if type(it).__name__ != each[0]), None)
        if other is not None:
            quotes = "without quotes" if each[0] == "int" else f'in quotes: "{other}":'
            raise ArgumentError(message, f"write the key {other} {quotes}", name)
    if not isinstance(value, list):
        return
    if is_fixed and len(value) != len(each):
        raise ArgumentError(message, f"write {len(each)} values", name)
    _check_elements(name, value, each if is_fixed else each[:1] * len(value), message)


def _check_elements(
    name: str, value: Sequence[Any], annotations: Sequence[str], message: str
) -> None:
    """Hold each element of a list against its own annotation; `message` tells both of the whole."""
    for item, plain in zip(value, annotations, strict=True):
        types, fix = _PLAIN_TYPES.get(plain, ((object,), ""))
        is_number_of_switch = isinstance(item, bool) and plain in ("int", "float")
        if isinstance(item, types) and not is_number_of_switch:
            continue
        if plain == "str":
            texts = [number for number, it in enumerate(annotations) if it == "str"]
            wrong = [number for number in texts if not isinstance(value[number], str)]
            raise ArgumentError(message, no_text_hint(item), name, wrong)
        words = split_words(item) if isinstance(item, str) else []
        if plain in ("int", "float") and len(words) > 1 and all(map(is_number, words)):
            numbers = with_commas(value)
            raise ArgumentError(message, f"write numbers, with commas: {numbers}", name)
        raise ArgumentError(message, f"{fix} for {item!r}", name)


def _module_for(arguments: Mapping[str, Any], found: Located) -> str:
    """The one module of torch's in the same file that takes these; CLASS where none is sure."""
    definitions = found.names.definitions if found.names else {}
    fitting = [
        name
        for name, it in definitions.items()
        if isinstance(it, ast.ClassDef)
        and name != found.name
        and any(ast.unparse(base).rpartition(".")[2] == "Module" for base in it.bases)
        and _arguments_of(it).issuperset(arguments)
    ]
    return f"{found.module}.{fitting[0]}" if len(fitting) == 1 else "CLASS"


def _check_members(
    class_path: str,
    name: str,
    value: Any,
    written: str,
    found: Located,
    search_path: Sequence[str],
) -> None:
    """Refuse a word that is none of a Literal, and an object that is of no class of a union."""
    members = members_of(written)
    if value is None or not members:
        return
    literals = [it for it in members if outer(it) == "Literal"]
    if len(literals) == len(members) and not isinstance(value, Mapping):
        parts = [it for part in literals for it in _slice(part)]
        choices = [it.value for it in parts if isinstance(it, ast.Constant)]
        if value not in choices:
            words = [str(it) for it in choices]
            near = did_you_mean(value, words) if isinstance(value, str) else ""
            hint = near or f"write {' or '.join(map(in_yaml, choices))}"
            raise ArgumentError(f"is {value!r}, and {class_path} takes {written}", hint, name)
    plain = {ast.unparse(it) for it in members} & set(_PLAIN_TYPES)
    is_known = len(plain) + len(literals) == len(members)
    if literals and is_known and isinstance(value, str) and "str" not in plain:
        choices = [
            it.value for part in literals for it in _slice(part) if isinstance(it, ast.Constant)
        ]
        if value not in choices:
            words = [*map(in_yaml, choices), *(["true", "false"] if "bool" in plain else [])]
            message = f"is {value!r}, and {class_path} takes {written}"
            raise ArgumentError(message, f"write {' or '.join(words)}", name)
    if isinstance(value, Mapping) and isinstance(dotted := value.get(CLASS_PATH), str):
        answers = [_is_of(dotted, it, found, search_path) for it in members]
        if all(answer is False for answer in answers):
            message = f"is a {dotted}, and {class_path} takes {written}"
            raise ArgumentError(message, f"name a class that is a {ast.unparse(members[0])}", name)


def _is_of(
    dotted: str, member: ast.expr, found: Located, search_path: Sequence[str]
) -> bool | None:
    """Whether a class derives from what an annotation names; None where that is not known."""
    name = ast.unparse(member).strip("'\"")
    if name in _PLAIN_TYPES or outer(member) == "Literal":
        return False
    wanted = locate(f"{found.module}.{name}", search_path)
    given = locate(dotted, search_path)
    if wanted is None or given is None or not isinstance(wanted.definition, ast.ClassDef):
        return None
    if any(outer(base) in _STRUCTURAL for base in wanted.definition.bases):
        return None
    return derives_from(given, wanted.name, search_path)


@lru_cache(maxsize=256)  # a sweep asks for each of its points
def members_of(written: str) -> tuple[ast.expr, ...]:
    """What an annotation allows but for None; nothing where it cannot be read."""
    try:
        members = _members(ast.parse(written.strip("'\""), mode="eval").body)
    except SyntaxError:
        return ()
    return tuple(it for it in members if ast.unparse(it) != "None")


def _members(node: ast.expr) -> list[ast.expr]:
    """The parts of `X | Y`, `Union[X, Y]` and `Optional[X]`."""
    if isinstance(node, ast.BinOp):
        return [*_members(node.left), *_members(node.right)]
    if outer(node) in ("Optional", "Union"):
        return [part for inner in _slice(node) for part in _members(inner)]
    return [node]


def outer(node: ast.expr) -> str:
    """`Literal` of `typing.Literal[...]`."""
    return ast.unparse(node).partition("[")[0].rpartition(".")[2]


def _slice(node: ast.expr) -> list[ast.expr]:
    inner = node.slice if isinstance(node, ast.Subscript) else node
    return inner.elts if isinstance(inner, ast.Tuple) else [inner]


@lru_cache(maxsize=64)
def _raises(definition: ast.ClassDef) -> bool:
    return any(isinstance(node, ast.Raise) for node in ast.walk(definition))


@lru_cache(maxsize=64)
def _tests_of(definition: ast.ClassDef) -> str:
    return " ".join(ast.unparse(it) for it in _tests(definition))


def _tests(definition: ast.ClassDef) -> Iterator[ast.expr]:
    """What a class makes depend on a value: comparisons with a constant, and whether it is any."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Compare) and any(map(_is_constant, ast.walk(node))):
            yield node
        parts = [node.test] if isinstance(node, (ast.If, ast.IfExp)) else []
        parts = node.values if isinstance(node, ast.BoolOp) else parts
        yield from (it for it in parts if not isinstance(it, ast.Compare))


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)
