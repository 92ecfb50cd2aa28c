"""Lines of `env.setup` that go into another folder, in which the training does not start.

They are the job's shell's; ranks begin in the folder that the run was submitted from, so that a run
that goes on, elsewhere or later, finds its code. Pure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.plan.translate_folders import Folders

_GOES = re.compile(r"(?:cd|pushd|popd)(?=\s|\Z)")
_OR_ELSE = re.compile(r"\s*\|\|\s*(?:\{[^{}]*\}|[^;&]*)")  # what follows where a cd fails
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_OF_FOLDERS = ("HOME", "PWD", "OLDPWD", "SLURM_SUBMIT_DIR")
# What stands behind a cd and means the same in any folder. All else may be what the cd is for.
_ANYWHERE = re.compile(
    r"(?!.*(?:\$\{?PWD|\$\(|`))"
    r"(?:(?:export|unset|set|shopt|ulimit|umask|module|ml|echo|true|:)(?:\s.*)?"
    r"|(?:conda|mamba|micromamba)\s+activate(?:\s+[^\s./~]\S*)?"
    r"|(?:source|\.)\s+[\"']?[/~$][^;&|]*|[A-Za-z_]\w*=\S*|#.*|)"
)


@dataclass(frozen=True)
class MovedShell:
    """Where the lines leave the shell.

    Attributes:
        item: Of `env.setup`, from 0.
        command: Which has gone there.
        folder: An absolute path; empty where only the shell can tell.
    """

    item: int
    command: str
    folder: str


def moved_shell(setup: Sequence[str], here: str, environ: Mapping[str, str]) -> MovedShell | None:
    """The last `cd` that leads elsewhere, if nothing behind it may be what it was for.

    Args:
        setup: The items of `env.setup`.
        here: The folder that the job starts in, absolute.
        environ: Of the shell that submits.
    """
    folders = Folders(here, environ.get("HOME", ""))
    moved: MovedShell | None = None
    for item, line in enumerate(setup):
        for command in _commands(line):
            if _GOES.match(command):
                folders.take(_filled(command, environ))
                folder = _whole(folders.now, here, environ)
                moved = MovedShell(item, command, folder) if folder != here else None
            elif not _ANYWHERE.fullmatch(command):
                moved = None
    return moved


def _commands(text: str) -> Iterator[str]:
    """The commands of an item; a line in parts that only bash can tell is one."""
    for line in text.splitlines():
        masked = _QUOTED.sub(lambda it: "_" * len(it[0]), line)
        plain = "".join(_but_blanks(masked, line))
        if re.search(r"(?<!\$)[(`]|<<|(?<!\|)\|(?!\|)|\\$", _QUOTED.sub("", plain)):
            yield f"({line}"
            continue
        masked = _QUOTED.sub(lambda it: "_" * len(it[0]), plain)
        cuts = [(0, 0), *(it.span() for it in re.finditer(r"&&|;", masked))]
        ends = [start for start, _ in cuts[1:]] + [len(plain)]
        for (_, begin), end in zip(cuts, ends, strict=True):
            yield re.sub(r"\s#.*", "", plain[begin:end]).strip()


def _but_blanks(masked: str, line: str) -> Iterator[str]:
    """The line without what is to be done where a cd fails."""
    at = 0
    for found in _OR_ELSE.finditer(masked):
        head = re.split(r"&&|;", masked[at : found.start()])[-1].strip()
        if _GOES.match(head):
            yield line[at : found.start()]
            at = found.end()
    yield line[at:]


def _filled(command: str, environ: Mapping[str, str]) -> str:
    """With the variables that are known here; those of folders are the shell's."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        known = environ.get(name, "") if name not in _OF_FOLDERS else ""
        return known if known and re.fullmatch(r"[\w@%+=:,./-]+", known) else found[0]

    return _VARIABLE.sub(value, command)


def _whole(now: str | None, here: str, environ: Mapping[str, str]) -> str:
    """As an absolute path; empty where it is not known."""
    if now is None:
        return ""
    if now[:1] == "~":
        now = environ.get("HOME", "~") + now[1:]
    folder = os.path.normpath(Path(here) / now)
    return here if os.path.realpath(folder) == os.path.realpath(here) else folder
