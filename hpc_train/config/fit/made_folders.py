"""Folders that Lightning's callbacks and loggers make only once they write: a whole epoch later."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.specs import CLASS_PATH, INIT_ARGS, callbacks_of, is_object, read_object
from hpc_train.errors import ConfigError

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

# By class of Lightning's: the argument that names the folder.
_CHECKPOINT = "ModelCheckpoint"
_ARGUMENTS = {_CHECKPOINT: "dirpath", "CSVLogger": "save_dir", "TensorBoardLogger": "save_dir"}
_AS_IT_IS = ("CSVLogger",)  # takes a ~ for a folder of that name
_KERNELS = (Path("/proc"), Path("/sys"))
_FIX = "name a folder that you may write into, or leave it out: it is then in the run's own"


@dataclass(frozen=True)
class Blocked:
    """Why a folder cannot be made on this machine.

    Attributes:
        place: What stands in its way.
        why: In words.
    """

    place: Path
    why: str


def made_folders(trainer: Mapping[str, Any], loggers: object) -> Iterator[tuple[str, Path]]:
    """The key and the path of each such folder, a relative one as it is.

    Args:
        trainer: Arguments of the Trainer, with callbacks in either form of a class.
        loggers: A list, the same.
    """
    listed = loggers if isinstance(loggers, list) else []
    named = [(f"loggers.{index}", it) for index, it in enumerate(listed)]
    for key, spec in (*callbacks_of(trainer), *named):
        if not is_object(spec):
            continue
        class_path, arguments = read_object(spec, key)
        name = class_path.rpartition(".")[2]
        path = arguments.get(_ARGUMENTS.get(name, ""))
        if not isinstance(path, str) or not path.strip() or "://" in path:
            continue
        may_not_write = name == _CHECKPOINT and arguments.get("save_top_k") == 0
        if may_not_write or not is_lightnings(class_path):
            continue
        inner = f".{INIT_ARGS}" if CLASS_PATH in spec else ""
        whole = Path(path) if name in _AS_IT_IS else Path(path).expanduser()
        yield f"{key}{inner}.{_ARGUMENTS[name]}", whole


def blocked(path: Path) -> Blocked | None:
    """What is in the way of a folder on this machine; None where nothing is, or it is unknown.

    Args:
        path: An absolute one.
    """
    for place in (path, *path.parents):
        try:
            mode = place.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            if place.is_symlink():
                said = f"{place} is a link to {place.readlink()}, which is not there"
                return Blocked(place, said)
            continue
        except (OSError, ValueError):
            return None
        if not stat.S_ISDIR(mode):
            return Blocked(place, f"{place} is a file")
        return _not_writable(place)
    return None


def _not_writable(place: Path) -> Blocked | None:
    if any(place.is_relative_to(it) for it in _KERNELS):
        return Blocked(place, f"{place} holds the kernel's own files alone")
    if os.access(place, os.W_OK | os.X_OK):
        return None
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return Blocked(place, f"{place} is on a read-only file system")
    return Blocked(place, f"{place} may not be written: permission denied")


def check_made_folders(loaded: LoadedConfig, *, workdir: Path) -> None:
    """Refuse a folder that no node can make, as far as this machine can tell that.

    Raises:
        ConfigError: what is in its way is the kernel's, or in the folder the job starts in.
    """
    for key, path, found in _blocked_in(loaded, workdir):
        if _is_everywhere(loaded, path, found.place, workdir):
            raise loaded.origins.error(key, f": {_said(path, found.why)}", _FIX)


def notes_on_made_folders(loaded: LoadedConfig, *, workdir: Path) -> Iterator[str]:
    """A line for each that this machine cannot make, and a node may."""
    for key, path, found in _blocked_in(loaded, workdir):
        if not _is_everywhere(loaded, path, found.place, workdir):
            said = _said(path, found.why).replace(" cannot ", " cannot, on this machine, ")
            yield f"{loaded.origins.prefix(key)}{key}: {said}: {_FIX}"


def make_folders(trainer: Mapping[str, Any], loggers: object) -> None:
    """Make them before the first step, on the machine that will write.

    Raises:
        ConfigError: with the key and the reason.
    """
    for key, path in made_folders(trainer, loggers):
        if why := why_unmade(path):
            raise ConfigError(f"{key}: {_said(path, why)}", _FIX)


def why_unmade(path: Path) -> str:
    """Make a folder, or say why it cannot be made or written; not of a full disk."""
    said = ""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            said = str(error.strerror)
    found = blocked(path.absolute())
    return found.why if found else said


def _said(path: Path, why: str) -> str:
    return f"{path} cannot be {'written' if path.is_dir() else 'made'} ({why})"


def _blocked_in(loaded: LoadedConfig, workdir: Path) -> Iterator[tuple[str, Path, Blocked]]:
    config = loaded.config
    if config.container.image:  # it may have other folders
        return
    for key, path in made_folders(config.trainer, config.loggers):
        if found := blocked(workdir.absolute() / path):
            yield key, path, found


def _is_everywhere(loaded: LoadedConfig, path: Path, place: Path, workdir: Path) -> bool:
    """Whether a node sees what is in the way here; a snapshot has a working folder of its own."""
    if any(place.is_relative_to(it) for it in _KERNELS):
        return True
    config = loaded.config
    is_own = not path.is_absolute() and config.snapshot.mode != "none"
    return not is_own and not config.hosts and place.resolve().is_relative_to(workdir.resolve())
