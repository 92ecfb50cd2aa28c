"""The folder to submit from, where the user's modules lie elsewhere than here: by the config."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.distributions import is_well_known
from hpc_train.config.python_text.meant_class import class_of_project, meant_class
from hpc_train.config.python_text.modules import submodules
from hpc_train.config.submission_words import AND_AGAIN

_MOST_ABOVE = 3  # folders above where it is submitted, or above a config elsewhere


def folder_of_module(module: str, workdir: Path, config: Path) -> tuple[str, str]:
    """What to add to the message, and the line to type, where a module lies by the config.

    Args:
        module: Its first word, which is not found.
        workdir: Where it is submitted.
        config: The file that names it.

    Returns:
        Both empty where it lies neither beside the config nor in a folder above it, or above here.
    """
    here, beside = workdir.resolve(), config.parent
    if beside.resolve() != here and module in submodules([str(beside)]):
        typed = f"cd {shlex.quote(str(beside))}{AND_AGAIN}{shlex.quote(config.name)}"
        return f", and it lies in {beside}", f"submit from there: {typed}"
    if (beside / "plan.json").exists():  # a run's own config, which is not to be submitted
        return "", ""
    for place in _places(here, config.resolve()):
        if module in submodules([str(place)]):
            return "", f"it is in {place}: {_typed_there(place, here, config)}"
    return "", ""


def class_of_its_project(
    class_path: str, search_path: Sequence[str], wanted: str, config: Path
) -> str:
    """A class of the folder that the config lies in, and the line to type there; else empty.

    Submitted from a folder of projects, a config means the classes of its own.

    Args:
        class_path: Whose module is not found.
        search_path: As `sys.path`, with the folder where it is submitted first.
        wanted: Name of the class that it has to derive from.
        config: The file that names it.
    """
    here, file = Path(search_path[0]).resolve(), config.resolve()
    if wanted not in ("LightningModule", "LightningDataModule") or not file.is_relative_to(here):
        return ""
    if is_well_known(class_path.partition(".")[0]) or submodules([str(here)]):
        return ""  # with modules of its own this is a project, whose classes are meant as well
    for place in reversed([it for it in file.parents if it != here and it.is_relative_to(here)]):
        path = [str(place), *search_path[1:]]
        if own := class_of_project(path, wanted):
            meant = meant_class(class_path, [str(place)], wanted=wanted) or f"did you mean '{own}'?"
            typed = _typed_there(place, here, config)
            return f"{meant.rstrip('?')}, and submit from its folder: {typed}"
    return ""


def _places(here: Path, config: Path) -> Iterator[Path]:
    """Folders above the config, the nearest first; then those above `here`, if it lies below."""
    above = config.parents[1:]
    if config.is_relative_to(here):
        yield from (it for it in above if it != here and it.is_relative_to(here))
        yield from here.parents[:_MOST_ABOVE]
    else:
        yield from above[:_MOST_ABOVE]


def _typed_there(place: Path, here: Path, config: Path) -> str:
    way, file = os.path.relpath(place, here), os.path.relpath(config.resolve(), place)
    way = way if way.count("..") <= _MOST_ABOVE else str(place)
    return f"cd {shlex.quote(way)}{AND_AGAIN}{shlex.quote(file)}"
