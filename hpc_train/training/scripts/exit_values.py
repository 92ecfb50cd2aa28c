"""A script that has left with its result: `sys.exit(main())` of a main() that returns its loss."""

from __future__ import annotations

from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.scripts.result_exits import instead_of_exit


def fix_of_exit(error: BaseException, where: str) -> str:
    """What to write in its place; empty where it left with an exit code, or with nothing.

    A text is mostly what went wrong: of it only the call that gave it is named.

    Args:
        where: `file:line` of the call, or nothing.
    """
    value: object = error.code if isinstance(error, SystemExit) else None
    if value is None or isinstance(value, int):
        return ""
    file, _, line = where.rpartition(":")
    tree = script_tree(Path(file)) if file else None
    write = instead_of_exit(tree, int(line)) if tree is not None else ""
    if isinstance(value, str):
        return f"if that is no error, {write}: an exit with a text is one" if write else ""
    kind = type(value).__name__
    article = "an" if kind[0] in "aeiou" else "a"
    write = write or f"leave the {kind} out of it"
    return f"sys.exit of {article} {kind}, which is no exit code, counts as 1: {write}"
