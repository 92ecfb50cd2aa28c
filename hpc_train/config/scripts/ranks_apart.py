"""A script of several ranks that average no gradients: each would train a model of its own.

Refused is what has each rank do the same: its text exchanges nothing and asks nothing for its
rank. What may be meant, as a model for each rank, is only told.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.config.python_text.script_tree import name_given_to, words_in
from hpc_train.config.scripts.script_starts import own_modules
from hpc_train.config.scripts.script_trainers import made_fabrics
from hpc_train.config.scripts.session_calls import opened_session
from hpc_train.config.scripts.trained_modules import (
    WRAP,
    made_by_calls,
    setups_behind,
    trained_modules,
    wraps_behind,
)

# Packages that average nothing unless the script asks them to by one of the names below.
_HARMLESS = (
    *("torch", "torchvision", "torchaudio", "torchmetrics", "lightning", "lightning_fabric"),
    *("numpy", "scipy", "sklearn", "pandas", "PIL", "cv2", "h5py", "einops", "matplotlib"),
    *("tqdm", "rich", "yaml", "omegaconf", "click", "tensorboard", "tensorboardX", "wandb"),
    *("transformers", "tokenizers", "datasets", "timm", "hpc_train", "hydra", "dotenv"),
    *("safetensors", "tiktoken", "sentencepiece", "skimage", "seaborn", "albumentations"),
)
# What wraps a model or shards it, and trainers that do so.
WRAPS = re.compile(
    r"\w*DistributedDataParallel\w*|DDP|FSDP|FullyShardedDataParallel|fully_shard|replicate|rpc"
    r"|parallelize_module|distribute_(?:module|tensor)|DTensor|tensor_parallel|\w*Pipeline\w*"
    r"|ZeroRedundancyOptimizer|DistributedOptimizer|\w*ModelAverager|\w*Trainer|Accelerator"
    r"|\w*_fsdp\w*|\w*_ddp\w*"
)
_SETS_UP = ("setup", "setup_module")  # of a Fabric
EXCHANGES = re.compile(
    r"i?(?:send|recv)(?:_object_list)?|batch_isend_irecv|(?:all_)?(?:reduce|gather)\w*"
    r"|reduce_scatter\w*|broadcast\w*|all_to_all\w*|scatter\w*|_allgather_base|\w*coalesced\w*"
)
# By which a script reaches its gradients or weights, to exchange them itself.
_REACHES = ("grad", "data", "main_grad", "parameters_to_vector", "vector_to_parameters")
_HOOKS = re.compile(r"register_\w*hook|distributed\.nn\b|\bdist\.nn\b")
TELLS_APART = re.compile(
    r"(?i).*(?:rank|world|barrier|environ|getenv|hostname|getpid|uuid|sampler|process_index|node)"
    r"|(?:getattr|exec|globals|import_module|__import__)\Z"
)
_GROUP = "init_process_group"


@dataclass(frozen=True)
class Apart:
    """What is said of such a script.

    Attributes:
        is_sure: Each rank does the same, so that it cannot be meant.
    """

    line: int
    said: str
    hint: str
    is_sure: bool


def trained_apart(
    tree: ast.Module, file: Path, search_path: Sequence[str], *, ranks: int
) -> Apart | None:
    """None where its ranks may average, or do not train.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
        ranks: How many run it.
    """
    fabric = next(made_fabrics(tree), None)
    groups = (it for it in ast.walk(tree) if isinstance(it, ast.Call) and _is_call_of(it, _GROUP))
    session = opened_session(tree)
    makes = fabric or session or next(groups, None)
    if ranks < 2 or makes is None or not any(_is_call_of(it, "backward") for it in ast.walk(tree)):
        return None
    own = list(own_modules(tree, file, search_path))
    words = {word for text in (tree, *own) for word in words_in(text)}
    made_here = {it.name for it in ast.walk(tree) if isinstance(it, ast.ClassDef)}
    wraps = {it for it in words - made_here if WRAPS.fullmatch(it)}
    wraps |= words & {*_SETS_UP} if fabric else words & {"Fabric"}
    if wraps or not all(is_known(it, search_path[0]) for it in (tree, *own)):
        return None
    exchanges = any(map(EXCHANGES.fullmatch, words))
    if exchanges and any(may_average(it) for it in (tree, *own)):
        return None
    alone = "each trains a model of its own, as no gradients are averaged"
    is_sure = not exchanges and not any(map(TELLS_APART.match, words - {_GROUP}))
    if session is not None:
        said = f"opens a Session, and nothing wraps the model: of {ranks} ranks {alone}"
    elif fabric is not None:
        said = f"makes a Fabric, and nothing calls its setup: of {ranks} ranks {alone}"
    else:
        said = f"makes a process group, and nothing wraps the model: of {ranks} ranks {alone}"
    return Apart(makes.lineno, said, _to_write(tree, fabric), is_sure)


def wrap_behind(tree: ast.Module) -> str:
    """The lines that wrap the script's modules, and where they stand."""
    if trained := trained_modules(tree):
        return wraps_behind(trained)
    return f"model = {WRAP}(model) before its loop"


def _to_write(tree: ast.Module, fabric: ast.Call | None) -> str:
    """The lines that set it up, by the script's own names."""
    alone = "or start it with --nodes 1 --gpus 1"
    if fabric is None:
        return f"write {wrap_behind(tree)}, {alone}"
    name = name_given_to(fabric, tree) or "fabric"
    trained = trained_modules(tree)
    write = f"model, optimizer = {name}.setup(model, optimizer)"
    write = setups_behind(trained, name) if trained else write
    for assigned, call in made_by_calls(tree):
        if _is_call_of(call, "DataLoader"):
            loader, line = ast.unparse(assigned.targets[0]), assigned.end_lineno
            write += f", and {loader} = {name}.setup_dataloaders({loader}) behind line {line}"
            break
    return f"write {write}, {alone}"


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name


def is_known(text: ast.Module, folder: str) -> bool:
    """Whether all that is imported is Python's own, a package of `_HARMLESS`, or was read."""
    for node in ast.walk(text):
        names = [it.name for it in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for root in (it.partition(".")[0] for it in names):
            is_own = Path(folder, f"{root}.py").is_file() or Path(folder, root).is_dir()
            if root not in (*_HARMLESS, *sys.stdlib_module_names) and not is_own:
                return False
    return True


def may_average(tree: ast.Module) -> bool:
    """Whether what it exchanges may be gradients or weights."""
    for node in ast.walk(tree):
        reaches = isinstance(node, ast.Attribute) and node.attr in _REACHES
        if reaches and not ast.unparse(node).endswith("utils.data"):
            return True
        if isinstance(node, ast.For | ast.comprehension) and "parameters" in ast.unparse(node.iter):
            return True
    return _HOOKS.search(ast.unparse(tree)) is not None
