"""A module with an optimizer of its own that no rank shares, beside one that all share.

DistributedDataParallel averages the gradients "of the module" that it is given (torch's manual,
DistributedDataParallel): of a generator that it wraps and a discriminator that it does not, each
rank trains a discriminator of its own, and nothing fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.modules import Names, full_name
from hpc_train.config.python_text.script_tree import words_in
from hpc_train.config.scripts.ranks_apart import EXCHANGES, WRAPS, is_known, may_average
from hpc_train.config.scripts.script_starts import own_modules
from hpc_train.config.scripts.trained_modules import TrainedModules, in_words, trained_modules

_WRAP = "DistributedDataParallel"
_WRAPS_OF_TORCH = (_WRAP, "DDP")
# What returns the module that it is given, or only reads it.
_SAME = ("to", "cuda", "cpu", "train", "apply", "float", "double", "requires_grad_")
_READS = re.compile(r"print|len|type|id|repr|str|isinstance|(?:\w+\.)*convert_sync_batchnorm")
_MAKES = re.compile(r"(?:torch|torchvision|timm)\..+|(?:.*\.)?[A-Z]\w*")
_RANK = re.compile(r"(?i).*rank|.*is_(?:main|master|first)")


def unwrapped_modules(
    tree: ast.Module, names: Names, file: Path, search_path: Sequence[str], *, ranks: int
) -> tuple[int, str, str] | None:
    """The line of its optimizer, what is said and what to write; None where all may be shared.

    Args:
        tree: The script.
        names: What it binds.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
        ranks: How many run it.
    """
    if ranks < 2 or _WRAP not in ast.unparse(tree):
        return None
    wraps = [it for it in ast.walk(tree) if isinstance(it, ast.Call) and _is_wrap(it, names)]
    trained = trained_modules(tree)
    if not wraps or len(trained) < 2 or not _is_torchs_alone(tree, file, search_path):
        return None
    wrapped = {ast.unparse(it.args[0]).partition(".")[0] for it in wraps if it.args}
    with_it = [model for it in trained for model in it.models if model in wrapped]
    bare = [
        (it, alone)
        for it in trained
        if (alone := [model for model in it.models if _is_bare(model, tree, names, wrapped)])
    ]
    if not with_it or not bare:
        return None
    return _told(bare, with_it[0], wraps[0], ranks)


def _told(
    bare: Sequence[tuple[TrainedModules, list[str]]], shared: str, wrap: ast.Call, ranks: int
) -> tuple[int, str, str]:
    first, alone = bare[0]
    models = list(dict.fromkeys(model for _, models in bare for model in models))
    which = f"which {'is' if len(alone) == 1 else 'are'} in no {_WRAP} ({shared} is in one)"
    said = f"makes {first.optimizer} for {in_words(alone)}, {which}: each of {ranks} ranks"
    more = [f"{ast.unparse(it)}" for it in (*wrap.args[1:], *wrap.keywords)]
    function = ast.unparse(wrap.func)
    write = [f"{it} = {function}({', '.join([it, *more])})" for it in models]
    line = max(it.line for it, _ in bare)
    said += f" trains its own {in_words(models)}"
    return first.line, said, f"write {in_words(write)} behind line {line}"


def _is_wrap(call: ast.Call, names: Names) -> bool:
    return full_name(ast.unparse(call.func), names.imports).rpartition(".")[2] == _WRAP


def _is_torchs_alone(tree: ast.Module, file: Path, search_path: Sequence[str]) -> bool:
    """Whether nothing but the script's own DistributedDataParallel may average anything."""
    own = list(own_modules(tree, file, search_path))
    words = {word for text in (tree, *own) for word in words_in(text)}
    here = words_in(tree)
    others = {it for it in words if WRAPS.fullmatch(it)} - {*_WRAPS_OF_TORCH}
    inner = any(_has_wrap(it) for it in ast.walk(tree) if isinstance(it, ast.ClassDef))
    by_own = any(WRAPS.fullmatch(it) for text in own for it in words_in(text))
    if others or inner or by_own or not here & {*_WRAPS_OF_TORCH}:
        return False
    if not all(is_known(it, search_path[0]) for it in (tree, *own)):
        return False
    exchanges = any(map(EXCHANGES.fullmatch, words))
    return not (exchanges and any(may_average(it) for it in (tree, *own)))


def _has_wrap(definition: ast.ClassDef) -> bool:
    return bool(words_in(ast.Module([definition], [])) & {*_WRAPS_OF_TORCH})


def _is_bare(model: str, tree: ast.Module, names: Names, wrapped: set[str]) -> bool:
    """Whether each use of it is known, and none wraps it or hands it on."""
    above = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    uses = [it for it in ast.walk(tree) if isinstance(it, ast.Name) and it.id == model]
    loads = [it for it in uses if isinstance(it.ctx, ast.Load)]
    if model in wrapped or len(uses) == len(loads) or _is_argument(model, tree):
        return False
    assigned = [it for it in ast.walk(tree) if isinstance(it, ast.Assign) and _binds(it, model)]
    if len(assigned) != len(uses) - len(loads):
        return False
    made = [it.value for it in assigned if not _is_same(it.value, model)]
    is_made = len(made) == 1 and _is_made(made[0], names)
    return is_made and all(_is_plain(it, above) for it in loads)


def _binds(assigned: ast.Assign, model: str) -> bool:
    return [ast.unparse(it) for it in assigned.targets] == [model]


def _is_argument(model: str, tree: ast.Module) -> bool:
    return any(isinstance(it, ast.arg) and it.arg == model for it in ast.walk(tree))


def _is_same(value: ast.expr, model: str) -> bool:
    """Whether it is `net.to(device)` of `net`, or another that gives the module itself."""
    return isinstance(value, ast.Call) and _owner(value) == model


def _owner(call: ast.Call) -> str:
    """`net` of `net.to(device)`, `net.cuda().train()` and `convert_sync_batchnorm(net)`."""
    if len(call.args) == 1 and ast.unparse(call.func).endswith("convert_sync_batchnorm"):
        return ast.unparse(call.args[0])
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _SAME:
        return ""
    owner = call.func.value
    return _owner(owner) if isinstance(owner, ast.Call) else ast.unparse(owner)


def _is_made(value: ast.expr, names: Names) -> bool:
    """Whether it is made there of a class: `Net()`, `Net().to(device)`, torchvision's."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _SAME:
            break
        value = value.func.value
    if not isinstance(value, ast.Call):
        return False
    given = [*value.args, *(it.value for it in value.keywords)]
    parts = [node for it in given for node in ast.walk(it) if isinstance(node, ast.Call)]
    calls = [value, *parts]
    named = [full_name(ast.unparse(it.func), names.imports) for it in calls]
    return all(map(_MAKES.fullmatch, named)) and not any(map(_is_ddp, named))


def _is_ddp(name: str) -> bool:
    return WRAPS.fullmatch(name.rpartition(".")[2]) is not None


def _is_plain(use: ast.Name, above: dict[int, ast.AST]) -> bool:
    """Whether it is called, something of it is taken, or it is only read; on every rank."""
    parent = above.get(id(use))
    for node in _above(use, above):
        if isinstance(node, ast.If) and any(map(_RANK.match, _words(node.test))):
            return isinstance(parent, ast.Attribute) and parent.attr == "state_dict"
    if isinstance(parent, ast.Attribute):
        return not parent.attr.startswith(("register", "_", "share"))
    if not isinstance(parent, ast.Call):
        return False
    return parent.func is use or _READS.fullmatch(ast.unparse(parent.func)) is not None


def _words(test: ast.expr) -> set[str]:
    return words_in(ast.Module([ast.Expr(test)], []))


def _above(node: ast.AST, above: dict[int, ast.AST]) -> Iterator[ast.AST]:
    while (found := above.get(id(node))) is not None:
        yield found
        node = found
