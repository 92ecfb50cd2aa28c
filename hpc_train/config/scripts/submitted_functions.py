"""`executor.submit(main, lr=0.01)` of submitit, where main is of a file of the user's own."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree, words_in

# Words of what trains, of which one is enough to leave a script alone.
_TRAINS = frozenset({"backward", "fit", "Trainer", "Fabric", "Accelerator", "optim"})


@dataclass(frozen=True, kw_only=True)
class SubmittedFunction:
    """What such a call names.

    Attributes:
        file: In which it stands, from the folder of the script.
        name: Its own.
        call: As the job calls it; empty where that is not one call.
        is_started: Whether that file starts something where it is run as a script.
    """

    file: str
    name: str
    call: str
    is_started: bool

    def how_to_start(self) -> str:
        """What has to stand in its file first; empty where something does."""
        if self.is_started:
            return ""
        call = self.call or f"{self.name}(...)"
        return f'write at the end of {self.file}: if __name__ == "__main__": {call}'


def submitted_function(
    submit: ast.Call, names: Mapping[str, str], folder: Path
) -> SubmittedFunction | None:
    """None where it is no function of a file that lies there.

    Args:
        submit: The call of an executor's `submit` or `map_array`.
        names: What each name of the script is imported from.
        folder: That of the script.
    """
    given = submit.args[0] if submit.args else None
    if not isinstance(given, ast.Name | ast.Attribute):
        return None
    first, dot, rest = ast.unparse(given).partition(".")
    module, _, name = f"{names.get(first, '')}{dot}{rest}".rpartition(".")
    file = f"{module.replace('.', '/')}.py"
    tree = script_tree(folder / file) if module else None
    if tree is None or not any(
        isinstance(it, ast.FunctionDef) and it.name == name for it in tree.body
    ):
        return None
    words = [*map(ast.unparse, submit.args[1:]), *map(_keyword, submit.keywords)]
    is_one = isinstance(submit.func, ast.Attribute) and submit.func.attr == "submit"
    return SubmittedFunction(
        file=file,
        name=name,
        call=f"{name}({', '.join(words)})" if is_one else "",
        is_started="__name__ == '__main__'" in ast.unparse(tree),
    )


def trains_nothing(tree: ast.Module) -> bool:
    """Whether a script that submits has no word of a training of its own."""
    return _TRAINS.isdisjoint(words_in(tree))


def _keyword(word: ast.keyword) -> str:
    value = ast.unparse(word.value)
    return f"{word.arg}={value}" if word.arg else f"**{value}"


def parameters_of(tree: ast.Module) -> dict[str, str]:
    """What the script's `update_parameters` calls give as plain values, by their names."""
    calls = [it for it in ast.walk(tree) if isinstance(it, ast.Call)]
    return {
        str(word.arg): str(word.value.value)
        for it in calls
        if isinstance(it.func, ast.Attribute) and it.func.attr == "update_parameters"
        for word in it.keywords
        if isinstance(word.value, ast.Constant)
    }
