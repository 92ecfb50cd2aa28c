"""Weights that Lightning's ModelPruning holds at zero by masks, which no checkpoint has."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hpc_train.config.fit.silent_callbacks import lightnings_callback
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.modules import Names, full_name
from hpc_train.config.specs import callbacks_of, read_object

_NAME = "ModelPruning"
# By `make_pruning_permanent`, which is True where nothing is said: what is told, and what to do.
_SAID = {
    True: (
        (
            "has masks that are in no checkpoint: in an attempt that goes on pruned weights are"
            " trained until it prunes again, at the end of an epoch"
        ),
        "for the exact result let the run end in one attempt",
    ),
    False: (
        (
            "has make_pruning_permanent: false: the masks are in the checkpoint, and a model that"
            " is made anew has no place for them, so that no attempt goes on from it"
        ),
        "leave make_pruning_permanent out",
    ),
}


def notes_on_pruning(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line for each ModelPruning of a config that prunes.

    (pytorch_lightning/callbacks/pruning.py, on_save_checkpoint)
    """
    for key, spec in callbacks_of(loaded.config.trainer):
        if lightnings_callback(spec, path) != _NAME:
            continue
        _, given = read_object(spec, key, loaded.origins)
        if given.get("apply_pruning", True):
            said, hint = _SAID[bool(given.get("make_pruning_permanent", True))]
            yield f"{loaded.origins.prefix(key)}{key}: {_NAME} {said}; {hint}"


def pruned_in_script(tree: ast.Module, names: Names) -> Iterator[tuple[int, str, str]]:
    """The line of each one that a script makes, what is said of it, and what to do."""
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call)):
        whole = full_name(ast.unparse(call.func), names.imports)
        given = {it.arg: ast.unparse(it.value) for it in call.keywords}
        if whole.rpartition(".")[2] != _NAME or not whole.startswith(("pytorch_l", "lightning")):
            continue
        if given.get("apply_pruning") != "False":
            said, hint = _SAID[given.get("make_pruning_permanent") != "False"]
            yield call.lineno, f"makes a {_NAME}, which {said}", hint
