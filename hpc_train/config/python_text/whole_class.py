"""A class of the user's with what it has of its own bases, as one definition, by their text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.python_text.class_kind import Located, locate

_MOST_BASES = 6


def with_its_bases(
    found: Located, path: Sequence[str], steps: int = _MOST_BASES
) -> ast.ClassDef | None:
    """One whose one base is Lightning's LightningModule, and whose body has all methods.

    A method that calls `super()` stands beside the one of the base that it calls.

    Args:
        found: The class.
        path: As `sys.path`.

    Returns:
        None where a base is not known, as of several, or of an installed package.
    """
    definition = found.definition
    if not isinstance(definition, ast.ClassDef) or len(definition.bases) != 1:
        return None
    base = ast.unparse(definition.bases[0])
    if base.rpartition(".")[2] == "LightningModule":
        return definition
    above = locate(f"{found.module}.{base}", path) if steps else None
    whole = with_its_bases(above, path, steps - 1) if above is not None else None
    if whole is None:
        return None
    own = {it.name: it for it in definition.body if isinstance(it, ast.FunctionDef)}
    kept = [
        it
        for it in whole.body
        if not isinstance(it, ast.FunctionDef)
        or it.name not in own
        or "super()" in ast.unparse(own[it.name])
    ]
    made = ast.ClassDef(
        name=definition.name,
        bases=whole.bases,
        keywords=[],
        body=[*definition.body, *kept],
        decorator_list=[],
    )
    return ast.copy_location(made, definition)
