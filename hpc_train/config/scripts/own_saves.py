"""A script's loop that saves by itself, where `script.resume` does not name what it saves."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.schema import Config
from hpc_train.config.scripts.resume_arguments import (
    called_in_loops,
    resume_options,
    resume_word,
    saved_pattern,
    saves_in_loops,
    saving_helpers,
)
from hpc_train.config.scripts.script_arguments import texts_given
from hpc_train.config.scripts.script_starts import MOST_MODULES, own_files
from hpc_train.config.scripts.submitting_scripts import submits_jobs

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
    own = own_texts(tree, (folder / script.path).resolve()) if tree is not None else None
    if tree is None or own is None or submits_jobs(folder / script.path)[0]:
        return ""
    given = [str(it) for it in script.args]
    found = next(saves_of(tree, (folder / script.path).resolve(), own, given), None)
    if found is None:
        return ""
    where, when = found
    where = (Path(script.path).parent / where).as_posix()
    texts = [tree, *own.values()]
    loads = any(_is_load(it) for text in texts for it in ast.walk(text))
    write = resume_word(when or "FILE", tree)
    saves = f"{where} saves{f' {when}' if when else ''} by itself"
    if loads and not any(resume_options(tree)):  # it may find it by itself
        two = "two stops without a known checkpoint end the run"
        return f"{saves}, which no key names, and {two}: write {write}"
    also = "" if loads else ", and load it where it is there (torch.load)"
    return f"{saves}, and a job that follows begins anew: to go on from that write {write}{also}"


def saves_of(
    tree: ast.Module, file: Path, own: Mapping[Path, ast.Module], arguments: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The place of each save in a loop, of the script first, and the file that it writes."""
    helpers, given = saving_helpers([tree, *own.values()]), texts_given(tree, arguments)
    called = {it.rpartition(".")[2] for it in called_in_loops(tree)} - helpers
    for path, text in {file: tree, **own}.items():
        for call in saves_in_loops(text, helpers, called if path != file else ()):
            place = os.path.relpath(path, file.parent)
            yield f"{place}:{call.lineno}", saved_pattern(call, text, given)


def own_texts(tree: ast.Module, file: Path) -> dict[Path, ast.Module] | None:
    """What the script imports of its folder; None where a Trainer of Lightning's may be made."""
    own = dict(own_files(tree, file, [str(file.parent)], also_inner=True))
    names = (it.partition(".")[0] for text in (tree, *own.values()) for it in _imported(text))
    is_open = len(own) >= MOST_MODULES - 1 or any(it in _LIGHTNING for it in names)
    return None if is_open else own


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "load"


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (it.name for it in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."
