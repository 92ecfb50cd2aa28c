"""A checkpoint that a script's fit begins with, by a path in its text, and that is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.schema import Config
from hpc_train.config.scripts.script_call_arguments import bound_once, sure_calls

# What Lightning looks up by itself (trainer/connectors/checkpoint_connector.py).
_NO_PATHS = ("last", "best", "hpc", "registry")
INSTEAD = (
    "leave ckpt_path out, as `hpc-train resume RUN` goes on from the newest checkpoint of a run by"
    ' itself; or write ckpt_path="last", which begins anew where there is none'
)


def absent_checkpoint(path: str, workdir: Path) -> str:
    """`there is no folder x in /here`, or no file; empty where it is there.

    Args:
        path: Of the checkpoint; a relative one begins in `workdir`.
        workdir: Where the script runs.
    """
    parts = Path(path)
    if not path or path in _NO_PATHS or "://" in path or path.startswith(("registry:", "~")):
        return ""
    if (workdir / parts).exists():
        return ""
    folders = [it for it in reversed(parts.parents) if str(it) not in (".", "/")]
    absent = next((it for it in folders if not (workdir / it).is_dir()), None)
    if absent is None:
        beside = str(parts.parent) == "."
        return f"there is no {parts.name} in {workdir if beside else parts.parent}"
    inside = "" if parts.is_absolute() else f", which would be in {workdir}"
    return f"there is no folder {absent}{inside}"


def notes_on_checkpoints(config: Config, workdir: Path) -> Iterator[str]:
    """A line for the first fit of a script, where it surely begins with such a path."""
    file = workdir / (config.script.path or "")
    if (tree := script_tree(file)) is None:
        return
    text = file.read_text("utf-8", "replace")
    names = _texts(tree)
    for call in sure_calls(tree):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "fit":
            continue
        value = next((it.value for it in call.keywords if it.arg == "ckpt_path"), None)
        path = names.get(value.id) if isinstance(value, ast.Name) else _text(value)
        if path and text.count(path) == 1 and (said := absent_checkpoint(path, workdir)):
            where = f"{config.script.path}:{call.lineno}"
            yield f"{where}: fit(ckpt_path=...) is {path}, and {said}: {INSTEAD}"
        return  # what another begins with the first may write


def _texts(tree: ast.Module) -> dict[str, str]:
    """Names that are a text, and nothing else in the whole script."""
    once = bound_once(tree)
    found = {}
    for node in ast.walk(tree):
        text = _text(node.value) if isinstance(node, ast.Assign) else None
        for target in node.targets if isinstance(node, ast.Assign) and text else ():
            if isinstance(target, ast.Name) and target.id in once:
                found[target.id] = str(text)
    return found


def _text(value: ast.expr | None) -> str | None:
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return str(value.value) if isinstance(value, ast.Constant) and is_text else None
