"""The command that submits what a run was submitted from once more, its options with it."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from hpc_train.backends.moved_run import config_file
from hpc_train.codec import read_object
from hpc_train.config.submission_words import typed_anew
from hpc_train.errors import ConfigError
from hpc_train.runs.events import read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import FOREGROUND


def submit_again(run: RunDir, *changed: str) -> str:
    """`hpc-train submit c8.yaml --gpus 2 seed=1`, as it is typed here; `run` where that was.

    Args:
        run: A rendered script's has no config, which is then CFG.
        changed: Values in place of those of the submission, KEY=VALUE.
    """
    kept = read_object(run.environment).get("config") or {}
    file = config_file(run)
    # Of a run that an earlier version has made nobody knows the words.
    words = [str(word) for word in kept.get("words") or ([file] if file else ["CFG"])]
    if file and os.path.abspath(words[0]) != file:  # noqa: PTH100 - `..` of a link stays
        words[0] = as_typed_here(file)
    begun = next(iter(read_events(run.events)), None)
    is_here = begun is not None and begun.get("backend") == FOREGROUND
    command = "launch" if "--hosts" in words else "run" if is_here else "submit"
    for value in changed:
        words = typed_anew(words, value)
    return shlex.join(["hpc-train", command, *words])


def of_its_script(error: ConfigError, run: RunDir) -> ConfigError:
    """An error whose fix submits the script with an argument: with the run's own options."""
    begun = submit_again(run).partition(" -- ")[0]
    hint = re.sub(r"hpc-train submit \S+(?= -- )", lambda _: begun, error.hint)
    return ConfigError(error.message, hint) if hint != error.hint else error


def can_submit_again(run: RunDir) -> bool:
    """Whether that command trains what this run does, and no whole sweep; its file is there."""
    kept = read_object(run.environment).get("config") or {}
    plan = read_object(run.plan)
    is_whole = plan.get("verb", "fit") == "fit" and "--sweep" not in (kept.get("words") or ())
    return is_whole and Path(config_file(run)).is_file()


def has_environment(run: RunDir) -> bool:
    """Whether it is a training whose `env` does anything in the job before Python begins."""
    plan = read_object(run.plan)
    shell = plan.get("shell") or {}
    return plan.get("verb") == "fit" and any(
        shell.get(name) for name in ("setup", "variables", "passthrough")
    )


def is_of_script(run: RunDir) -> bool:
    """Whether it trains by a script, and not by a model and data of a config."""
    return bool(read_object(run.plan).get("script"))


def as_typed_here(file: str) -> str:
    """A file as it is named in this folder."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
