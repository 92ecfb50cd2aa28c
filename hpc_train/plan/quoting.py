"""Values on their way into a script: each is quoted for the parser that reads it."""

from __future__ import annotations

import re
import shlex

from hpc_train.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z0-9_./:=@%+,\[\]*&|!^~-]+\Z", re.ASCII)
_HETJOB = re.compile("(het|pack)(?=job)", re.IGNORECASE)
_UNSLUGGED = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_SLUG_LENGTH = 64


def quote_sbatch(value: str, what: str) -> str:
    r"""`value` as sbatch reads it from a `#SBATCH --option=VALUE` line.

    This is not the shell's parser: a backslash escapes inside both kinds of quotes, a bare `#`
    starts a comment, and a line that holds the word `hetjob` or `packjob` anywhere starts another
    component of a heterogeneous job (Slurm, src/sbatch/opt.c, `_get_argument` and
    `_opt_batch_script`); a backslash in the middle of the word hides it.

    Args:
        value: Any text.
        what: The key it came from, for the error.

    Raises:
        ConfigError: for a line break or a NUL, which end such a line and cannot be escaped.
    """
    if "\n" in value or "\0" in value:
        raise ConfigError(
            f"{what} holds a line break or a NUL: {value!r}", "write it in one line of plain text"
        )
    if _PLAIN.match(value):
        return _HETJOB.sub(r"\1\\", value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _HETJOB.sub(r"\1\\", escaped) + '"'


def quote_shell(value: str, what: str) -> str:
    """`value` as one word of bash, whatever it holds; line breaks are kept.

    Raises:
        ConfigError: for a NUL, which no environment and no command line can carry.
    """
    if "\0" in value:
        raise ConfigError(f"{what} holds a NUL: {value!r}", "remove it")
    return shlex.quote(value)


def quote_path(path: str, what: str) -> str:
    """As `quote_shell`, with a leading `~/` left to the shell of the machine that runs it."""
    if path == "~":
        return '"$HOME"'
    if path.startswith("~/"):
        return '"$HOME"/' + quote_shell(path[2:], what)
    return quote_shell(path, what)


def escape_pattern(path: str) -> str:
    """A path for `--output`, where `%` starts a pattern (sbatch(1), "filename pattern")."""
    return path.replace("%", "%%")


def fits_output(path: str) -> bool:
    """Whether `--output` can name this path at all.

    A backslash switches all patterns off and vanishes (sbatch(1), "filename pattern"), and a
    `#SBATCH` line cannot hold a line break.
    """
    return not any(character in path for character in "\\\n\0")


def slug(name: str) -> str:
    """A run's name as a folder's name: letters, digits, `.`, `_`, `-`; never empty, `.` or `..`."""
    return _UNSLUGGED.sub("-", name).strip("-.")[:_SLUG_LENGTH].rstrip("-.") or "run"
