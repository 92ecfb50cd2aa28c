"""A `script.resume.when` that names none of the files that a script's text says it saves."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from hpc_train.config.python_text.script_tree import script_tree, words_in
from hpc_train.config.schema import Config
from hpc_train.config.scripts.own_saves import own_texts, saves_of
from hpc_train.config.scripts.resume_arguments import resume_word, saved_pattern, saving_helpers
from hpc_train.config.scripts.script_arguments import texts_given

_SAVE = "torch.save"
# By which a file may get another name, or be written by other means than torch.save.
_OTHERS = re.compile(
    r"\w*(?:save|dump|checkpoint|write_|export)\w*|rename|renames|replace|move|copy\w*|\w*link"
    r"|chdir|system|Popen|run|call|check_call",
    re.IGNORECASE,
)
_TRAINERS = ("transformers", "hydra", "accelerate", "lightning_fabric", "lightning", "ignite")
_UNSURE = re.compile(r"[${}]")  # what a sweep or the shell fills in
_ANY, _ONE = "*", "?"


def note_on_unfit_resume(config: Config, folder: Path) -> str:
    """What to write in its place; empty where it may name one, or another way of saving is there.

    Args:
        folder: Where the script is started.
    """
    script = config.script
    when = str(script.resume.get("when", "")) if script.resume else ""
    tree = script_tree(folder / script.path) if script.path else None
    if tree is None or not when or _UNSURE.search(when):
        return ""
    file = (folder / str(script.path)).resolve()
    own = own_texts(tree, file)
    if own is None or any(
        _saves_otherwise(it, [tree, *own.values()]) for it in (tree, *own.values())
    ):
        return ""
    arguments = [str(it) for it in script.args]
    names = _names(tree, own, texts_given(tree, arguments))
    if not names or not all(names) or any(_fits(when, it, folder) for it in names):
        return ""
    first = next(saves_of(tree, file, own, arguments), None)
    if first is None or not first[1]:
        return ""
    place = (PurePosixPath(str(script.path)).parent / first[0]).as_posix()
    write = resume_word(first[1], None if script.resume.get("args") else tree)
    said = f"{place} saves {first[1]}, and script.resume.when={when} names nothing that is saved"
    return f"{said}: a job that follows would begin anew; write {write}"


def _names(tree: ast.Module, own: Mapping[Path, ast.Module], given: Mapping[str, str]) -> list[str]:
    """The name that each call saves to; an empty one where the text does not tell it."""
    helpers = saving_helpers([tree, *own.values()])
    found = []
    for text in (tree, *own.values()):
        # What a helper hands on is told where it is called.
        inside = {
            id(it)
            for of in ast.walk(text)
            if isinstance(of, ast.FunctionDef) and of.name in helpers
            for it in ast.walk(of)
        }
        for call in (it for it in ast.walk(text) if isinstance(it, ast.Call)):
            name = ast.unparse(call.func)
            is_save = name == _SAVE or name.rpartition(".")[2] in helpers
            if is_save and id(call) not in inside:
                found.append(saved_pattern(call, text, given))
    return found


def _saves_otherwise(text: ast.Module, texts: list[ast.Module]) -> bool:
    """Whether it calls anything that may write or rename a checkpoint, and that is no own name."""
    if not words_in(text).isdisjoint(_TRAINERS):
        return True
    defined = {
        it.name
        for of in texts
        for it in ast.walk(of)
        if isinstance(it, ast.FunctionDef | ast.ClassDef)
    }
    for call in (it for it in ast.walk(text) if isinstance(it, ast.Call)):
        name = ast.unparse(call.func)
        last = name.rpartition(".")[2]
        if name != _SAVE and last not in defined and _OTHERS.fullmatch(last):
            return True
    return False


def _fits(when: str, saved: str, folder: Path) -> bool:
    """Whether the pattern may name the file that is saved, or a folder that it is in."""
    path = PurePosixPath(_whole(saved, folder))
    wanted = _plain(_whole(when, folder))
    return any(_may_meet(wanted, str(it)) for it in (path, *path.parents))


def _whole(path: str, folder: Path) -> str:
    return os.path.normpath(folder / Path(path).expanduser())


def _plain(pattern: str) -> str:
    """With `*` and `?` alone: a choice of characters is any one."""
    return re.sub(r"\*+", _ANY, re.sub(r"\[[^\]]+\]", _ONE, pattern))


def _may_meet(first: str, second: str) -> bool:
    """Whether one text may be of both patterns."""

    @functools.cache
    def meet(at: int, other: int) -> bool:
        one, two = first[at : at + 1], second[other : other + 1]
        if one == _ANY:
            return meet(at + 1, other) or (bool(two) and meet(at, other + 1))
        if two == _ANY:
            return meet(at, other + 1) or (bool(one) and meet(at + 1, other))
        if not one or not two:
            return one == two
        return (one == two or _ONE in (one, two)) and meet(at + 1, other + 1)

    return meet(0, 0)
