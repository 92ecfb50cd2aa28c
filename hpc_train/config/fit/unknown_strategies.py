"""A `trainer.strategy` that Lightning does not know, and that a module may register under it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.imported_files import (
    are_all_followed,
    imported_files,
    names_imported,
)
from hpc_train.config.trainer_args import STRATEGIES

_OTHERS = ("xla", "xla_debug", "single_xla", "single_tpu")  # of TPUs
_REGISTERS = ("StrategyRegistry", "register_strategies")
_SHOWN = "ddp, fsdp, deepspeed, ..."
_ADD_ONS = ("lightning_",)  # packages that register theirs as they are imported


def unknown_strategy(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """A line for it; none where a file of the project registers one, or may import what does."""
    config, key = loaded.config, "trainer.strategy"
    name = config.trainer.get("strategy")
    if not isinstance(name, str) or name in (*STRATEGIES, *_OTHERS):
        return
    files = imported_files([config], workdir, workdir)
    names = names_imported([config], files)
    texts = [it.read_text(encoding="utf-8", errors="replace") for it in files if it.is_file()]
    registers = any(word in text for word in _REGISTERS for text in texts)
    adds = any(it.startswith(_ADD_ONS) for it in names)
    if registers or adds or not are_all_followed(files):
        return
    said = f"{key} is {name!r}, which Lightning itself does not know ({_SHOWN})"
    hint = "a module that your classes import has to register it (StrategyRegistry.register)"
    yield f"{loaded.origins.prefix(key)}{said}: write one of these, or {hint}"
