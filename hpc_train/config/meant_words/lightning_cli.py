"""A config that was written for LightningCLI: what is left out of it, and all that is to change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from hpc_train.config.keys import FIELDS, REQUIRED_KEYS
from hpc_train.config.meant_words.other_seeds import seed_to_write
from hpc_train.config.meant_words.owned_arguments import shape_hint
from hpc_train.config.meant_words.removed_arguments import REMOVED_ARGUMENTS
from hpc_train.config.meant_words.unknown_key import unknown_key
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.schema import SlurmConfig
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, TARGET, is_object
from hpc_train.config.trainer_args import OWNED
from hpc_train.errors import ConfigError

# Values that LightningCLI writes for what nobody chose; source: the defaults of Lightning's Trainer
# and `--print_config`. hpc-train decides these itself.
_UNCHOSEN: Mapping[str, tuple[Any, ...]] = {
    "devices": ("auto",),
    "num_nodes": (1,),
    "accumulate_grad_batches": (1,),
    "use_distributed_sampler": (True,),
    "barebones": (False,),
    "enable_checkpointing": (None, True),
    **dict.fromkeys(("default_root_dir", "plugins", "deterministic", "benchmark"), (None,)),
    "logger": (None,),
}
_TOP = ("ckpt_path", "weights_only", "optimizer", "lr_scheduler", "seed_everything")
_SHAPE = ("trainer.devices", "trainer.num_nodes")
_SIZE = "batch_size"  # of each rank
MISSING = " (missing)"
_TARGETS = {TARGET, CLASS_PATH}  # a class in the place of the arguments, as Hydra has it
_MOST_SCRIPTS = 50  # of a folder
_COMMANDS = ("fit", "validate", "test", "predict")


def leave_out_unchosen(values: MutableMapping[str, Any], origins: Origins) -> list[str]:
    """Take out what changes nothing, in place: of files, since what is typed was chosen.

    Returns:
        A line that names all of it, or nothing.
    """
    typed = origins.typed()
    unset = [it for it in _TOP if it in values and (values[it] is None or values[it] is False)]
    left_out = [_taken(values, name, "") for name in unset if name not in typed]
    trainer = values.get("trainer")
    if isinstance(trainer, dict):
        unset = [it for it in trainer if _is_unchosen(it, trainer[it])]
        unset += ["devices"] if _is_the_one_device(trainer, values) else []
        unset = [it for it in unset if f"trainer.{it}" not in typed]
        left_out += [_taken(trainer, name, "trainer.") for name in unset]
    if not left_out:
        return []
    place = origins.prefix(left_out[0].partition(":")[0])
    decides = "; slurm.nodes and slurm.gpus_per_node are the shape"
    decides = decides if any(it.startswith(_SHAPE) for it in left_out) else ""
    return [f"{place}left out, since it changes nothing: {', '.join(left_out)}{decides}"]


def _is_unchosen(name: str, value: object) -> bool:
    return any(value == it and type(value) is type(it) for it in _UNCHOSEN.get(name, ()))


def _is_the_one_device(trainer: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether a config of ours says `devices: 1`, and a node has one rank."""
    slurm = values.get("slurm") or {}
    key, default = "gpus_per_node", SlurmConfig().gpus_per_node
    ranks = slurm.get(key, default) if isinstance(slurm, Mapping) else 0
    asked = trainer.get("devices")
    is_one = asked == ranks == 1 and type(asked) is int
    return is_one and "global_batch_size" in values and not _TARGETS & trainer.keys()


def _taken(holder: MutableMapping[str, Any], name: str, prefix: str) -> str:
    value = holder.pop(name)
    return f"{prefix}{name}: {'null' if value is None else str(value).lower()}"


def check_lightning_cli(values: Mapping[str, Any], origins: Origins, path: Path) -> None:
    """Refuse a whole config of LightningCLI at once, with each key that is to be another.

    Raises:
        ConfigError: with all of them in one line.
    """
    below = next((it for it in _COMMANDS if isinstance(values.get(it), Mapping)), "")
    inner: Mapping[str, Any] = values[below] if below else values
    trainer = inner.get("trainer")
    trainer = trainer if isinstance(trainer, Mapping) else {}
    owned = [it for it in OWNED if it in trainer and not _is_unchosen(it, trainer[it])]
    if "global_batch_size" in values or not (below or owned or "seed_everything" in values):
        return
    if not any(isinstance(inner.get(it), Mapping) for it in ("model", "trainer")):
        return
    changes = dict(key_changes({**values, **inner}, origins, below))
    shape = {it: shape_hint(it, trainer[it], typed=False) for it in owned}
    told = {**REMOVED_ARGUMENTS, **{it: shape[it] or OWNED[it] for it in owned}}
    changes |= {
        f"trainer.{it}": of_project(told[it]).removeprefix("write ") for it in trainer if it in told
    }
    what = f"{path}: this is a config of LightningCLI, and not so here: {', '.join(changes)}"
    script = script_beside(path, "LightningCLI(") or Path("train.py")
    # Behind the command, Lightning takes the keys of that command alone.
    words = f"--config {path} {below}" if below else f"fit --config {path}"
    as_it_is = f"or as it is, with its script: hpc-train submit {script} -- {words}"
    raise ConfigError(what, "; ".join([*as_fixes(changes), as_it_is]))


def as_fixes(changes: Mapping[str, str]) -> list[str]:
    """The keys with what is to be written for them; of one that is missing that alone."""
    together: dict[str, list[str]] = {}
    for name, hint in changes.items():
        together.setdefault(hint, []).extend([] if name.endswith(MISSING) else [name])
    return [f"{', '.join(names)} -> {it}" if names else it for it, names in together.items()]


def script_beside(path: Path, word: str) -> Path | None:
    """The one script that may belong to a config of another tool: by a word of its text."""
    found: dict[Path, Path] = {}
    for folder in (path.parent, path.parent.parent, Path.cwd(), Path.cwd() / "src"):
        for file in sorted(folder.glob("*.py"))[:_MOST_SCRIPTS]:
            if word in file.read_text("utf-8", "replace"):
                found.setdefault(file.resolve(), Path(os.path.relpath(file)))
    return next(iter(found.values())) if len(found) == 1 else None


def key_changes(
    values: Mapping[str, Any], origins: Origins, below: str
) -> Iterator[tuple[str, str]]:
    """Each key that is to be another, and what to write."""
    if below:
        yield below, "its keys, one step to the left"
    for name, value in values.items():
        if name == "seed_everything" and value is not None:
            yield name, seed_to_write(name, values, origins).removeprefix("write ")
        elif name in _COMMANDS and isinstance(value, Mapping):
            continue  # the keys of another command
        elif name not in FIELDS and not (value is None and name in _TOP):
            hint = unknown_key(name, FIELDS, origins, values).hint
            yield name, hint.removeprefix("write ")
    for name, example in REQUIRED_KEYS.items():
        value = values.get(name)
        if value is None:
            size = _samples_a_step(values) if name == "global_batch_size" else ""
            yield f"{name}{MISSING}", size or example
        elif name in ("model", "data") and not is_object(value):
            yield name, "{class_path: MODULE.CLASS, init_args: {...}}, with what is there now"


def _samples_a_step(values: Mapping[str, Any]) -> str:
    """`global_batch_size: 64 (...)`, of what the file itself says; empty where it says no size."""
    data, trainer = values.get("data"), values.get("trainer")
    data = data if isinstance(data, Mapping) else {}
    trainer = trainer if isinstance(trainer, Mapping) else {}
    given = data.get(INIT_ARGS)
    is_inner = isinstance(given, Mapping)
    size = given.get(_SIZE) if isinstance(given, Mapping) else data.get(_SIZE)
    key = f"data.{INIT_ARGS}.{_SIZE}" if is_inner else f"data.{_SIZE}"
    if type(size) is not int or size < 1:
        return ""
    of, total = [f"{key} {size}"], size
    for name in ("devices", "num_nodes", "accumulate_grad_batches"):
        count = _count(trainer.get(name, None if name == "devices" else 1))
        if count is None and not (name == "devices" and trainer.get("accelerator") == "cpu"):
            of_each = f"{key} of the file, for one rank: with several times their number"
            return f"global_batch_size: {size} ({of_each})"
        total *= count or 1
        of += [f"trainer.{name} {count}"] if (count or 1) > 1 else []
    of = [f"{key} of the file"] if not of[1:] else of
    return f"global_batch_size: {total} ({' x '.join(of)}, over all ranks)"


def _count(value: object) -> int | None:
    """How many a number, or a list, of devices is; None where only the machine tells."""
    if isinstance(value, str):
        numbers = [it for it in value.split(",") if it.strip()]
        if not all(it.strip().isdecimal() for it in numbers) or not numbers:
            return None
        return int(numbers[0]) if len(numbers) == 1 and "," not in value else len(numbers)
    if isinstance(value, list):
        return len(value) or None
    return value if type(value) is int and value > 0 else None
