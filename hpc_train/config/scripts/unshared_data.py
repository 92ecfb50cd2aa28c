"""A script whose ranks average gradients and each take all of the samples.

DistributedDataParallel "does not chunk or otherwise shard the input across participating GPUs; the
user is responsible for defining how to do so, for example through the use of a DistributedSampler"
(torch's manual, DistributedDataParallel). Nothing fails: an epoch is the same work on each rank.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import name_given_to, words_in
from hpc_train.config.scripts.script_starts import own_modules
from hpc_train.config.scripts.script_trainers import made_fabrics
from hpc_train.config.scripts.words_of_layers import words_of_layers

_WRAPS = re.compile(r"\w*DistributedDataParallel|DDP|FSDP|FullyShardedDataParallel|fully_shard")
# By which a script may share its samples, or has somebody do so.
_SHARES = re.compile(
    r"(?i).*(?:sampler|shard|replica|world|split|partition|chunk|stride|islice|iterable|webdataset)"
    r"|\w*Trainer|Accelerator|prepare|setup_dataloaders|_setup_dataloader|DistributedLoader"
)
_SPLITS = ("random_split", "train_test_split")  # parts to train and to validate with
_MOST_SHOWN = 60  # of what makes the data
_SAMPLER = re.compile(r"\w*Sampler\Z")
_SHARD_WRAPS = ("fully_shard", "FullyShardedDataParallel")
# Where a rank is only a device, or is asked for to print or to save.
_CALLS = ("set_device", "device", "to", "cuda", "int", "str", "print", "init_process_group", "info")
_KEYWORDS = ("rank", "device_ids", "device_id", "output_device", "device", "disable", "desc")


def data_for_all(
    tree: ast.Module, file: Path, search_path: Sequence[str], *, ranks: int
) -> tuple[int, str, str] | None:
    """The line of its loader, what is said and what to write; None where they may share.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
        ranks: How many run it.
    """
    fabric = next(made_fabrics(tree), None)
    texts = [tree, *own_modules(tree, file, search_path)] if ranks > 1 else []
    loaders = [it for it in ast.walk(tree) if isinstance(it, ast.Call) and _is_loader(it)]
    if not texts or not loaders:
        return None
    words = {word for text in texts for word in words_in(text)} - _unused_samplers(texts)
    words -= words_of_layers(texts) | _own_preparations(texts) | _parts(texts)
    averages = "setup" in words if fabric else any(map(_WRAPS.fullmatch, words))
    makes = fabric is not None or "init_process_group" in words
    shares = any(_SHARES.match(it) for it in words if it not in _SHARD_WRAPS)
    if not averages or not makes or shares or not all(map(_only_for_devices, texts)):
        return None
    loader = next((it for it in loaders if "train" in name_given_to(it, tree)), loaders[0])
    said = f"gives each of {ranks} ranks all of the samples: an epoch is {ranks} times the same"
    if fabric is not None:
        name, owner = (name_given_to(it, tree) for it in (loader, fabric))
        name, owner = name or "loader", owner or "fabric"
        return loader.lineno, said, f"write {name} = {owner}.setup_dataloaders({name}) behind it"
    return loader.lineno, said, _with_sampler(loader, words)


def _unused_samplers(texts: Sequence[ast.Module]) -> set[str]:
    """Names of samplers that are imported, and that no line of any text uses."""
    nodes = [it for text in texts for it in ast.walk(text)]
    used = {it.id for it in nodes if isinstance(it, ast.Name)}
    used |= {it.attr for it in nodes if isinstance(it, ast.Attribute)}
    imports = [it for it in nodes if isinstance(it, ast.ImportFrom) and it.names[0].name != "*"]
    bound = [{it.name, it.asname or it.name} for node in imports for it in node.names]
    return {name for names in bound for name in names if not names & used and _SAMPLER.match(name)}


def _parts(texts: Sequence[ast.Module]) -> set[str]:
    """Names of what splits the data, where each part has a name: a rank chooses none of them."""
    nodes = [it for text in texts for it in ast.walk(text)]
    calls = {id(it) for it in nodes if isinstance(it, ast.Call) and _splits(it)}
    for it in nodes:
        if isinstance(it, ast.Assign) and isinstance(it.targets[0], ast.Tuple | ast.List):
            calls.discard(id(it.value))
    return set() if calls else {*_SPLITS}


def _splits(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in _SPLITS


def _own_preparations(texts: Sequence[ast.Module]) -> set[str]:
    """Functions of the texts' own that are called prepare_...: what they do stands there."""
    made = (it for text in texts for it in ast.walk(text) if isinstance(it, ast.FunctionDef))
    return {it.name for it in made if it.name.startswith("prepare") and it.name != "prepare"}


def _with_sampler(loader: ast.Call, words: set[str]) -> str:
    """The line that makes it, with a sampler in place of shuffle, by a name that is none yet."""
    data = ast.unparse(loader.args[0]) if loader.args else "data"
    others = [*map(ast.unparse, loader.args[1:2])]
    others += [ast.unparse(it) for it in loader.keywords if it.arg not in ("shuffle", "dataset")]
    data = next((ast.unparse(it.value) for it in loader.keywords if it.arg == "dataset"), data)
    named, made = data, ""
    if "(" in data:  # made in its place: the sampler and the loader have the same
        named = next((it for it in ("data", "dataset", "samples") if it not in words), "all_data")
        made = f"{named} = {data if len(data) <= _MOST_SHOWN else data.partition('(')[0] + '(...)'}"
    shuffles = [it.value for it in loader.keywords if it.arg == "shuffle"]
    is_shuffled = bool(shuffles) and ast.unparse(shuffles[0]) == "True"
    sampler = f"sampler = DistributedSampler({named}, shuffle={is_shuffled})"
    written = f"{ast.unparse(loader.func)}({', '.join([named, *others, 'sampler=sampler'])})"
    later = ", and sampler.set_epoch(epoch) in front of each epoch" if is_shuffled else ""
    sampler = f"{made}, {sampler}" if made else sampler
    return f"write {sampler}, from torch.utils.data, and {written}{later}"


def _is_loader(call: ast.Call) -> bool:
    is_open = any(it.arg is None for it in call.keywords)
    return ast.unparse(call.func).rpartition(".")[2] == "DataLoader" and not is_open


def _only_for_devices(tree: ast.Module) -> bool:
    """Whether the rank names a device or asks who is the first, and chooses no samples."""
    above = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        is_name = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        is_attribute = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        name = getattr(node, "id", "") if is_name else getattr(node, "attr", "")
        if (is_name or is_attribute) and "rank" in name.lower():
            parent = above.get(id(node))
            called = isinstance(parent, ast.Call) and parent.func is node
            if not _is_harmless(above.get(id(parent)) if called else parent, above):
                return False
    return True


def _is_harmless(parent: ast.AST | None, above: dict[int, ast.AST]) -> bool:
    if isinstance(parent, ast.List | ast.Tuple):  # device_ids=[rank]
        parent = above.get(id(parent))
    if isinstance(parent, ast.keyword):
        return parent.arg in _KEYWORDS
    if isinstance(parent, ast.Call):
        return ast.unparse(parent.func).rpartition(".")[2] in _CALLS
    plain = (ast.Compare, ast.UnaryOp, ast.BoolOp, ast.If, ast.IfExp, ast.FormattedValue)
    return isinstance(parent, (*plain, ast.Assign, ast.Expr, ast.Attribute))
