"""What is taken beside a script, and what to write for a key that the script decides."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.keys import FIELDS, OF_THE_SCRIPT
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.script_tree import script_tree, words_in
from hpc_train.config.scripts.script_words import COME_BEHIND
from hpc_train.errors import ConfigError

_TRAINER_ON_CPUS, _ON_CPUS = "trainer.accelerator=cpu", "script.accelerator=cpu"


def hint_beside(name: str, script: str, values: object, origins: Origins) -> str:
    """Of what was typed beside a script there is nothing to keep: it is an argument of the script.

    Args:
        name: The key: model, data, trainer and so on.
        script: Its path.
        values: What the key has.
        origins: Where each key comes from.
    """
    from hpc_train.config.scripts.script_arguments import option_for  # on the way to an error

    typed = values if isinstance(values, Mapping) else {}
    if name == "trainer" and typed == {"accelerator": "cpu"}:
        is_typed = origins.of(f"{name}.accelerator") == COMMAND_LINE
        return f"write {_ON_CPUS if is_typed else 'accelerator: cpu below script'} in its place"
    keys = [it for it in typed if origins.of(f"{name}.{it}") == COMMAND_LINE]
    if origins.of(name) != COMMAND_LINE and (not keys or len(keys) != len(typed)):
        return "keep one of them"
    options = [(option_for(it, Path(script)), typed[it]) for it in keys]
    words = " ".join(f"{option} {shlex.quote(str(it))}" for option, it in options)
    if options and all(option for option, _ in options):
        return f"it is {script}'s own: hpc-train submit {script} -- {words}, as a run of its own"
    return f"leave it out: {script} makes its own, and its arguments stand behind --"


def is_beside_script(key: str) -> bool:
    """Whether a key of the config is taken beside a script, which makes all else itself."""
    section = key.partition(".")[0].strip()
    return section in (*FIELDS, "cluster_profile") and section not in OF_THE_SCRIPT


def check_beside(path: Path, overrides: Sequence[str]) -> None:
    """Refuse words beside a script that are none of ours: its own come behind `--`."""
    theirs = [it for it in overrides if not is_ours(it)]
    if not theirs:
        return
    name = theirs[0].partition("=")[0]
    *first, last = map(repr, theirs)
    said = f"{', '.join(first)} and {last} are" if first else f"{last} is"
    words = [word for it in theirs for word in as_options(path, it)]
    fix = f"arguments of {path.name} {COME_BEHIND}{path} -- {shlex.join(words)}"
    section = name.partition(".")[0].strip()
    if section in FIELDS and "." in name and _has_own_options(path):
        fix = f"{section} belongs to a config, and {path.name} makes its own: change it there"
    if _TRAINER_ON_CPUS in theirs and not _reads_pairs(path):
        others = [it for it in theirs if it != _TRAINER_ON_CPUS]
        fix = f"write {_ON_CPUS} in place of {_TRAINER_ON_CPUS}{f'; {fix}' if others else ''}"
    if any(it.endswith(".py") for it in theirs):
        fix = "name one script"
    raise ConfigError(f"{said} nothing that hpc-train takes beside a script", fix)


def is_ours(word: str) -> bool:
    """Whether it is `key=value` of a key that is taken beside a script."""
    return "=" in word and is_beside_script(word.partition("=")[0].partition(".")[0])


def as_options(script: Path, word: str) -> list[str]:
    """`--lr 0.1` for `lr=0.1` where the script declares that option; else the word itself."""
    name, equals, value = word.partition("=")
    text = script.read_text("utf-8", "replace") if script.is_file() else ""
    for option in dict.fromkeys((name, name.replace("_", "-"), name.replace("-", "_"))):
        declared = rf"add_argument\((?:\s*['\"]-\w['\"],)?\s*['\"]--{re.escape(option)}['\"]"
        if equals and re.search(declared, text):
            return [f"--{option}", value]
    return [word]


def notes_on_taken(path: Path, overrides: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """A line for each word that is ours, and may be meant for a script that reads `key=value`.

    Args:
        path: The script, or a config.
        overrides: What was typed beside it.
        arguments: What it is given.
    """
    tree = script_tree(path) if path.suffix == ".py" and overrides else None
    words = words_in(tree) if tree is not None else set()
    if "from_cli" not in words and not {"hydra", "main"} <= words:
        return []
    return [
        f"{word} is hpc-train's own, and {path.name} is not given it: for {path.name} type"
        f" {path} -- {shlex.join([word, *arguments])}"
        for word in overrides
        # Nobody names a run so often as a seed is set.
        if (key := word.partition("=")[0]) == "seed" or (key == "name" and key in words)
        if not any(it.partition("=")[0].lstrip("+") == key for it in arguments)
    ]


def _has_own_options(script: Path) -> bool:
    """Whether a script reads its words by argparse and none as `key=value`, as Hydra does."""
    text = script.read_text("utf-8", "replace") if script.is_file() else ""
    return "argparse" in text and not _reads_pairs(script)


def _reads_pairs(script: Path) -> bool:
    """Whether a script may take words as `key=value` itself."""
    text = script.read_text("utf-8", "replace") if script.is_file() else ""
    others = r"hydra|omegaconf|fiddle|\bfire\b|sys\.argv|nargs|parse_known|CLI"
    return re.search(others, text) is not None
