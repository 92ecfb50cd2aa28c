"""Lines of #SBATCH that no sbatch reads: at the head of a script or a config, or in env.setup."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.meant_words.extra_flags import keys_lacking
from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config

_MARK = "#SBATCH"


def directives_of(text: str) -> dict[int, str]:
    """The options of each such line by its number, as far as sbatch looks: to the first command."""
    found: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(_MARK):
            found[number] = line.removeprefix(_MARK).partition(" #")[0].strip()
        elif line.strip() and not line.startswith("#"):
            break
    return found


def notes_on_sbatch_lines(file: Path, shown: str) -> Iterator[str]:
    """A line where the head of a file has such lines, with the command that shows what they are.

    Args:
        shown: The file as it was typed.
    """
    try:
        options = directives_of(file.read_text("utf-8", "replace"))
    except OSError:  # told where the file is read
        return
    if not options:
        return
    words = shlex.quote(" ".join(["sbatch", *options.values()]))
    typed = shlex.quote(shown) if file.suffix == ".py" else words
    said = f"{shown}:{min(options)} has lines of {_MARK}, which are comments here"
    yield f"{said}: hpc-train translate {typed} shows them as options and keys"


def notes_on_setup_lines(config: Config, origins: Origins) -> Iterator[str]:
    """A line where `env.setup` has such lines, with the keys that the config lacks for them."""
    options = list(_directives_in_setup(config.env.setup))
    if not options:
        return
    if (lacking := keys_lacking(options, config)) is None:
        words = shlex.quote(" ".join(["sbatch", *options]))
        lacking = f"hpc-train translate {words} shows them as options and keys"
    if lacking:
        said = f"env.setup has lines of {_MARK}, which are comments here"
        yield f"{origins.prefix('env.setup')}{said}: {lacking}"


def _directives_in_setup(setup: Sequence[str]) -> Iterator[str]:
    for line in (it.strip() for item in setup for it in item.splitlines()):
        if "<<" in line:  # a here-document may be a batch script of another job
            return
        if line.startswith(f"{_MARK} "):
            yield line.removeprefix(_MARK).partition(" #")[0].strip()
