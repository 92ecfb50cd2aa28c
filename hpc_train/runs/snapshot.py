"""`snapshot: git`: the code of a project, copied into the run, so that later edits change nothing.

RUN/snapshot/ holds the files of the project's whole working tree as they were, edits that are not
committed included; RUN/snapshot.json says of which project. The job runs from there.
"""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hpc_train.codec import decode
from hpc_train.config.origins import Origins
from hpc_train.config.schema import SnapshotConfig
from hpc_train.errors import ConfigError
from hpc_train.runs.atomic import write_text

FOLDER, DOCUMENT = "snapshot", "snapshot.json"
MB = 1_000_000
GIT_LIMIT_S = 60.0
# On a shared file system a file takes milliseconds, and threads wait together; on a local one they
# take longer than one alone, since each copy is many short calls between which they change.
AT_ONCE, FIRST, SLOW_S = 16, 64, 1e-3  # threads, if each of the first 64 files took 1 ms


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is to be copied.

    Attributes:
        project: Top of git's working tree.
        prefix: The working folder in it; empty for the top.
        names: From `project`; sorted.
        links: The same, of what the copy shares with the project.
    """

    project: str
    prefix: str
    names: tuple[str, ...]
    links: tuple[str, ...] = ()

    def workdir_in(self, run: Path) -> Path:
        """The working folder of the copy in a run's or a sweep's folder."""
        return run / FOLDER / self.prefix


@dataclass(frozen=True)
class CodeCopy:
    """A copy that is there."""

    folder: Path
    selection: Selection

    @property
    def run(self) -> Path:
        """The folder of the run or the sweep that it belongs to."""
        return self.folder.parent

    @property
    def original(self) -> Path:
        """The working folder that it was made of."""
        return Path(self.selection.project) / self.selection.prefix

    def counterpart(self, path: str) -> Path | None:
        """Where a folder of the project is in the copy; None for one that was not copied."""
        inside = os.path.relpath(path, self.selection.project)
        found = self.folder / inside
        return None if inside.startswith("..") or not found.is_dir() else found


def copy_at(workdir: Path) -> CodeCopy | None:
    """The copy that this working folder is in, if it is in one."""
    for folder in (workdir, *workdir.parents):
        document = folder.parent / DOCUMENT
        if folder.name == FOLDER and document.is_file():
            known: Any = json.loads(document.read_text(encoding="utf-8"))
            return CodeCopy(folder, decode(Selection, known))
    return None


def select(wanted: SnapshotConfig, workdir: Path, runs_dir: Path, origins: Origins) -> Selection:
    """Choose the files; nothing is written.

    Args:
        runs_dir: What lies in it is left out, whatever git says.

    Raises:
        ConfigError: no git, no repository, nothing in it, or more than `snapshot.max_mb`.
    """
    workdir = workdir.resolve()
    prefix = _git(workdir, origins, "rev-parse", "--show-prefix").rstrip("\n").rstrip("/")
    project = workdir.parents[prefix.count("/")] if prefix else workdir
    # Without submodules that are not there; --others knows none at all (git-ls-files(1)).
    names = set(_git(project, origins, "ls-files", "-z", "--recurse-submodules").split("\0"))
    if wanted.untracked:
        others = _git(project, origins, "ls-files", "-z", "--others", "--exclude-standard")
        names |= set(others.split("\0"))
    own = os.path.relpath(os.path.realpath(runs_dir), project) + "/"
    chosen = tuple(sorted(name for name in names if name and not name.startswith(own)))
    if not chosen:
        hint = "git add the files that the training needs, or set snapshot.untracked=true"
        raise origins.error("snapshot", f": git tracks no file in {project}", hint)
    links = tuple(_link(name, workdir, project, origins) for name in wanted.link)
    # Of a linked folder git may have a .gitkeep, which would stand in the place of the link.
    below = tuple(f"{link}/" for link in links)
    chosen = tuple(name for name in chosen if not name.startswith(below))
    _check_size(project, chosen, wanted.max_mb, origins)
    return Selection(project=str(project), prefix=prefix, names=chosen, links=links)


def take(selection: Selection, run: Path) -> None:
    """Copy into `run`; what vanished meanwhile, or is deleted and not committed, is left out.

    Raises:
        OSError: as the file system says.
    """
    from statistics import median

    folder = run / FOLDER
    names = selection.names
    parents = {parent for name in names for parent in _parents(name)}
    for parent in sorted({*parents, selection.prefix}):
        (folder / parent).mkdir(parents=True, exist_ok=True)
    copy = partial(_copy_all, project=selection.project, folder=folder, copied=parents.union(names))
    took_s = []
    for name in names[:FIRST]:
        began = time.perf_counter()
        copy([name])
        took_s.append(time.perf_counter() - began)
    at_once = AT_ONCE if median(took_s) > SLOW_S else 1
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        chunks = [names[FIRST + first :: at_once] for first in range(at_once)]
        list(pool.map(copy, chunks))  # raises what a copy raised
    for name in selection.links:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # it is tracked, and has been copied
            (folder / name).symlink_to(Path(selection.project) / name)
    document = {name: getattr(selection, name) for name in ("project", "prefix", "names", "links")}
    write_text(run / DOCUMENT, json.dumps(document) + "\n")


@contextlib.contextmanager
def renewed(selection: Selection, run: Path, stamp: str) -> Iterator[None]:
    """Take it anew; the files before are kept beside it, and what the training wrote stays.

    When the block fails, all is as before.

    Args:
        stamp: Names the folder of the files before.
    """
    folder, aside = run / FOLDER, run / f"{FOLDER}-before-{stamp}"
    document = (run / DOCUMENT).read_text(encoding="utf-8")
    before = decode(Selection, json.loads(document))
    _move(before, folder, aside)
    try:
        take(selection, run)
        yield
    except BaseException:
        refused = run / f"{FOLDER}-refused-{stamp}"
        _move(selection, folder, refused)
        _move(before, aside, folder)
        for left in (refused, aside):
            shutil.rmtree(left, ignore_errors=True)
        write_text(run / DOCUMENT, document)
        raise


def changed_files(copy: CodeCopy) -> list[str]:
    """What is otherwise in the project now, byte by byte, or gone from it."""
    project = copy.selection.project
    changed = []
    for name in copy.selection.names:
        copied, now = copy.folder / name, Path(project, name)
        if copied.is_symlink() or copied.is_dir() or not os.path.lexists(copied):
            continue
        try:
            same = filecmp.cmp(copied, now, shallow=False)
        except OSError:
            same = False
        if not same:
            changed.append(name)
    return changed


def _move(selection: Selection, source: Path, target: Path) -> None:
    for name in (*selection.names, *selection.links):
        is_file = os.path.lexists(source / name) and not (source / name).is_dir()
        if is_file or (source / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).rename(target / name)


def _copy_all(names: Sequence[str], project: str, folder: Path, copied: set[str]) -> None:
    for name in names:
        source, target = f"{project}/{name}", f"{folder}/{name}"
        try:
            seen = os.lstat(source)
            mode = seen.st_mode
            if stat.S_ISREG(mode):
                _copy_file(source, target, stat.S_IMODE(mode), seen.st_size)
            elif stat.S_ISLNK(mode):
                os.symlink(_link_text(name, os.readlink(source), project, copied), target)
            elif stat.S_ISDIR(mode):  # a submodule that is not checked out
                os.makedirs(target, exist_ok=True)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(source):
                raise


def _copy_file(source: str, target: str, mode: int, size: int) -> None:
    # A buffer of the file's own size: a large one costs the kernel more than a small file.
    at_once = min(size + 1, MB)
    reading = os.open(source, os.O_RDONLY)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode | stat.S_IWUSR)
        try:
            while content := os.read(reading, at_once):
                written = 0
                while written < len(content):
                    written += os.write(writing, content[written:])
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _link_text(name: str, text: str, project: str, copied: set[str]) -> str:
    """A link to something of the copy stays in it; any other leads where it did."""
    aim = os.path.normpath(os.path.join(project, os.path.dirname(name), text))
    inside = os.path.relpath(aim, project)
    if inside in copied or inside == ".":
        return os.path.relpath(inside, os.path.dirname(name) or ".")
    return aim


def _parents(name: str) -> Iterator[str]:
    while name := name.rpartition("/")[0]:
        yield name


def _link(name: str, workdir: Path, project: Path, origins: Origins) -> str:
    path = os.path.normpath(workdir / name)
    inside = os.path.relpath(path, project)
    if inside.startswith("..") or inside == ".":
        hint = "name folders of the project, from the working folder: [data]"
        raise origins.error("snapshot.link", f": {name} is not below {project}", hint)
    if not os.path.exists(path):
        raise origins.error("snapshot.link", f": {path} is not there", "make it, or take it out")
    return inside


def _check_size(project: Path, names: Sequence[str], max_mb: int, origins: Origins) -> None:
    sizes = []
    for name in names:
        with contextlib.suppress(OSError):
            seen = os.lstat(f"{project}/{name}")
            sizes.append((seen.st_size, name))
    total = sum(size for size, _ in sizes) / MB
    if total > max_mb:
        largest = ", ".join(f"{name} {size / MB:.0f} MB" for size, name in sorted(sizes)[:-4:-1])
        raise origins.error(
            "snapshot",
            f": {len(sizes)} files of {total:.0f} MB are more than {max_mb} MB; {largest}",
            "keep data out of git and share it by snapshot.link, or raise snapshot.max_mb",
        )


def _git(folder: Path, origins: Origins, *arguments: str) -> str:
    argv = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=GIT_LIMIT_S, check=False)
    except FileNotFoundError as error:
        hint = "install or load git where you submit, or snapshot=none"
        raise origins.error("snapshot", "is git, and there is no git on the PATH", hint) from error
    except subprocess.TimeoutExpired as error:
        message = f": git {arguments[0]} takes more than {GIT_LIMIT_S:g} s in {folder}"
        raise origins.error("snapshot", message, "git gc there, or snapshot=none") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        if any("not a git repository" in line for line in said):
            message = f"is git, and {folder} is in no git repository"
            hint = f"git init && git add . in {folder}, or snapshot=none"
            raise origins.error("snapshot", message, hint)
        raise ConfigError(f"snapshot: git {arguments[0]}: {said[0] if said else 'failed'}")
    return os.fsdecode(done.stdout)
