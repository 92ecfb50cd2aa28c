"""Lightning's own Trainer arguments, held against the installed Trainer without importing it."""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.gathered import tell_together
from hpc_train.config.meant_words.owned_arguments import owned_hint
from hpc_train.config.meant_words.removed_arguments import (
    OLD_STRATEGIES,
)
from hpc_train.config.meant_words.trainer_words import unknown_argument
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.schema import CheckpointConfig, Config
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_object
from hpc_train.config.trainer_times import TIME_FORM, check_times
from hpc_train.config.words import did_you_mean, meant_number

# Arguments that exist, and that hpc-train gives itself: what to write instead.
OWNED: Mapping[str, str] = {
    "num_nodes": "write slurm.nodes, or --nodes",
    "devices": "write how many a node has: slurm.gpus_per_node: N, or --gpus N",
    "accumulate_grad_batches": "it follows from global_batch_size and micro_batch_size",
    "default_root_dir": "everything goes into the run directory; write runs_dir to move it",
    "logger": "write loggers: [csv, tensorboard]",
    "enable_checkpointing": "a run always saves, by checkpoint.every_n_minutes"
    f" ({CheckpointConfig().every_n_minutes:g}) or checkpoint.every_n_steps, and keeps the newest"
    f" {CheckpointConfig().keep_last} (checkpoint.keep_last)",
    "use_distributed_sampler": "samples are dealt to ranks by global_batch_size",
    "deterministic": "write reproducible: true",
    "benchmark": "write reproducible: false",
    "plugins": "leave trainer.plugins out: the cluster environment and going on in another job"
    " (auto_requeue) are hpc-train's; precision and strategy have arguments of their own",
    "barebones": "it would switch off checkpoints and logs; write single arguments",
}
NEED_A_LOGGER = ("LearningRateMonitor", "DeviceStatsMonitor")  # callbacks of Lightning's
ACCELERATORS = ("auto", "cpu", "gpu", "cuda")
_STARTERS = ("spawn", "fork", "notebook")  # in the names of strategies that start ranks themselves
STRATEGIES = (
    *("auto", "ddp", "ddp_find_unused_parameters_true", "ddp_find_unused_parameters_false"),
    *("ddp_static_graph", "fsdp", "fsdp_cpu_offload", "single_device", "deepspeed"),
    *("deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3", "deepspeed_stage_1_offload"),
    *("deepspeed_stage_2_offload", "deepspeed_stage_3_offload", "deepspeed_stage_3_offload_nvme"),
)
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
}
# Batches: a whole number counts them, another number is a share of them.
_SHARES = (
    *("limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches"),
    *("overfit_batches", "val_check_interval"),
)
# Lightning itself refuses less only once the job runs, or loops without end; -1 is no limit to it.
_LEAST: Mapping[str, float] = {
    **dict.fromkeys(_SHARES, 0),
    "val_check_interval": 0.001,
    **dict.fromkeys(("max_epochs", "max_steps", "num_sanity_val_steps"), -1),
    **dict.fromkeys(("min_epochs", "min_steps", "log_every_n_steps", "gradient_clip_val"), 0),
    **dict.fromkeys(("fast_dev_run", "reload_dataloaders_every_n_epochs"), 0),
    "check_val_every_n_epoch": 1,
}
# 0 of them is a training without a step, which Lightning ends as a success.
_NOTHING = {
    "max_epochs": "write 1 or more, or -1 for no end",
    "max_steps": "write 1 or more, or -1 for no end",
    "limit_train_batches": "write 1 or more, or a share above 0",
}
_CLIPPING = ("norm", "value")
_PROFILERS = ("simple", "advanced", "pytorch", "xla")
_FIX_OF_TYPE = {  # which a type alone does not tell
    "max_time": TIME_FORM,
    "profiler": f"write {', '.join(_PROFILERS)}, or null",
}
_SHORT_PRECISIONS = {"64": "64-true", "32": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}
# As torch, Hugging Face and other launchers call them.
_OTHER_PRECISIONS = {
    **dict.fromkeys(("fp16", "float16", "half", "amp", "mixed"), "16-mixed"),
    **dict.fromkeys(("fp32", "float32", "full", "single"), "32-true"),
    **dict.fromkeys(("bfloat16", "bf16-amp"), "bf16-mixed"),
}
# fp16 has no autocast on CPUs that is worth having, and Lightning makes it bf16; FP8 is of GPUs.
NOT_ON_A_CPU = ("16-mixed", "16-true", "transformer-engine")
ON_GPUS = ("fsdp", "deepspeed")  # how the names of strategies begin that Lightning has for GPUs
_ZERO = ("zero", "zero_", "zero-", "deepspeed_zero", "deepspeed_zero_", "deepspeed_")
# As torch and Lightning's classes call them; ModelParallelStrategy has no name in the registry.
_OTHER_STRATEGIES = {
    **dict.fromkeys(("dataparallel", "distributeddataparallel", "ddpstrategy"), "ddp"),
    **dict.fromkeys(("fsdpstrategy", "fullyshardeddataparallel", "fully_shard"), "fsdp"),
    "deepspeedstrategy": "deepspeed",
    **{f"{way}{n}": f"deepspeed_stage_{n}" for n in (1, 2, 3) for way in _ZERO},
    **dict.fromkeys(
        ("modelparallel", "model_parallel", "modelparallelstrategy"),
        "{class_path: pytorch_lightning.strategies.ModelParallelStrategy, init_args: {...}}",
    ),
}
_PRECISIONS = (
    *_SHORT_PRECISIONS,
    *("64-true", "32-true", "16-true", "bf16-true", "16-mixed"),
    *("bf16-mixed", "transformer-engine", "transformer-engine-float16"),
)


def check_trainer(
    arguments: Mapping[str, Any], origins: Origins, *, search_path: Sequence[str], config: Config
) -> None:
    """Refuse what the Trainer does not take, and what follows from elsewhere.

    Args:
        arguments: The section `trainer`.
        origins: For the file and line of an error.
        search_path: As `sys.path`.
        config: The whole of it, for its batch and shape.

    Raises:
        ConfigError: with "did you mean", or the key to write instead.
    """
    known = trainer_parameters(search_path)
    for name in arguments:
        key = f"trainer.{name}"
        if name in OWNED:
            hint = owned_hint(name, arguments[name], OWNED[name], config, origins)
            raise origins.error(key, "is set by hpc-train", hint)
        if known and name not in known:
            raise unknown_argument(name, arguments, known, OWNED, origins, config)
        if known:
            _check_type(key, arguments[name], _members(known[name]), origins)
    _check_values(arguments, origins)
    _check_choice(arguments, "accelerator", ACCELERATORS, origins)
    _check_precision(arguments, origins)
    strategy = arguments.get("strategy")
    if isinstance(strategy, str) and strategy in OLD_STRATEGIES:
        today, why = OLD_STRATEGIES[strategy]
        hint = f"write {today}: {why}" if today else why
        raise origins.error("trainer.strategy", f"is {strategy}, which is not there any more", hint)
    if isinstance(strategy, str) and starts_processes(strategy):
        raise origins.error(
            "trainer.strategy",
            f"is {strategy}, which starts processes of its own",
            "write ddp: hpc-train starts the ranks",
        )
    if isinstance(strategy, str) and (named := _OTHER_STRATEGIES.get(strategy.lower())):
        raise origins.error("trainer.strategy", f"is {strategy!r}", f"write {of_project(named)}")
    _check_choice(arguments, "strategy", STRATEGIES, origins, registry=True)
    _check_place_of_strategy(arguments, origins)


def _check_place_of_strategy(arguments: Mapping[str, Any], origins: Origins) -> None:
    """Refuse one that Lightning has for GPUs alone, in each of its forms, where a CPU is asked for.

    A class of the user's own that derives from one may do without.
    """
    value = arguments.get("strategy")
    if isinstance(value, Mapping):
        value = value.get("name") or value.get(CLASS_PATH) or value.get(TARGET)
    word = str(value)
    if word.startswith(("pytorch_lightning.", "lightning.")):
        word = word.rpartition(".")[2].removesuffix("Strategy").lower()
    if arguments.get("accelerator") == "cpu" and word.lower().startswith(ON_GPUS):
        message = f"is {value}, which needs GPUs, and trainer.accelerator is cpu"
        raise origins.error("trainer.strategy", message, "write ddp, or trainer.accelerator: gpu")


def _check_precision(arguments: Mapping[str, Any], origins: Origins) -> None:
    """Refuse a word that is no precision, and one that a CPU, where that is asked for, has not."""
    value = arguments.get("precision")
    on_cpu = arguments.get("accelerator") == "cpu"
    if isinstance(value, str) and value in _OTHER_PRECISIONS:
        meant = _OTHER_PRECISIONS[value]
        hint = f"write {'bf16-mixed' if on_cpu and meant in NOT_ON_A_CPU else meant}"
        raise origins.error("trainer.precision", f"is {value!r}", hint)
    _check_choice(arguments, "precision", _PRECISIONS, origins)
    if on_cpu and full_precision(value).startswith(NOT_ON_A_CPU):
        message = f"is {value}, which does not work on a CPU (trainer.accelerator)"
        raise origins.error("trainer.precision", message, "write bf16-mixed or 32-true")


def _check_values(arguments: Mapping[str, Any], origins: Origins) -> None:
    """Refuse values of the right type that Lightning cannot work with."""
    if isinstance(arguments.get("callbacks"), Mapping):
        from hpc_train.config.whole_forms import refuse_names  # on the way to an error

        refuse_names("trainer.callbacks", arguments["callbacks"], origins)
    tell_together(
        origins.error(f"trainer.callbacks.{index}", f"is {it!r}", _as_object(it))
        for index, it in enumerate(_listed(arguments.get("callbacks")))
        if not is_object(it)
    )
    for name, least in _LEAST.items():
        value = arguments.get(name)
        is_share = isinstance(value, float) and name in _SHARES
        if isinstance(value, (int, float)) and not least <= value <= (1 if is_share else math.inf):
            fix = f"write {least} or more"
            fix += ": a share is at most 1.0, a number of batches whole" if is_share else ""
            raise origins.error(f"trainer.{name}", f"is {value}", fix)
    for name, fix in _NOTHING.items():
        if arguments.get(name) == 0 and not isinstance(arguments[name], bool):
            said = f"is {arguments[name]}: nothing would be trained"
            raise origins.error(f"trainer.{name}", said, fix)
    _check_order(arguments, origins)
    _check_choice(arguments, "profiler", _PROFILERS, origins)
    _check_choice(arguments, "gradient_clip_algorithm", _CLIPPING, origins)
    check_times(arguments, origins)


def _check_order(arguments: Mapping[str, Any], origins: Origins) -> None:
    """Refuse a minimum above its maximum: the maximum would win without a word."""
    for what in ("epochs", "steps"):
        least, most = arguments.get(f"min_{what}"), arguments.get(f"max_{what}")
        if isinstance(least, int) and isinstance(most, int) and -1 < most < least:
            message = f"is {least}, more than trainer.max_{what}, {most}"
            fix = f"write {most} or less, or a larger trainer.max_{what}"
            raise origins.error(f"trainer.min_{what}", message, fix)


def _as_object(callback: object, example: str = "EarlyStopping") -> str:
    """A class that was named alone, or as the key of its arguments, as it is written."""
    from hpc_train.config.python_text.meant_class import meant_class, of_an_alias, plain_path

    if isinstance(callback, Mapping) and set(callback) == {INIT_ARGS}:
        return "indent init_args below the class_path above it, without a dash of its own"
    if isinstance(callback, Mapping) and callback:
        name, below = next(iter(callback.items()))
        if len(callback) > 1 or isinstance(below, (str, Mapping)):
            from hpc_train.config.whole_forms import whole_form

            spec = {"name": name, INIT_ARGS: below} if isinstance(below, Mapping) else callback
            return f"write {whole_form(spec if len(callback) == 1 else callback, 'Callback')}"
        callback = name
    path = plain_path(callback) if isinstance(callback, str) else ""
    of_alias = of_an_alias(path, [str(Path.cwd()), *sys.path]) if "." in path else ""
    near = meant_class(path) if path and "." not in path else of_alias or path
    found = re.search(r"[\w.]+\.\w+", near)
    from hpc_train.config.meant_words.own_arguments import form_of_class

    it = found[0] if found else of_project(f"pytorch_lightning.callbacks.{example}")
    return f"write {form_of_class(it)}"


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def starts_processes(strategy: str) -> bool:
    """Whether Lightning's strategy of this name starts ranks by itself; ours are there already."""
    return any(word in strategy for word in _STARTERS)


def full_precision(value: str | int | None) -> str:
    """Lightning's long name of a precision; 32-true where none is given."""
    return _SHORT_PRECISIONS.get(str(value), str(value or "32-true"))


def trainer_parameters(search_path: Sequence[str]) -> dict[str, ast.expr | None]:
    """Arguments of the Trainer that is installed, with their types; empty where none is found.

    Importing Lightning takes five seconds; its signature is read from the text of the file.
    """
    module, rest = find_module("pytorch_lightning.trainer.trainer", search_path)
    if module is None:
        return {}
    # trainer/ binds its own name `trainer`; PathFinder finds the file all the same.
    file = module.file if not rest else None
    return _signature(file) if file else {}


def _signature(file: Path) -> dict[str, ast.expr | None]:
    text = file.read_text(encoding="utf-8")
    start = text.find("    def __init__(", text.find("\nclass Trainer"))
    end = text.find(") -> None:", start)
    if start < 0 or end < 0:
        return {}
    header = text[start:end].strip() + "): pass"
    function = ast.parse(header).body[0]
    if not isinstance(function, ast.FunctionDef):
        return {}
    arguments = (*function.args.args[1:], *function.args.kwonlyargs)
    return {argument.arg: argument.annotation for argument in arguments}


def _members(annotation: ast.expr | None) -> set[str]:
    """The types that an annotation allows, as they are written; `Optional` allows `None`."""
    if isinstance(annotation, ast.BinOp):
        return _members(annotation.left) | _members(annotation.right)
    if isinstance(annotation, ast.Subscript):
        outer, inner = ast.unparse(annotation.value), annotation.slice
        if outer == "Optional":
            return {"None"} | _members(inner)
        if outer == "Union" and isinstance(inner, ast.Tuple):
            return set().union(*map(_members, inner.elts))
    return {ast.unparse(annotation)} if annotation is not None else {"_"}


def _check_type(key: str, value: Any, allowed: set[str], origins: Origins) -> None:
    """Refuse a value of another type than all that the Trainer takes.

    An alias of Lightning's own (`_PRECISION_INPUT`) is not looked into.
    """
    if value in ("None", "null"):
        said = f"is the text {value!r} (YAML's None is null)"
        raise origins.error(key, said, "write null")
    if any(name.startswith("_") for name in allowed):
        return
    plain = [name for name in _TYPES if name in allowed]
    if isinstance(value, (Mapping, list)):
        fits = bool(allowed.difference(_TYPES, {"None"}))
    elif isinstance(value, bool) or value is None:
        fits = type(value).__name__.replace("NoneType", "None") in allowed
    elif isinstance(value, int):
        is_switch = "bool" in allowed and value in (0, 1)
        fits = is_switch or not allowed.isdisjoint(("int", "float"))
    else:
        fits = type(value).__name__ in allowed
    if fits:
        return
    words = [_TYPES[name] for name in plain] or ["{class_path: ..., init_args: ...}"]
    words += ["null"] if "None" in allowed else []
    takes = " or ".join([*plain, *sorted(allowed.difference(_TYPES, {"None"}))])
    said = f"is {value!r}, and Lightning's Trainer takes {takes}"
    fix = f"write {', or '.join(words)}"
    fix = _FIX_OF_TYPE.get(key.removeprefix("trainer."), fix)
    fix += _as_a_sweep(key, value, fix, origins)
    if key == "trainer.callbacks":
        fix = _as_object(value, "Timer").replace("write ", "write [") + "]"
    if meant := meant_number(value, " ".join(plain)):
        fix = f"write {'a number' if 'float' in plain else words[0]}{meant}"
    if key.removeprefix("trainer.") in _SHARES and re.fullmatch(r"1\d\d+(\.\d+)?\s*%", str(value)):
        fix = "write 1.0, which is all of them: a share is at most 1.0, a number of batches whole"
    raise origins.error(key, said, fix)


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


def _as_a_sweep(key: str, value: Any, fix: str, origins: Origins) -> str:
    """What trains each of some numbers, where one is wanted."""
    from hpc_train.config.sweeps.meant_sweep import several_values  # on the way to an error

    if not fix.startswith(("write a number", "write a whole number")):
        return ""
    return several_values(key, value, is_typed=origins.is_typed(key))
