"""A script for one process that is started on several ranks, each of which would train all of it.

Each rank of such a script ends at its first optimizer step (`training.script_watch.need_group`):
what surely makes no process group is refused before it waits in a queue for that.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import words_in
from hpc_train.config.scripts.plain_commands import plain_command_words
from hpc_train.config.scripts.ranks_apart import TELLS_APART, Apart, is_known, wrap_behind
from hpc_train.config.scripts.script_starts import MOST_MODULES, own_files

# What may make a process group, start processes of its own, or train by itself.
_MAY_JOIN = re.compile(
    r"(?i:.*(?:distributed|process_group|processgroup|ddp|fsdp|multiprocess|subprocess|spawn))"
    r"|(?i:.*(?:launch|accelerat|fabric|lightning|trainer|horovod|deepspeed|slurm|runpy|rpc\Z))"
    r"|(?:hpc_train|dist|Process|Pool|fork|forkserver|system|popen|execv\w*|torchrun|mpi4py)\Z"
    r"|(?:start_processes|import_module|__import__|exec|compile_command|cli|parallel|xla\w*)\Z"
)
_STEP = "step"
_MAKES_ACCELERATOR = re.compile(r"\b(?:accelerate|Accelerator)\b")
_OF_DEVICES = re.compile(r"[a-z_]*accelerator[a-z_]*")
_STARTS = re.compile(r"\bos\.system\b|import .*\bsystem\b")
_OF_TRAINERS = re.compile(r"(?i)\w*trainer\w*")
_OF_POOLS = frozenset({"Pool", "ThreadPool", "cpu_count", "pool"})  # of Python's multiprocessing


def trained_alone(
    tree: ast.Module, file: Path, search_path: Sequence[str], *, ranks: int
) -> Apart | None:
    """None where a process group may be made, or no optimizer of torch's takes steps.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
        ranks: How many run it.
    """
    if ranks < 2:
        return None
    own = own_files(tree, file, search_path, also_inner=True)
    texts = [tree, *(text for _, text in own)]
    words = {word for it in texts for word in words_in(it) - _harmless_words(it)}
    made = {it.name for text in texts for it in ast.walk(text) if isinstance(it, ast.ClassDef)}
    if not {"backward", _STEP, "optim"} <= words or any(map(_MAY_JOIN.match, words - made)):
        return None
    if len(texts) >= MOST_MODULES or not all(is_known(it, search_path[0]) for it in texts):
        return None
    step = min(filter(None, map(_line_of_step, ast.walk(tree))), default=0)
    what = "takes optimizer steps" if step else "is for one process"
    said = f"{what}, and nothing makes a process group: {ranks} ranks would each train by"
    ways = ["start it with --nodes 1 --gpus 1"]
    if "DataParallel" in words:
        ways.append("with --nodes 1 script.launcher=none, as one process that has the node's GPUs")
    ways.append(f"write torch.distributed.init_process_group() and {wrap_behind(tree)}")
    is_sure = not any(map(TELLS_APART.match, words))
    said = f"{said} themselves and write the same files"
    return Apart(step or 1, said, "; or ".join(ways), is_sure)


def alone_elsewhere(
    tree: ast.Module, file: Path, folders: Sequence[str], search_path: Sequence[str], *, ranks: int
) -> Apart | None:
    """Of a script whose optimizer steps are taken in a module of the user's own, as in minGPT.

    A class of the user's own may be called Trainer. It is told and not refused: what such a module
    does is less certain.

    Args:
        tree: The script.
        file: The script's.
        folders: Those of the user's own modules.
        search_path: As `sys.path`, with the script's folder first.
        ranks: How many run it.
    """
    if ranks < 2 or any(map(_line_of_step, ast.walk(tree))):
        return None
    own = dict(own_files(tree, file, search_path, also_inner=True, also_below=folders))
    texts = [tree, *own.values()]
    steps = {
        path: min(filter(None, map(_line_of_step, ast.walk(it))), default=0)
        for path, it in own.items()
    }
    where = next(((path, line) for path, line in steps.items() if line), None)
    if where is None or len(texts) >= MOST_MODULES:
        return None
    words = {word for it in texts for word in words_in(it) - _harmless_words(it)}
    if not {"backward", _STEP, "optim"} <= words or _may_join(words, texts, own):
        return None
    if not all(any(is_known(it, folder) for folder in folders) for it in texts):
        return None
    place = os.path.relpath(where[0], file.parent)
    said = f"trains by {place}, whose line {where[1]} takes optimizer steps, and nothing makes a"
    said += f" process group: each of the {ranks} ranks would end at its first step"
    hint = "start it with --nodes 1 --gpus 1; or write torch.distributed.init_process_group() and"
    parts = {*where[0].parts, where[0].stem}
    line = next((it.lineno for it in tree.body if parts & {*_roots(it)}), 1)
    return Apart(
        line, said, f"{hint} wrap the model by DistributedDataParallel there", is_sure=False
    )


def _roots(statement: ast.stmt) -> Iterator[str]:
    """The first words of the modules that it imports."""
    if isinstance(statement, ast.Import):
        yield from (it.name.partition(".")[0] for it in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        yield (statement.module or "").partition(".")[0]


def _may_join(words: set[str], texts: Sequence[ast.Module], own: Collection[Path]) -> bool:
    """Whether a name may be of what makes a process group, or trains by itself."""
    made = {it.name for text in texts for it in ast.walk(text) if isinstance(it, ast.ClassDef)}
    modules = {part for it in own for part in (it.stem, it.parent.name)}
    found = {it for it in words - made - modules if _MAY_JOIN.match(it)}
    if not any(_STARTS.search(ast.unparse(it)) for it in texts):
        found.discard("system")  # of a config of its own
    if any(map(_OF_TRAINERS.match, made)):  # the user's own
        found -= {it for it in found if _OF_TRAINERS.match(it)} - _imported_from_others(
            texts, modules
        )
    return bool(found)


def _imported_from_others(texts: Sequence[ast.Module], own: Collection[str]) -> set[str]:
    """Names that are imported of modules which are not the user's own."""
    nodes = [it for text in texts for it in ast.walk(text) if isinstance(it, ast.ImportFrom)]
    others = (it for it in nodes if not it.level and (it.module or "").partition(".")[0] not in own)
    return {name for it in others for of in it.names for name in (of.name, of.asname or "")}


def _harmless_words(text: ast.Module) -> set[str]:
    """Those that the text has for what makes no group: a plain command, a Pool, a device."""
    words = plain_command_words(text)
    if not _MAKES_ACCELERATOR.search(ast.unparse(text)):
        # torch's module of that name, and its current_accelerator().
        words |= {it for it in words_in(text) if _OF_DEVICES.fullmatch(it)}
    taken: set[str] = set()
    for node in ast.walk(text):
        if isinstance(node, ast.ImportFrom) and "multiprocessing" in (node.module or ""):
            is_pythons = node.module in ("multiprocessing", "multiprocessing.pool")
            taken |= {it.name if is_pythons else "" for it in node.names}
        elif isinstance(node, ast.Import):
            taken |= {"" for it in node.names if it.asname and "multiprocessing" in it.name}
            taken |= {"" for it in node.names if it.name == "torch.multiprocessing"}
        elif isinstance(node, ast.Attribute) and "multiprocessing" in ast.unparse(node.value):
            taken.add(node.attr if ast.unparse(node.value) == "multiprocessing" else "")
    if taken and taken <= _OF_POOLS:
        words |= {"multiprocessing", "Pool"}
    return words


def _line_of_step(node: ast.AST) -> int:
    """That of `optimizer.step()`, and not of a schedule's; else 0."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr != _STEP:
        return 0
    return 0 if "sched" in ast.unparse(called.value).lower() else called.lineno
