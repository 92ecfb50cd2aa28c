"""Lightning's own Trainer arguments, held against the installed Trainer without importing it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.modules import find_module
from hpc_train.config.origins import Origins
from hpc_train.config.words import did_you_mean

__all__ = [
    "ACCELERATORS",
    "OWNED",
    "check_trainer",
    "full_precision",
    "starts_processes",
    "trainer_parameters",
]

# Arguments that exist, and that hpc-train gives itself: what to write instead.
OWNED: Mapping[str, str] = {
    "num_nodes": "write slurm.nodes, or --nodes",
    "devices": "write slurm.gpus_per_node, or --gpus",
    "accumulate_grad_batches": "it follows from global_batch_size and micro_batch_size",
    "default_root_dir": "everything goes into the run directory; write runs_dir to move it",
    "logger": "write loggers: [csv, tensorboard]",
    "enable_checkpointing": "write checkpoint.every_n_steps or checkpoint.every_n_minutes",
    "use_distributed_sampler": "samples are dealt to ranks by global_batch_size",
    "deterministic": "write reproducible: true",
    "benchmark": "write reproducible: false",
    "plugins": "the cluster environment is hpc-train's; precision and strategy have own arguments",
    "barebones": "it would switch off checkpoints and logs; write single arguments",
}
ACCELERATORS = ("auto", "cpu", "gpu", "cuda")
_STARTERS = ("spawn", "fork", "notebook")  # in the names of strategies that start ranks themselves
_STRATEGIES = (
    *("auto", "ddp", "ddp_find_unused_parameters_true", "ddp_find_unused_parameters_false"),
    *("ddp_static_graph", "fsdp", "fsdp_cpu_offload", "single_device", "deepspeed"),
    *("deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3", "deepspeed_stage_1_offload"),
    *("deepspeed_stage_2_offload", "deepspeed_stage_3_offload", "modelparallel"),
)
_SHORT_PRECISIONS = {"64": "64-true", "32": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}
_PRECISIONS = (
    *_SHORT_PRECISIONS,
    *("64-true", "32-true", "16-true", "bf16-true", "16-mixed"),
    *("bf16-mixed", "transformer-engine", "transformer-engine-float16"),
)


def check_trainer(
    arguments: Mapping[str, Any], origins: Origins, *, search_path: Sequence[str]
) -> None:
    """Refuse what the Trainer does not take, and what follows from elsewhere.

    Args:
        arguments: The section `trainer`.
        origins: For the file and line of an error.
        search_path: As `sys.path`.

    Raises:
        ConfigError: with "did you mean", or the key to write instead.
    """
    known = trainer_parameters(search_path)
    for name in arguments:
        key = f"trainer.{name}"
        if name in OWNED:
            raise origins.error(key, "is set by hpc-train", OWNED[name])
        if known and name not in known:
            usable = [parameter for parameter in known if parameter not in OWNED]
            raise origins.error(
                key,
                "is no argument of Lightning's Trainer",
                did_you_mean(name, usable, prefix="trainer.") or "see Lightning's Trainer",
            )
    _check_choice(arguments, "accelerator", ACCELERATORS, origins)
    _check_choice(arguments, "precision", _PRECISIONS, origins)
    strategy = arguments.get("strategy")
    if isinstance(strategy, str) and starts_processes(strategy):
        raise origins.error(
            "trainer.strategy",
            f"is {strategy}, which starts processes of its own",
            "write ddp: hpc-train starts the ranks",
        )
    _check_choice(arguments, "strategy", _STRATEGIES, origins, registry=True)


def starts_processes(strategy: str) -> bool:
    """Whether Lightning's strategy of this name starts ranks by itself; ours are there already."""
    return any(word in strategy for word in _STARTERS)


def full_precision(value: str | int | None) -> str:
    """Lightning's long name of a precision; 32-true where none is given."""
    return _SHORT_PRECISIONS.get(str(value), str(value or "32-true"))


def trainer_parameters(search_path: Sequence[str]) -> list[str]:
    """Names of the arguments of the Trainer that is installed; empty where none is found.

    Importing Lightning takes five seconds; its signature is read from the text of the file.
    """
    module, rest = find_module("pytorch_lightning.trainer.trainer", search_path)
    if module is None:
        return []
    # trainer/ binds its own name `trainer`; PathFinder finds the file all the same.
    file = module.file if not rest else None
    return _signature(file) if file else []


def _signature(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    start = text.find("    def __init__(", text.find("\nclass Trainer"))
    end = text.find(") -> None:", start)
    if start < 0 or end < 0:
        return []
    header = text[start:end].strip() + "): pass"
    function = ast.parse(header).body[0]
    if not isinstance(function, ast.FunctionDef):
        return []
    return [argument.arg for argument in (*function.args.args[1:], *function.args.kwonlyargs)]


def _check_choice(
    arguments: Mapping[str, Any],
    name: str,
    choices: Sequence[str],
    origins: Origins,
    *,
    registry: bool = False,
) -> None:
    """Refuse a word that is none of `choices`; of a registry, only one near to them."""
    value = arguments.get(name)
    if value is None or isinstance(value, Mapping) or str(value) in choices:
        return
    meant = did_you_mean(str(value), choices)
    if registry and not meant:
        return
    raise origins.error(f"trainer.{name}", f"is {value!r}", meant or f"write {', '.join(choices)}")
