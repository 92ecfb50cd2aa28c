"""The schema as data: which keys there are, which are sections, which hold text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hpc_train.config.schema import Config

FIELDS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Config))
_DEFAULTS: list[tuple[str, Any]] = [
    (field.name, field.default_factory) for field in dataclasses.fields(Config)
]
_SECTION_CLASSES: Mapping[str, Any] = {
    name: default for name, default in _DEFAULTS if dataclasses.is_dataclass(default)
}
SECTIONS: Mapping[str, tuple[str, ...]] = {
    name: tuple(field.name for field in dataclasses.fields(section))
    for name, section in _SECTION_CLASSES.items()
}
# The type of every key below the sections, as the schema writes it: annotations are still text here
# (PEP 563).
TYPES: Mapping[str, str] = {
    f"{prefix}{field.name}": str(field.type)
    for prefix, section in [("", Config), *((f"{n}.", s) for n, s in _SECTION_CLASSES.items())]
    for field in dataclasses.fields(section)
    if f"{prefix}{field.name}" not in SECTIONS
}
TEXT_KEYS: frozenset[str] = frozenset(
    key for key, kind in TYPES.items() if kind in ("str", "Optional[str]")
)
# sbatch(1): "--mem, --mem-per-cpu and --mem-per-gpu are mutually exclusive".
MEMORY_KEYS = ("mem", "mem_per_gpu", "mem_per_cpu")
# What has no default, with an example for the one who left it out.
REQUIRED_KEYS: Mapping[str, str] = {
    "name": "name: my-run",
    "global_batch_size": "global_batch_size: 64 (samples an optimizer step, over all ranks)",
    "model": "model: {class_path: my_package.MyModel, init_args: {...}}",
    "data": "data: {class_path: my_package.MyData, init_args: {...}}",
}
# What a script decides in its own code, so that it cannot stand beside one.
OF_THE_SCRIPT = (
    *("model", "data", "trainer", "global_batch_size", "micro_batch_size", "loggers"),
    *("reproducible", "init_from", "init_leave_out"),
)


def is_text(key: str) -> bool:
    """Whether the value of a key is text, whatever YAML reads in it."""
    return key in TEXT_KEYS or key.startswith("env.variables.")
