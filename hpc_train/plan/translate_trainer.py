"""`Trainer(gpus=4, accelerator="ddp")` of any Lightning as keys of the config. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Any

from hpc_train.config.meant_words.removed_arguments import (
    OLD_STRATEGIES,
    REMOVED_ARGUMENTS,
    RENAMED_ARGUMENTS,
    UNUSED_ARGUMENTS,
)
from hpc_train.config.trainer_args import ACCELERATORS, OWNED, full_precision
from hpc_train.config.words import did_you_mean
from hpc_train.plan.translation import Translation

_ALL = (-1, "-1", "auto", "all", True)
_NO_DEVICE = ("tpu", "hpu", "ipu", "mps")
_BARE = re.compile(r"[a-z_]+=\S")


def trainer_call(text: str) -> dict[str, ast.expr | str]:
    """The arguments of a Trainer by name; empty where the text is something else.

    `Trainer(gpus=4)`, `trainer = pl.Trainer(...)`, and the bare arguments with commas or spaces.
    """
    stripped = text.strip().rstrip(",")
    calls = [stripped] if "Trainer(" in stripped else [f"Trainer({stripped})"]
    for call in calls:
        try:
            statement = ast.parse(call).body[0]
        except (SyntaxError, ValueError, IndexError):
            continue
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Trainer"):
            found = {word.arg: word.value for word in value.keywords if word.arg}
            return {**found} if all(name.islower() for name in found) else {}
    words = stripped.split()
    if words and all(map(_BARE.match, words)):
        return {name: value for name, _, value in (word.partition("=") for word in words)}
    return {}


def read_trainer(
    arguments: dict[str, ast.expr | str], made: Translation, known: Collection[str]
) -> None:
    """Put every argument where it belongs today."""
    for name, given in arguments.items():
        value, text = _value(given), given if isinstance(given, str) else ast.unparse(given)
        word = f"{name}={text}"
        if name in ("gpus", "devices"):
            _devices(word, value, made)
        elif name == "num_nodes":
            made.number(word, "nodes", str(value))
        elif name == "num_processes":
            made.number(word, "ranks", str(value))
        elif name in ("strategy", "distributed_backend", "accelerator", "plugins"):
            _strategy(word, name, value, made)
        elif name == "precision":
            made.key(word, "trainer.precision", full_precision(value))
        else:
            _other(word, name, value, made, known)


def _value(given: ast.expr | str) -> Any:
    """The literal, or its text where it is none: `DDPPlugin(find_unused_parameters=False)`."""
    text = given if isinstance(given, str) else ast.unparse(given)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _devices(word: str, value: Any, made: Translation) -> None:
    if isinstance(value, str) and "," in value:
        value = [int(part) for part in value.split(",") if part.strip().isdigit()]
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    if value in (0, None):
        made.key(word, "trainer.accelerator", "cpu")
    elif value in _ALL and value != 1:
        made.say(word, "all GPUs of a node: write their number as --gpus")
    elif isinstance(value, (list, tuple)):
        made.devices = ",".join(map(str, value))
        made.say(word, f"--devices {made.devices} on one machine; on Slurm the cluster chooses")
    elif isinstance(value, int):
        made.number(word, "ranks", str(value))
    else:
        made.refuse(word, "is no number of GPUs: write --gpus N")


def _strategy(word: str, name: str, value: Any, made: Translation) -> None:
    if name == "accelerator" and value in ACCELERATORS:
        made.key(word, "trainer.accelerator", value)
        return
    if value in _NO_DEVICE:
        made.refuse(word, "hpc-train trains on GPUs and CPUs")
        return
    call = re.match(r"(?:\w+\.)*(DDP|FSDP|DeepSpeed)(?:Plugin|Strategy)\((.*)\)\Z", str(value))
    if call:
        value = {"DDP": "ddp", "FSDP": "fsdp", "DeepSpeed": "deepspeed"}[call[1]]
        unused = re.fullmatch(r"find_unused_parameters=(True|False)", call[2])
        if unused and value == "ddp":
            value = f"ddp_find_unused_parameters_{unused[1].lower()}"
        elif call[2]:
            made.refuse(word, "write trainer.strategy: {class_path: ..., init_args: {...}}")
            return
    if value is None:
        made.say(word, "left out: it is the default")
        return
    today, why = OLD_STRATEGIES.get(str(value), (str(value), ""))
    if not today or (name == "plugins" and not (why or call)) or "(" in today:
        made.refuse(word, why or "write trainer.strategy: {class_path: ..., init_args: {...}}")
        return
    if value == "ddp_cpu":
        made.key(word, "trainer.accelerator", "cpu")
    made.key(word, "trainer.strategy", today, why)


def _other(word: str, name: str, value: Any, made: Translation, known: Collection[str]) -> None:
    if name in RENAMED_ARGUMENTS:
        today, kind = RENAMED_ARGUMENTS[name]
        made.key(word, f"trainer.{today}", kind(value))
    elif name in OWNED:
        made.say(word, f"left out: {OWNED[name]}")
    elif name == "amp_backend" and value == "apex":
        made.refuse(word, UNUSED_ARGUMENTS[name])
    elif name in UNUSED_ARGUMENTS:
        made.say(word, f"left out: {UNUSED_ARGUMENTS[name]}")
    elif name in REMOVED_ARGUMENTS and value in (None, False):
        made.say(word, "left out: it is off")
    elif name in REMOVED_ARGUMENTS:
        made.refuse(word, REMOVED_ARGUMENTS[name])
    elif known and name not in known:
        meant = did_you_mean(name, known) or "see Lightning's Trainer"
        made.refuse(word, f"is no argument of Lightning's Trainer: {meant}")
    elif isinstance(value, str) and "(" in value:
        made.refuse(
            word, f"is an object: write trainer.{name}: {{class_path: ..., init_args: ...}}"
        )
    else:
        made.key(word, f"trainer.{name}", value)
