"""Relative paths of the config that are in the project and would not be in the copy of its code."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.fit.data_paths import argument_texts, is_absent, is_read
from hpc_train.config.specs import read_object

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

_GIT_LIMIT_S = 10.0


def notes_on_paths_not_copied(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """A line for each path that is read, by its name, and that `snapshot: git` leaves behind.

    Of a script the arguments count, by the option in front of them.
    """
    wanted = loaded.config.snapshot
    if wanted.mode == "none":
        return
    linked = [os.path.normpath(it) for it in wanted.link]
    for key, text in _paths_read(loaded):
        path = os.path.normpath(text)
        is_inside = path[0] not in "/~" and not path.startswith("..") and path != "."
        if not is_inside or is_absent(str(workdir / path)):
            continue
        if any(f"{path}/".startswith(f"{it}/") for it in linked):
            continue
        if not _is_copied(path, workdir, untracked=wanted.untracked):
            link = ",".join([*linked, path.partition("/")[0]])
            said = f"{loaded.origins.prefix(key)}{key} is {text}, which git does not track, so"
            said += " that the copy of the code (snapshot: git), where the job begins, lacks it"
            yield f"{said}: {shlex.quote(f'snapshot.link=[{link}]')}, or write the whole path"


def _paths_read(loaded: LoadedConfig) -> Iterator[tuple[str, str]]:
    config = loaded.config
    if config.script.path:
        yield from _of_script(config.script.args)
        return
    for key, spec in (("model", config.model), ("data", config.data)):
        _, arguments = read_object(spec, key, loaded.origins)
        plain: dict[str, Any] = {
            name: it for name, it in arguments.items() if isinstance(it, (str, list))
        }
        for name, text in argument_texts(plain).items():
            if is_read(name, text):
                yield f"{key}.init_args.{name}", text


def _of_script(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The paths among a script's arguments; what stands alone is read, if it is in the project."""
    option = ""
    for index, text in enumerate(args):
        name, _, value = text.partition("=")
        is_option = text.startswith("-")
        option, path = (name, value) if is_option else (option or "path", text)
        if is_read(option.lstrip("-").replace("-", "_"), path):
            yield f"script.args.{index}", path
        option = option if is_option and not value else ""


def _is_copied(path: str, workdir: Path, *, untracked: bool) -> bool:
    """Whether git tracks it, or something in it; what git does not answer is taken to be copied.

    A folder of which git has no more than a `.gitkeep` is not.
    """
    kinds = ["--cached", *(["--others", "--exclude-standard"] if untracked else [])]
    try:
        done = subprocess.run(
            ["git", "-C", str(workdir), "ls-files", *kinds, "--", f":(literal){path}"],
            capture_output=True,
            timeout=_GIT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    names = done.stdout.decode(errors="replace").splitlines()
    is_file = (workdir / path).is_file()
    return done.returncode != 0 or any(is_file or Path(it).name[:1] != "." for it in names)
