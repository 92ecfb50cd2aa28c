"""An iterable set of the user's that each rank reads whole, as far as its text surely tells.

torch leaves the split to the set: "each replica must be configured differently to avoid duplicated
data" (torch's manual, torch.utils.data.IterableDataset), and Lightning adds a sampler to map-style
sets alone. Nothing fails: an epoch is the same work on each rank.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.fit.lengthless_sets import assigned_values
from hpc_train.config.fit.sure_loaders import SureLoader, sure_loaders
from hpc_train.config.fit.sure_samplers import made
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import (
    Located,
    derives_from,
    locate,
    method_of,
    place_of,
)
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.scripts.script_starts import own_modules

_LOADER = "train_dataloader"
# By which samples may be shared: a word too many leaves a note out.
_SHARES = re.compile(
    r"(?i)rank|world|shard|distribut|\bdist\b|replica|process|split_|(?<![.\w])split\(|partition"
    r"|worker_(?!s)|islice|stride|environ|getenv|slurm|node|host|accelerat|mesh|fabric|seed|chunk"
    r"|(?-i:\btrainer\b)|__import__|setattr"
)
# The others may have ranks that take the same samples on purpose, as tensor parallel ones.
_OF_DATA = re.compile(r"auto|ddp\w*|fsdp\w*|deepspeed\w*")


def unsplit_stream(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """A line for the stream of train_dataloader, with the lines to write.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    slurm, strategy = loaded.config.slurm, loaded.config.trainer.get("strategy") or "auto"
    ranks = slurm.nodes * max(1, slurm.gpus_per_node)
    if not (isinstance(strategy, str) and _OF_DATA.fullmatch(strategy)):
        return
    for loader in sure_loaders(loaded, path):
        made_of = _stream(loader, path) if loader.method.name == _LOADER else None
        found = locate(made_of, path) if made_of else None
        gives = method_of(made_of, "__iter__", path) if made_of else None
        if not (found and gives and made_of and _surely_whole(loader, made_of, path)):
            continue
        of = f"{place_of(gives[0], gives[1].lineno, path)} {found.module}.{found.name}"
        if ranks == 1 and (workers := _workers(loader)) > 1:
            yield (
                f"{of} gives each of {workers} workers all of its samples: an epoch is"
                f" {workers} times the same; {_fix_for_workers(found)}"
            )
        if ranks == 1:
            continue
        yield (
            f"{of} gives each of {ranks} ranks all of its samples: an epoch is {ranks} times the"
            f" same; {_fix(loader, found, path)}"
        )


def _stream(loader: SureLoader, path: Sequence[str]) -> str:
    """The dotted name of the set's class; empty where it may be another, or is none of a stream."""
    value = _set_of(loader)
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self":
        known = assigned_values(loader.data, value.attr, path)
    else:
        known = [(loader.located, made(value, loader.method))]
    names = {
        f"{of.module}.{ast.unparse(it.func)}" if isinstance(it, ast.Call) else ""
        for of, it in known
    }
    name = names.pop() if len(names) == 1 else ""
    found = locate(name, path) if name.replace(".", "").isidentifier() else None
    is_stream = found is not None and derives_from(found, "IterableDataset", path)
    return f"{found.module}.{found.name}" if found and is_stream else ""


def _set_of(loader: SureLoader) -> ast.expr | None:
    return next(iter(loader.call.args), loader.given("dataset"))


def _surely_whole(loader: SureLoader, stream: str, path: Sequence[str]) -> bool:
    """Whether no word of the project's modules that have the set and the data may share samples."""
    data = locate(loader.data, path)
    names = {stream.rpartition(".")[0], loader.located.module, *([data.module] if data else [])}
    for name in names:
        module, _ = find_module(name, path)
        file = module.file if module else None
        if file is None or not file.is_relative_to(Path(path[0])):
            return False
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return False
        if any(map(_may_share, [tree, *own_modules(tree, file, path)])):
            return False
    return True


def _may_share(tree: ast.Module) -> bool:
    """Whether a word outside of the models says so."""
    others = [it for it in tree.body if not (isinstance(it, ast.ClassDef) and _is_model(it))]
    return _SHARES.search(ast.unparse(ast.Module(others, []))) is not None


def _is_model(definition: ast.ClassDef) -> bool:
    return any(ast.unparse(it).endswith("LightningModule") for it in definition.bases)


def _workers(loader: SureLoader) -> int:
    """How many the loader is written with; 0 where that is not told."""
    given = loader.given("num_workers")
    value = given.value if isinstance(given, ast.Constant) else 0
    return value if isinstance(value, int) else 0


def _fix_for_workers(found: Located) -> str:
    samples = _other_name(found)
    return (
        f"rename its __iter__ to {samples}, and write below it def __iter__(self): info ="
        " torch.utils.data.get_worker_info(); return"
        f" itertools.islice(self.{samples}(), info.id, None, info.num_workers) (import itertools)"
    )


def _other_name(found: Located) -> str:
    text = ast.unparse(found.definition) if found.definition else ""
    return "all_samples" if "samples" in text else "samples"


def _fix(loader: SureLoader, found: Located, path: Sequence[str]) -> str:
    samples = _other_name(found)
    shared = f"itertools.islice(self.{samples}(), self.rank, None, self.world_size)"
    first = f"rename its __iter__ to {samples}, and write below it def __iter__(self): return"
    value = _set_of(loader)
    name = ast.unparse(value) if isinstance(value, ast.Name | ast.Attribute) else "stream"
    ranks = f"{name}.rank, {name}.world_size = self.trainer.global_rank, self.trainer.world_size"
    lines = f"{ranks} in front of its return"
    if value is not None and name == "stream":
        whole = ast.unparse(loader.call).replace(ast.unparse(value), name, 1)
        lines = f"{name} = {ast.unparse(value)}; {ranks}; return {whole}"
    place = place_of(loader.located, loader.method.lineno, path)
    workers = loader.given("num_workers")
    more = (
        ""
        if workers is None or ast.unparse(workers) == "0"
        else ("; with num_workers, each worker its own part too: Iterable sets in docs/resuming.md")
    )
    return f"{first} {shared} (import itertools); in {loader.method.name} ({place}) {lines}{more}"
