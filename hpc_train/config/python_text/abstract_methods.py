"""Methods that a class of the user's surely lacks to be made at all: abstract ones of its bases.

Python looks for them as the class statement ends (abc.ABCMeta), so that its body decides.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from hpc_train.config.python_text.class_kind import Located, locate
from hpc_train.config.python_text.modules import bound_in

_PLAIN = ("object", "ABC", "abc.ABC", "Generic", "Protocol")
# Of torch and Lightning; to read their texts takes a while.
_WHOLE = ("LightningModule", "LightningDataModule", "Callback", "Module", "Dataset")
_MOST_STEPS = 12  # as classes may derive from one another in a text that is wrong


class _HiddenError(Exception):
    """The text does not tell of a base."""


def abstract_methods(found: Located, search_path: Sequence[str]) -> list[ast.FunctionDef]:
    """Those that neither the class nor a base gives; none where the text does not tell.

    Args:
        found: The class.
        search_path: As `sys.path`, with the user's folder first.
    """
    try:
        chain = list(_chain(found, search_path, _MOST_STEPS))
    except _HiddenError:
        return []
    if not any(it is not None and _is_checked(it) for it in chain):
        return []
    given: set[str] = set()  # by any of them, as of two bases' common one Python asks last
    lacking: dict[str, ast.FunctionDef] = {}
    is_open = False
    for definition in chain:
        if definition is None:
            is_open = True  # what stands behind it may be given by it
            continue
        abstract = {
            it.name: it
            for it in definition.body
            if isinstance(it, ast.FunctionDef) and _is_abstract(it)
        }
        lacking |= {} if is_open else {n: it for n, it in abstract.items() if n not in lacking}
        given |= bound_in(definition) - abstract.keys()
    return sorted((it for n, it in lacking.items() if n not in given), key=lambda it: it.name)


def lacking(found: Located | None, search_path: Sequence[str]) -> tuple[str, str]:
    """`lacks log and name, without which it cannot be made`, and the fix; two empty texts else."""
    methods = abstract_methods(found, search_path) if found else []
    if not methods:
        return "", ""
    names = [it.name for it in methods]
    told = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"lacks {told}, without which it cannot be made", how_to_define(methods)


def how_to_define(methods: Sequence[ast.FunctionDef]) -> str:
    """`write def log(self, params): ..., and the property name (@property, ...)`."""
    plain = [it for it in methods if not _is_property(it)]
    written = [f"def {it.name}({_arguments(it)}): ..." for it in plain]
    names = [it.name for it in methods if _is_property(it)]
    if names:
        many = "the properties" if len(names) > 1 else "the property"
        written.append(f"{many} {' and '.join(names)} (@property, def {names[0]}(self): ...)")
    return f"write {', and '.join(written)}"


def _chain(found: Located, path: Sequence[str], steps: int) -> Iterator[ast.ClassDef | None]:
    """The class and its bases, as far as Python would look; None for one that lacks nothing."""
    definition = found.definition
    if not isinstance(definition, ast.ClassDef) or not steps or definition.decorator_list:
        raise _HiddenError
    yield definition
    for base in definition.bases:
        text = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        if text.rpartition(".")[2] in _WHOLE:
            yield None
            continue
        below = None if text in _PLAIN else locate(f"{found.module}.{text}", path)
        if below is not None:
            yield from _chain(below, path, steps - 1)
        elif text not in _PLAIN:
            raise _HiddenError


def _is_checked(definition: ast.ClassDef) -> bool:
    """Whether abc.ABCMeta makes it; without, `@abstractmethod` is a word."""
    words = [*definition.bases, *(it.value for it in definition.keywords)]
    return any(ast.unparse(it).rpartition(".")[2] in ("ABC", "ABCMeta") for it in words)


def _is_abstract(method: ast.FunctionDef) -> bool:
    return any("abstract" in ast.unparse(it) for it in method.decorator_list)


def _is_property(method: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(it) for it in method.decorator_list)


def _arguments(method: ast.FunctionDef) -> str:
    """Without types, whose names the user may not have imported."""
    given = copy.deepcopy(method.args)
    for it in ast.walk(given):
        if isinstance(it, ast.arg):
            it.annotation = None
    return ast.unparse(given)
