"""Lines of the command `module` in env.modules, which has the names of modules alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from hpc_train.config.origins import Origins
from hpc_train.config.schema import EnvConfig
from hpc_train.config.whole_forms import flow

_LINE = re.compile(r"(module|ml)\s+(\S.*)")
_LOAD = ("load", "add")
# Of module(1) and of Lmod's users' guide: `ml WORD` is `module WORD` for these, and loads others.
_SUBCOMMANDS = frozenset(
    """
    add avail del help is-loaded keyword list load purge refresh reset restore rm save
    saverestore show spider swap switch try-add try-load unload unuse update use whatis
    """.split()  # noqa: SIM905 - words read better as words
)
_SHELLS = re.compile(r"[$;&|<>`(]")  # what only a shell replaces, or ends a command by


def check_modules(env: EnvConfig, origins: Origins) -> None:
    """Refuse `module load cuda` in the place of `cuda`.

    Raises:
        ConfigError: with the names; where a line does more than load, with all of them as lines of
            env.setup, since their order counts.
    """
    for at, item in enumerate(env.modules):
        if _LINE.fullmatch(item.strip()):
            said = f"is `{item.strip()}`, a line of the shell, and no module's name"
            hint = hint_of_lines(env.modules, env.setup, is_typed=origins.is_typed("env.modules"))
            raise origins.error(f"env.modules.{at}", said, hint)


def hint_of_lines(modules: Sequence[str], setup: Sequence[str] = (), *, is_typed: bool) -> str:
    """What to write for modules some of which are lines of the command; empty for names.

    Args:
        setup: The lines that env.setup has.
        is_typed: Whether they stand on the command line, and in no file.
    """
    items = [it.strip() for it in modules if it.strip()]
    if not any(map(_LINE.fullmatch, items)):
        return ""
    named = [_names(it) for it in items]
    if all(named):
        names = [name for it in named for name in it]
        return f"write {_written('env.modules', names, is_typed=is_typed)}"
    lines = [it if _LINE.fullmatch(it) else f"module load {it}" for it in items]
    written = _written("env.setup", [*lines, *setup], is_typed=is_typed)
    return f"write {written} in place of env.modules"


def _names(item: str) -> list[str]:
    """What an item loads; empty where it does something else, too."""
    found = _LINE.fullmatch(item)
    if found is None:
        return [item]
    command, words = found[1], found[2].replace('"', "").replace("'", "").split()
    if words[0] in _LOAD:
        words = words[1:]
    elif command == "module" or words[0] in _SUBCOMMANDS:
        return []
    is_plain = not _SHELLS.search(item) and not any(it.startswith("-") for it in words)
    return words if is_plain else []


def _written(key: str, values: Sequence[str], *, is_typed: bool) -> str:
    text = flow([*values])
    return shlex.quote(f"{key}={text}") if is_typed else f"{key}: {text}"
