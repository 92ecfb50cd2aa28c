"""Data sets of the user's whose `__getitem__` has another name: the first batch ends there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from hpc_train.config.fit.near_hooks import is_spoken_of
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.modules import bound_in
from hpc_train.config.words import near_words

GETS = "__getitem__"
_ROOTS = ("torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset")
_OTHER_WAYS = {GETS, "__getitems__", "__getattr__", "__getattribute__", "__init_subclass__"}
_NEAR = 0.85


def meant_as_getitem(names: Iterable[str]) -> str:
    """`get_item`, `__get_item__`: the one method that is meant; empty where none or several are."""
    letters = {name: name.replace("_", "").lower() for name in names if name not in _OTHER_WAYS}
    found = [name for name, it in letters.items() if near_words("getitem", [it], cutoff=_NEAR)]
    return found[0] if len(found) == 1 else ""


def misnamed_getitem(data: Located, path: Sequence[str]) -> tuple[str, str]:
    """What is wrong with a data set that the data's class makes, and the fix; empty without one.

    Args:
        data: The user's data class.
        path: As `sys.path`, with the user's folder first.
    """
    if data.definition is None:
        return "", ""
    calls = [it.func for it in ast.walk(data.definition) if isinstance(it, ast.Call)]
    names = {it.id for it in calls if isinstance(it, ast.Name)}
    for name in sorted(names):
        found = locate(f"{data.module}.{name}", path)
        method = _misnamed(found) if found else None
        if found is None or method is None or is_spoken_of(method.name, path[0]):
            continue
        made = f"{found.module}.{found.name}"
        article = "an" if method.name[0] in "aeiou" else "a"
        said = f"makes {made}, which has no {GETS}, and {article} {method.name}"
        place = place_of(found, method.lineno, path)
        return f"{said} ({place}) that nothing calls", f"rename {method.name} to {GETS}"
    return "", ""


def _misnamed(found: Located) -> ast.FunctionDef | None:
    """The method that is meant, where the class surely has none that gives samples."""
    definition = found.definition
    if not isinstance(definition, ast.ClassDef) or found.names is None:
        return None
    if definition.decorator_list or definition.keywords or len(definition.bases) != 1:
        return None
    base = definition.bases[0]
    first, _, rest = ast.unparse(base.value if isinstance(base, ast.Subscript) else base).partition(
        "."
    )
    written = f"{found.names.imports.get(first, '')}.{rest}".strip(".")
    if written not in _ROOTS or _OTHER_WAYS & bound_in(definition) or found.names.is_opaque:
        return None
    methods = {it.name: it for it in definition.body if isinstance(it, ast.FunctionDef)}
    meant = methods.get(meant_as_getitem(methods))
    return meant if meant and not meant.decorator_list else None
