"""What to type for a command that there is not, with the words that were typed behind it."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Sequence

from hpc_train.config.scripts.script_words import STARTERS

# Commands of others, by what they are here.
_COMMANDS = {
    "submit --dry-run CFG": ("check", "lint", "verify", "plan", "dry-run", "dryrun", "dry_run"),
    "logs RUN -f": ("watch", "follow"),
    "rm RUN": ("delete", "remove", "clean", "prune", "purge"),
    "submit CFG --sweep KEY=VALUES": ("sweep", "array", "map_array"),
    "submit CFG": ("sbatch", "train", "start", "fit"),
    "run CFG": ("exec", *STARTERS),
    "list": ("ls", "ps", "squeue", "queue", "sacct", "jobs"),
    "cancel RUN": ("scancel", "stop", "kill", "abort"),
    "resume RUN": ("requeue", "restart", "rerun", "continue", "retry"),
    "status RUN": ("show", "info", "describe"),
    "logs RUN": ("tail", "cat", "log", "attach"),
    "test RUN": ("eval", "evaluate", "score"),
    "predict RUN": ("infer", "inference", "forward", "apply"),
    "--version": ("version", "about"),
    "report RUN": ("stats", "seff", "jobstats"),
    "checkpoints RUN --best": ("best", "weights", "models"),
    "checkpoints RUN": ("ckpt", "ckpts"),
}
_WITHOUT_MORE = ("status RUN", "logs RUN")  # which show the newest run
# Other programs, which are typed by themselves.
_BOARDS = ("tensorboard", "tb")
# What is done with the model itself, in Python.
_OF_THE_MODEL = (
    "export",
    "onnx",
    "to_onnx",
    "torchscript",
    "serve",
    "deploy",
    "convert",
    "quantize",
)
_FILES = (".yaml", ".yml", ".py")
_BY_OPTION = ("--config", "-c")  # as Lightning's command line has the file
_STARTS = ("submit CFG", "run CFG")


def meant_command(words: Sequence[str], commands: Collection[str]) -> tuple[str, str]:
    """A command that may be meant, and the whole line to type; either may be empty.

    Args:
        words: As they were typed: the first is no command.
        commands: Those that there are.
    """
    name, *behind = words
    if name.endswith(_FILES):
        return f"submit {name}", _starts(name, behind)
    if name == "help":
        known = behind[:1] if behind and behind[0] in commands else []
        asked = " ".join([*known, "--help"])
        return asked, f"hpc-train {asked}"
    if name in _OF_THE_MODEL:
        run = behind[0] if behind and not behind[0].startswith("-") else "RUN"
        shown = f"hpc-train checkpoints {shlex.quote(run)} prints the line that loads the model"
        return "", f"{shown} in Python; to_onnx() of it, or torch.export, writes another form"
    if name in _BOARDS:
        return "", _board(behind)
    meant = next((ours for ours, names in _COMMANDS.items() if name in names), "")
    if not meant:
        near = difflib.get_close_matches(name, commands, n=1)
        line = shlex.join(["hpc-train", *near, *behind]) if near and behind else ""
        return (near[0] if near else ""), line
    files = [it for it in behind if _value(it).endswith(_FILES)]
    if "CFG" in meant and files:
        rest = [it for it in behind if it not in (files[0], *_BY_OPTION)]
        if meant in _STARTS:
            return meant, _starts(_value(files[0]), rest)
        return meant, f"hpc-train {meant.replace('CFG', shlex.quote(_value(files[0])))}"
    if meant.startswith("resume") and files:
        return "submit CFG", _starts(_value(files[0]), [it for it in behind if it != files[0]])
    if "RUN" in meant and behind and not behind[0].startswith("-"):
        return meant, f"hpc-train {meant.replace('RUN', shlex.quote(behind[0]))}"
    is_whole = meant in _WITHOUT_MORE or not re.search("[A-Z]", meant)
    return meant, f"hpc-train {meant.removesuffix(' RUN')}" if is_whole and not behind else ""


def _board(behind: Sequence[str]) -> str:
    run = behind[0] if behind and not behind[0].startswith("-") else "RUN"
    shown = f"hpc-train status {shlex.quote(run)} shows its folder"
    return f"tensorboard --logdir FOLDER/metrics; {shown}"


def _value(word: str) -> str:
    """`first.yaml` of `--config=first.yaml`, and any other word itself."""
    return word.partition("=")[2] if word.startswith("-") else word


def _starts(file: str, rest: Sequence[str]) -> str:
    """The lines that train it here and on the cluster, with the keys of the config.

    Options may be another command's: that some were typed is shown, and they are not repeated.
    """
    keys = [it for it in rest if re.fullmatch(r"[A-Za-z_][\w.]*=.*", it)]
    typed = shlex.join([file, *keys]) + (" ..." if len(rest) > len(keys) else "")
    return f"hpc-train run {typed} (here), hpc-train submit {typed} (on the cluster)"
