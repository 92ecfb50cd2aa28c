"""What to write for a word beside a config that is no `key=value`, on the way to an error."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.flags import FLAGS
from hpc_train.config.keys import REQUIRED_KEYS, SECTIONS, TYPES
from hpc_train.config.schema import Config
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.errors import ConfigError

_DELETION = re.compile(r"~([A-Za-z_][\w.]*)(?:=.*)?")
_FILES = (".py", ".yaml", ".yml")
_SWITCHES = (  # of the Trainer's arguments
    *("fast_dev_run", "deterministic", "benchmark", "detect_anomaly", "barebones"),
    *("enable_checkpointing", "enable_progress_bar", "enable_model_summary", "sync_batchnorm"),
    *("inference_mode", "use_distributed_sampler"),
)
_LISTS = ("callbacks", "plugins")  # arguments of the Trainer that an empty list empties


def hint_for(word: str, before: Sequence[str], behind: Sequence[str], example: str) -> str:
    """What to write for a word without an equals sign.

    Args:
        before: What was typed in front of it, without the config.
        behind: What was typed behind it.
        example: Of an override.
    """
    if Path(word).suffix in (".yaml", ".yml"):
        return "one file begins the line; it may build on others: `defaults: [other.yaml]`"
    if Path(word).suffix == ".py":
        trains = f"to run {word}, write it in the config's place, without the config"
        return f"a config's model and data are trained: leave {word} out; {trains}"
    if torn := torn_apart(word, before, behind):
        return torn
    if deleted := emptied(word):
        return deleted
    if meant := re.fullmatch(r"([A-Za-z_][\w.]*):\s*(\S.*)?", word):
        value = meant[2] or " ".join(_alone(behind)) or "VALUE"
        return f"write {meant[1]}={shlex.quote(value)}"
    return in_python(word, behind) or f"write it without spaces, as in {example}"


def emptied(word: str) -> str:
    """What stands here for Hydra's `~key` and `~key=value`; empty for any other word."""
    found = _DELETION.fullmatch(word)
    if not found:
        return ""
    key = found[1]
    kind, (section, _, name) = TYPES.get(key, ""), key.partition(".")
    if key in REQUIRED_KEYS:
        return f"a training needs {key}: write {key}=VALUE"
    if kind.startswith("list[") or (section == "trainer" and name in _LISTS):
        return f"to empty it write {key}=[]"
    if key in SECTIONS or kind.startswith("dict["):
        return f"to empty it write {key}={{}}"
    if kind.startswith("Optional[") or (section == "trainer" and _may_be_null(name)):
        return f"to empty it write {key}=null"
    if kind:
        return f"to have its default write {key}={_default_of(key)}"
    return f"only the file can leave out {key}: remove it there, or write {key}=VALUE"


def _may_be_null(name: str) -> bool:
    annotation = trainer_parameters(sys.path).get(name)
    return bool(annotation and re.search("None|Optional", ast.unparse(annotation)))


def _default_of(key: str) -> str:
    value: Any = Config()
    for name in key.split("."):
        value = getattr(value, name)
    return str(value).lower() if isinstance(value, bool) else str(value)


def torn_apart(word: str, before: Sequence[str], behind: Sequence[str]) -> str:
    """What to write for a word that a space has made of an override; empty for any other."""
    if not word.strip(","):
        return "leave it out: overrides stand one behind the other, with spaces"
    if word[:1] in "~-" or ":" in word:
        return ""
    alone = _alone(behind)
    is_dotted = re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)+", word) is not None
    if behind and re.fullmatch(r"=[^=]*", behind[0]):  # `key = value`, `key =value`
        value = [it for it in (behind[0][1:], *_alone(behind[1:])) if it]
        return f"write it without spaces: {_joined(word, value)}" if value else ""
    switches = [*itertools.takewhile(_is_switch, (word, *alone))]
    if switches and len(switches) == 1 + len(alone):
        return f"write {' '.join(f'{it}=true' for it in switches)}"
    if is_dotted and not alone and word.partition(".")[0] in (*SECTIONS, "trainer"):
        return f"write its value behind it: {word}=..."
    if alone and is_dotted:
        return f"write it without spaces: {word}={shlex.quote(alone[0])}"
    if not before or "=" not in before[-1]:
        return ""
    key, _, value_before = before[-1].partition("=")
    if not value_before:  # `key= value`
        return f"write it without spaces: {_joined(key, [word, *alone])}"
    whole = shlex.quote(" ".join([before[-1], word, *alone]))
    return f"where a value has a space in it, quote the whole: {whole}"


def _is_switch(key: str) -> bool:
    section, _, name = key.rpartition(".")
    kind = TYPES.get(key, "")
    return (
        kind == "bool"
        or kind.startswith("Literal[True")
        or (section == "trainer" and name in _SWITCHES)
    )


def _alone(words: Sequence[str]) -> list[str]:
    """The words in front of the next override."""
    return [*itertools.takewhile(lambda it: "=" not in it, words)]


def _joined(key: str, value: Sequence[str]) -> str:
    return f"{key}={shlex.quote(' '.join(value))}"


def in_python(word: str, behind: Sequence[str]) -> str:
    """What an option of the command is in `hpc_train.load`; empty for a word that is none.

    The command itself reads its options: only the Python interface can hand one over.
    """
    found = re.fullmatch(r"--([A-Za-z][\w-]*)(?:[=\s]\s*(.*))?", word)
    if not found:
        return ""
    name = found[1].replace("-", "_")
    if name in FLAGS:
        value = found[2] or next(iter(behind), "...")
        is_plain = value == "..." or (FLAGS[name].type is int and value.isdecimal())
        return f"write hpc_train.load(PATH, {name}={value if is_plain else repr(value)})"
    from hpc_train.config.load_keywords import said_of_option

    return said_of_option(name, found[2] or next(iter(behind), "")) or (
        f"options of the command are arguments in Python, such as nodes=2; those of a script:"
        f" hpc_train.load('train.py', arguments=['--{found[1]}', ...])"
    )


def check_whole_path(path: Path, words: Sequence[str]) -> None:
    """Refuse a word in front of the file, and a name that the shell has taken apart at its blanks.

    Args:
        path: What was typed as the config.
        words: What was typed behind it.

    Raises:
        ConfigError: where the second word, or all words put together, are a file.
    """
    whole = str(path)
    for word in words:
        whole = f"{whole} {word}"
        if Path(whole).is_file():
            hint = f"put the name in quotes: {shlex.quote(whole)}"
            raise ConfigError(f"{path}: there is no such file, and {whole!r} is one", hint)
    is_word = Path(path).suffix not in _FILES
    if is_word and words and Path(words[0]).suffix in _FILES and Path(words[0]).is_file():
        message = f"{path} stands in the config's place, and there is no such file"
        raise ConfigError(message, f"leave {path} out: {words[0]} belongs there")
