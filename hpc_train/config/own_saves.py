"""A script's loop that saves by itself, where `script.resume` does not name what it saves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.resume_arguments import (
    resume_options,
    saved_pattern,
    saves_in_loops,
    saving_helpers,
)
from hpc_train.config.schema import Config
from hpc_train.config.script_starts import MOST_MODULES, own_files
from hpc_train.config.script_tree import script_tree

_LIGHTNING = ("pytorch_lightning", "lightning")  # whose Trainer's state hpc-train saves itself


def note_on_own_saves(config: Config, folder: Path) -> str:
    """What to write so that the next job goes on from what the script saves; empty where known.

    Of a script that makes no Lightning Trainer, neither itself nor in what it imports of its
    folder, and calls torch.save in a loop. One save at its end is no checkpoint to go on from.
    """
    script = config.script
    if not script.path or script.resume or not config.requeue.enabled:
        return ""
    tree = script_tree(folder / script.path)
    own = _own_texts(tree, (folder / script.path).resolve()) if tree is not None else None
    if tree is None or own is None:
        return ""
    call = next(saves_in_loops(tree, saving_helpers(own)), None)
    if call is None:
        return ""
    when = saved_pattern(call, tree)
    loads = any(_is_load(it) for text in (tree, *own) for it in ast.walk(text))
    option, switch = resume_options(tree)
    given = f"{option}, '{{newest}}'" if option else switch
    written = f"{{when: {when or 'FILE'}, args: [{given}]}}"
    write = f'"script.resume={written}"' if given else f"script.resume.when={when or 'FILE'}"
    also = "" if loads else ", and load it where it is there (torch.load)"
    return (
        f"{script.path}:{call.lineno} saves{f' {when}' if when else ''} by itself, and a job that"
        f" follows begins anew: to go on from that write {write}{also}"
    )


def _own_texts(tree: ast.Module, file: Path) -> list[ast.Module] | None:
    """What the script imports of its folder; None where a Trainer of Lightning's may be made."""
    own = own_files(tree, file, [str(file.parent)], also_inner=True)
    texts = [text for _, text in own]
    names = (it.partition(".")[0] for text in (tree, *texts) for it in _imported(text))
    is_open = len(texts) >= MOST_MODULES - 1 or any(it in _LIGHTNING for it in names)
    return None if is_open else texts


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "load"


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (it.name for it in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."
