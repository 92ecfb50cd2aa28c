"""What the types of the schema cannot say: values that read well and cannot be meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from hpc_train.config.keys import MEMORY_KEYS, TEXT_KEYS
from hpc_train.config.origins import Origins
from hpc_train.config.read import Sexagesimal
from hpc_train.config.schema import Config
from hpc_train.config.secrets import looks_secret
from hpc_train.errors import ConfigError

__all__ = [
    "check_interpolations",
    "check_meaning",
    "check_setup",
    "check_texts",
    "explain",
    "read_switches",
]

_ENVIRONMENT = re.compile(r"\$\{\s*oc\.env\s*:\s*([A-Za-z_]\w*)")
_MAX_LEAD_S = 65535  # sbatch(1), --signal: "an integer between 0 and 65535"
_PLAIN = "write \\${{...}} where a plain ${{...}} is meant"
# OmegaConf 2.4's messages, what is wrong, and what to write.
_EXPLAINED = (
    (r"Value '(.*?)' .*to Integer", "is '{0}'", "write a whole number"),
    (r"Value '(.*?)' .*to Float", "is '{0}'", "write a number"),
    (r"Value '(.*)' is not a valid bool", "is '{0}'", "write true or false"),
    (r"Invalid value '(.*)', expected one of \[(.*)\]", "is '{0}'", "write one of {1}"),
    (r"not a ListConfig", "is no list", "write it in brackets: [...]"),
    (
        r"Cannot assign (\w+) to (?:Dict|dict)",
        "is no mapping",
        "write key: value pairs below it",
    ),
    (r"Missing mandatory value", "is ???, to be given", "write {key}=... on the command line"),
    (r"Environment variable '(.*)' not found", "needs the variable {0}, not set", "set it"),
    (r"Interpolation key '(.*)' not found", "names the key {0}, which is not there", _PLAIN),
    (
        r"(no viable alternative|token recognition|mismatched).*",
        "has a broken ${{...}}",
        _PLAIN,
    ),
    (r"(.*)", "cannot be meant: {0}", _PLAIN),
)


def read_switches(values: MutableMapping[str, Any]) -> None:
    """Read `preflight: off` as its mode, and a bare off, which is false in YAML 1.1, as the word.

    Args:
        values: Of the whole config; changed in place.
    """
    preflight = values.get("preflight")
    if preflight is False or isinstance(preflight, str):
        preflight = values["preflight"] = {"mode": preflight}
    if isinstance(preflight, Mapping) and preflight.get("mode") is False:
        values["preflight"] = {**preflight, "mode": "off"}


def check_texts(values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse the scalars that YAML turned into something else than was written.

    Raises:
        ConfigError: for `time: 1:30:00` (the integer 5400 in YAML 1.1) and `time: 90`; for a
            memory without its unit; for `qos: no` and other texts that became true or false.
    """
    slurm = values.get("slurm") or {}
    _check_time(slurm.get("time"), origins)
    for key in MEMORY_KEYS:
        size = slurm.get(key)
        if isinstance(size, (int, float)) and not isinstance(size, bool) and size != 0:
            raise origins.error(
                f"slurm.{key}", f"is {size} without a unit", f'write slurm.{key}: "{size}G", or M'
            )
    for key, value in _text_values(values):
        if isinstance(value, bool):
            raise origins.error(
                key,
                f"is {str(value).lower()} in YAML, where yes, no, on and off are true and false",
                "put the word in quotes",
            )
    for key, value in _walk(values, ""):
        if isinstance(value, Sexagesimal):
            raise origins.error(
                key,
                f"is {value.text}, which YAML reads as the number {int(value)}",
                f'put it in quotes: "{value.text}"',
            )


def check_setup(setup: Any, origins: Origins) -> None:
    """Refuse anything but a list of lines under `env.setup`."""
    if setup is None:
        return
    if not isinstance(setup, list) or not all(isinstance(line, str) for line in setup):
        raise origins.error("env.setup", "is no list of texts", "write lines of shell: [ulimit -l]")


def check_interpolations(values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse `${oc.env:NAME}` of a secret: its value would be written into the run directory."""
    for key, value in _walk(values, ""):
        if not isinstance(value, str):
            continue
        for name in _ENVIRONMENT.findall(value):
            if looks_secret(name):
                raise origins.error(
                    key,
                    f"takes the value of {name}, which looks like a secret, and would write it",
                    f"list it in env.passthrough: [{name}], and read it in your code",
                )


def check_meaning(config: Config, origins: Origins) -> None:
    """Refuse values of the right type that cannot be meant.

    Raises:
        ConfigError: with file, line and key.
    """
    if not config.name.strip() or not config.name.isprintable():
        raise origins.error("name", f"is {config.name!r}", "write one line of printable text")
    for key, value, least, hint in _bounds(config):
        if value is not None and not value >= least:  # so that .nan is refused as well
            raise origins.error(key, f"is {value}", hint or f"write {least} or more")
    if config.slurm.signal_lead_s > _MAX_LEAD_S:
        lead = config.slurm.signal_lead_s
        raise origins.error("slurm.signal_lead_s", f"is {lead}", f"write {_MAX_LEAD_S} or less")
    for name in config.env.variables:
        if looks_secret(name):
            raise origins.error(
                f"env.variables.{name}",
                "looks like a secret, and would be written into the run directory",
                f"list it in env.passthrough: [{name}], and set it in the shell that submits",
            )
    for index, logger in enumerate(config.loggers):
        if isinstance(logger, str) and logger not in ("csv", "tensorboard"):
            raise origins.error(
                f"loggers.{index}",
                f"is {logger!r}",
                "write csv, tensorboard, or {class_path: ..., init_args: ...}",
            )


def explain(key: str, message: str, origins: Origins) -> ConfigError:
    """One of OmegaConf's errors in our words.

    Args:
        key: Dotted.
        message: The first line of what OmegaConf says.
        origins: For file and line.
    """
    match, complaint, hint = next(
        (match, complaint, hint)
        for pattern, complaint, hint in _EXPLAINED
        if (match := re.search(pattern, message))
    )
    groups = match.groups()
    return origins.error(key, complaint.format(*groups), hint.format(*groups, key=key))


def _check_time(time: Any, origins: Origins) -> None:
    if isinstance(time, Sexagesimal):
        raise origins.error(
            "slurm.time",
            f"is {time.text} without quotes, which YAML reads as the number {int(time)},"
            f" and Slurm would take as {int(time)} minutes",
            f'write slurm.time: "{time.text}"',
        )
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        raise origins.error(
            "slurm.time",
            f"is the bare number {time}, and may mean minutes, seconds or an unquoted H:M:S",
            f'write it in quotes: "{time}" is minutes to Slurm, "1:30:00" an hour and a half',
        )


def _text_values(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in sorted(TEXT_KEYS):
        section, _, name = key.rpartition(".")
        holder = values.get(section) if section else values
        if isinstance(holder, Mapping) and name in holder:
            yield key, holder[name]
    env = values.get("env")
    variables = env.get("variables") if isinstance(env, Mapping) else None
    if isinstance(variables, Mapping):
        for name, value in variables.items():
            yield f"env.variables.{name}", value


def _bounds(config: Config) -> Iterator[tuple[str, float | None, float, str]]:
    slurm, save, watch, check = (
        config.slurm,
        config.checkpoint,
        config.watchdog,
        config.preflight,
    )
    cpu = "without GPUs write trainer.accelerator: cpu, and the number of ranks a node here"
    yield "slurm.nodes", slurm.nodes, 1, "a run needs a node: write 1 or more"
    yield "slurm.gpus_per_node", slurm.gpus_per_node, 1, cpu
    yield "slurm.spares", slurm.spares, 0, ""
    yield "slurm.cpus_per_gpu", slurm.cpus_per_gpu, 1, ""
    yield "slurm.signal_lead_s", slurm.signal_lead_s, 1, ""
    yield "global_batch_size", config.global_batch_size, 1, ""
    yield "micro_batch_size", config.micro_batch_size, 1, ""
    yield "seed", config.seed, 0, ""
    yield "checkpoint.every_n_steps", save.every_n_steps, 1, "write 1 or more, or null for never"
    yield (
        "checkpoint.keep_last",
        save.keep_last,
        1,
        "the last checkpoint is what a run resumes from",
    )
    yield "checkpoint.keep_every_n_steps", save.keep_every_n_steps, 1, ""
    yield "requeue.max_attempts", config.requeue.max_attempts, 1, ""
    yield "requeue.budget", config.requeue.budget, 0, ""
    yield "watchdog.heartbeat_s", watch.heartbeat_s, 0.01, ""
    off = "it needs a second or more: write preflight: off to leave it out"
    yield "preflight.budget_s", check.budget_s, 1, off


def _walk(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _walk(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{key}.{index}")
    else:
        yield key, value
