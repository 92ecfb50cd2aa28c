"""Variables of a shell among a script's arguments in a file, which no shell fills in there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.config.load import LoadedConfig

# All of a word, or in capitals at the head of it or of a part of its path: $HOME/data, --lr=$LR.
_VARIABLE = re.compile(r"(?:\A|(?<=[=/:,]))\$(?:([A-Z_][A-Z0-9_]*)(?![\w${])|([A-Za-z_]\w*)\Z)")


def notes_on_variables(loaded: LoadedConfig) -> Iterator[str]:
    """A line for each argument with one; what is typed was the shell's to replace, or quoted."""
    if loaded.origins.is_typed("script.args"):
        return
    for index, word in enumerate(map(str, loaded.config.script.args)):
        found = None if word.endswith("$") else _VARIABLE.search(word)  # a formula: $X$
        if found:
            key, name = f"script.args.{index}", found[1] or found[2]
            what = f"{loaded.origins.prefix(key)}{key} is {word}, and no shell fills it in"
            yield f"{what}: {_instead(word, found[0], name)}"


def _instead(word: str, variable: str, name: str) -> str:
    if name.startswith("SLURM"):
        return f'a rank knows it: os.environ["{name}"] in the script'
    filled = word.replace(variable, f"${{oc.env:{name}}}", 1)
    return f'write its value, or "{filled}" for that of the shell that submits'
