"""A DistributedSampler that shuffles alike in each epoch, and a wrap without a process group.

"Calling the set_epoch() method at the beginning of each epoch before creating the DataLoader
iterator is necessary to make shuffling work properly across multiple epochs. Otherwise, the same
ordering will be always used" (torch.utils.data.distributed.DistributedSampler). Both are told of
scripts whose text shows all that they import of their own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import name_given_to, words_in
from hpc_train.config.scripts.ranks_apart import is_known
from hpc_train.config.scripts.script_starts import own_modules

_SAMPLER = "DistributedSampler"
_SETS_EPOCH = re.compile(
    r"set_epoch|Session|\w*Trainer|Accelerator|Fabric|LightningModule|prepare|setup_dataloaders|ignite"
)
_WRAPS = ("DistributedDataParallel", "DDP")
_MAKES_GROUP = re.compile(
    r"(?i)\w*init\w*(?:distributed|process_group|group|dist|ddp)\w*|setup\w*|\w*Trainer"
    r"|Session|Accelerator|Fabric|\w*launch\w*|initialize\w*|\w*device_mesh"
)


def notes_on_groups(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> Iterator[tuple[int, str, str]]:
    """The line of each, what is said and what to write; none where a text is not known.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
    """
    if not {_SAMPLER, *_WRAPS} & words_in(tree):
        return
    texts = [tree, *own_modules(tree, file, search_path)]
    if not all(is_known(it, search_path[0]) for it in texts):
        return
    words = {word for text in texts for word in words_in(text)}
    yield from filter(None, (_unset_epoch(tree, words), _wrap_without_group(tree, words)))


def _unset_epoch(tree: ast.Module, words: set[str]) -> tuple[int, str, str] | None:
    made = [it for it in ast.walk(tree) if isinstance(it, ast.Call) and _named(it) == _SAMPLER]
    shuffling = [it for it in made if _shuffles(it)]
    loops = [it for it in ast.walk(tree) if isinstance(it, ast.For) and _is_of_epochs(it)]
    if len(shuffling) != 1 or len(loops) != 1 or any(map(_SETS_EPOCH.fullmatch, words)):
        return None
    (call,), (loop,) = shuffling, loops
    name, epoch = name_given_to(call, tree) or "loader.sampler", ast.unparse(loop.target)
    said = f"makes a {_SAMPLER}, and nothing calls its set_epoch: each epoch has the same order"
    where = f"at the head of the loop in line {loop.lineno}"
    return call.lineno, said, f"write {name}.set_epoch({epoch}) {where}"


def _wrap_without_group(tree: ast.Module, words: set[str]) -> tuple[int, str, str] | None:
    wraps = [it for it in ast.walk(tree) if isinstance(it, ast.Call) and _named(it) in _WRAPS]
    if not wraps or any(map(_MAKES_GROUP.fullmatch, words)):
        return None
    line = min(it.lineno for it in wraps)
    said = "wraps a model in DistributedDataParallel, and nothing makes a process group"
    return line, said, "write torch.distributed.init_process_group() in front of it"


def _named(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _shuffles(call: ast.Call) -> bool:
    """Whether it surely does: by default, and where it is told to."""
    given = [it.value for it in call.keywords if it.arg == "shuffle"]
    is_plain = len(call.args) < 4 and all(it.arg for it in call.keywords)
    return is_plain and all(ast.unparse(it) == "True" for it in given)


def _is_of_epochs(loop: ast.For) -> bool:
    """Whether it is `for epoch in range(...)`, of more than one."""
    is_range = isinstance(loop.iter, ast.Call) and _named(loop.iter) in ("range", "trange")
    is_one = ast.unparse(loop.iter) in ("range(1)", "range(0, 1)")
    return is_range and not is_one and "epoch" in ast.unparse(loop.target).lower()
