"""Which code a run has: git's commit, the changes on top of it, untracked files, and sources.

`environment.json` of a run says it of the submission, that in an attempt's folder of the attempt;
the ranks add what is installed (`runs.installed`). A diff is a file of its own, named by its
content.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hpc_train
from hpc_train.codec import read_object
from hpc_train.plan.plan import Plan
from hpc_train.runs.atomic import write_text
from hpc_train.runs.copied_project import copied_project
from hpc_train.runs.imported_code import gone_of, imported_by
from hpc_train.runs.layout import RunDir
from hpc_train.runs.left_project import how_it_was_left
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.snapshot import CodeCopy, copy_at

DIFF_LIMIT = 1_000_000  # characters; a larger one is somebody's data
SOURCES_LIMIT = 1000
UNTRACKED_LIMIT = 1000
SHOWN_FILES = 5
_RECORD_S = 60.0  # for which a record is written after the code was read, at most


def code_state(workdir: Path, packages: Collection[str] = ()) -> dict[str, Any]:
    """Commit, diff, untracked files, Python, host, loaded modules, hashes of source files.

    The sources are the files of `workdir` itself and of `packages` in it, so that a change is seen
    without git, too. Of the environment it holds no value but that of LOADEDMODULES.
    A copy (`runs.snapshot`) has the state that the project had.
    """
    if copy := copy_at(workdir):
        return read_state(RunDir(copy.run))
    status = _git(workdir, "status", "--porcelain=v2", "--branch", "-z")
    lines = [line for line in status.split("\0") if line]
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid")), "")
    changed = any(line[0] in "12u" for line in lines)
    return {
        "schema_version": 2,
        "hpc_train": hpc_train.__version__,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "host": platform.node(),
        "workdir": str(workdir),
        "modules": [name for name in os.environ.get("LOADEDMODULES", "").split(":") if name],
        "git_commit": "" if commit == "(initial)" else commit,
        "git_diff": _git(workdir, "diff", "HEAD")[:DIFF_LIMIT] if changed else "",
        "git_untracked": [line[2:] for line in lines if line.startswith("? ")][:UNTRACKED_LIMIT],
        "sources": _sources(workdir, packages),
    }


def code_files(state: Mapping[str, Any]) -> dict[str, str]:
    """The files that hold a `code_state`, by name: the diff is one of its own."""
    diff = str(state["git_diff"])
    name = f"code-{hashlib.sha256(diff.encode()).hexdigest()[:12]}.diff" if diff else ""
    document = json.dumps({**state, "git_diff": name}, indent=2) + "\n"
    return {"environment.json": document} | ({name: diff + "\n"} if diff else {})


def read_state(run: RunDir, attempt: int | None = None) -> dict[str, Any]:
    """The `code_state` of the submission or of an attempt, its diff as text; {} if there is none.

    A diff that cannot be read is left out.
    """
    state = read_object(run.environment if attempt is None else run.attempt(attempt).environment)
    name = str(state.get("git_diff") or "")
    if name.startswith("code-"):
        try:
            diff = (run.path / Path(name).name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            del state["git_diff"]
        else:
            state["git_diff"] = diff.removesuffix("\n")  # which `code_files` has put there
    return state


def add_typed(run: RunDir, keys: Collection[str]) -> None:
    """Note keys whose values were typed as the run went on, so that its file has others."""
    state = read_object(run.environment)
    if config := state.get("config"):
        config["typed_since"] = [*dict.fromkeys([*config.get("typed_since", ()), *keys])]
        write_text(run.environment, json.dumps(state, indent=2) + "\n")


def attempt_environment(run: RunDir, plan: Plan, number: int, **more: Any) -> None:
    """Write the code of an attempt as it begins."""
    state = code_state(Path(plan.workdir), packages_of(plan))
    files = code_files({"git_diff": "", **state, **more})
    write_text(run.attempt(number).environment, files.pop("environment.json"), durable=False)
    for name, text in files.items():
        if not (run.path / name).exists():
            write_text(run.path / name, text, durable=False)


def code_changes(run: RunDir) -> str:
    """The files of its code that differ now from the submission; empty where none is known to.

    Where the project's folder was left, the code is looked for in the one that the command is typed
    in, and where it was copied with the run, in the copy, as a run that goes on does.
    """
    before = read_state(run)  # a rendered script's run has none
    plan = read_plan(run)
    if not before:
        return ""
    workdir = copied_project(run, plan) or Path(plan.workdir)
    workdir = Path.cwd() if how_it_was_left(run, plan) else workdir
    now = code_state(workdir, packages_of(plan))
    return named_files(imported_edits(run, before, now))


def newer_than_copy(run: RunDir) -> tuple[str, CodeCopy] | None:
    """The files that the project has otherwise than the run's copy of its code, and that copy.

    None where the run has no copy, or nothing that it imports differs.
    """
    plan = read_plan(run)
    workdir = Path(plan.workdir)
    copy = copy_at(workdir)
    if copy is None or not workdir.is_dir() or not copy.original.is_dir():
        return None
    copied, now = (_sources(it, packages_of(plan)) for it in (workdir, copy.original))
    project = Path(copy.selection.project)
    files = imported_by(run, copy.original, project, _differing(copied, now))
    return (named_files(files), copy) if files else None


def edited_meanwhile(run: RunDir, before: int | None) -> list[str]:
    """Sources that a next attempt takes otherwise than attempt `before`, or the submission, did.

    None where the run has a copy of its code, or no record of it. It is asked often: git is not,
    and only files that were written since the record are read.
    """
    record = run.environment if before is None else run.attempt(before).environment
    known: dict[str, str] = read_state(run, before).get("sources") or {}
    workdir = Path(read_plan(run).workdir)
    if not known or copy_at(workdir) or not workdir.is_dir():
        return []
    since = record.stat().st_mtime - _RECORD_S
    edited = [name for name, was in known.items() if _is_edited(workdir / name, since, was)]
    gone = gone_of(edited, (workdir,))
    told = imported_by(run, workdir, workdir, edited)
    return [f"{name} (deleted)" if name in gone else name for name in told]


def _is_edited(file: Path, since: float, was: str) -> bool:
    try:
        # By its inode's time: an older file may have taken its place.
        return file.stat().st_ctime > since and _hash(file.read_bytes()) != was
    except FileNotFoundError:
        return True
    except OSError:
        return False


def state_before(run: RunDir, attempt: int) -> tuple[int | None, dict[str, Any]]:
    """The attempt before that has a record of its code, and the record; else the submission's."""
    for number in range(attempt - 1, -1, -1):
        if state := read_state(run, number):
            return number, state
    return None, read_state(run)


def edited_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The Python files whose text differs between two `code_state`s of one folder.

    Unlike `code_change` it passes over a commit of what was there already, and over other files
    of the repository, such as the next training's config.
    """
    files = _differing(before.get("sources"), now.get("sources"))
    diff = _diff_against(str(before.get("git_commit") or ""), now)
    if "git_diff" not in before or diff is None or before.get("workdir") != now.get("workdir"):
        return files
    known = {*(before.get("sources") or ()), *(now.get("sources") or ())}
    in_git = _differing(_by_file(before["git_diff"]), _by_file(diff))
    in_git = [name for name in in_git if name.endswith(".py")]
    return files + [
        name for name in in_git if not any(f"/{name}".endswith(f"/{file}") for file in known)
    ]


def imported_edits(run: RunDir, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Of `edited_files` those that the run imports, as far as that is known.

    One that is not there any more is told as `nets.py (deleted)`.
    """
    files = edited_files(before, now)
    workdir = Path(str(now.get("workdir", "")))
    top = Path((_git(workdir, "rev-parse", "--show-toplevel") if files else "") or workdir)
    told = imported_by(run, workdir, top, files)
    gone = gone_of(told, (workdir, top))
    return [f"{name} (deleted)" if name in gone else name for name in told]


def gone_sources(run: RunDir, workdir: Path) -> list[str]:
    """Sources that the submission had, from `workdir`, and that are gone since.

    None where the run's code lies elsewhere by now: a copy of it, or a project that was moved.
    """
    before = read_state(run)
    if before.get("workdir") != str(workdir):
        return []
    return gone_of([*(before.get("sources") or ())], (workdir,))


def _diff_against(commit: str, now: Mapping[str, Any]) -> str | None:
    """What differs from this commit, as far as git still has it."""
    if not commit or commit == now.get("git_commit"):
        return now.get("git_diff") if commit else None
    workdir = Path(str(now.get("workdir", "")))
    if not _git(workdir, "cat-file", "-t", commit):
        return None
    return _git(workdir, "diff", commit, "--", ":/*.py")[:DIFF_LIMIT]


def packages_of(plan: Plan) -> set[str]:
    """Folders with the training's code, from `workdir`; a script's own is one of them."""
    if plan.script is not None:
        folder = Path(plan.script.path).parent
        return set() if folder.is_absolute() or ".." in folder.parts else {str(folder)} - {"."}
    objects = (plan.training.model, plan.training.data)
    return {item.class_path.partition(".")[0] for item in objects}


@dataclass(frozen=True)
class CodeChange:
    """Files by their names, and two commits where these differ."""

    files: tuple[str, ...] = ()
    commit: tuple[str, str] | None = None


def named_files(files: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(files) - SHOWN_FILES
    return ", ".join([*files[:SHOWN_FILES], *([f"{more} more files"] if more > 0 else [])])


def code_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> CodeChange:
    """What differs between two `code_state`s; what is not known of one of them is not compared."""
    files = _differing(before.get("sources"), now.get("sources"))
    if "git_diff" in before and "git_diff" in now:
        in_git = _differing(_by_file(before["git_diff"]), _by_file(now["git_diff"]))
        # git counts from the repository's root, which may be above the folder of the sources.
        files += [name for name in in_git if not any(name.endswith(file) for file in files)]
    old, new = (str(state.get("git_commit") or "") for state in (before, now))
    return CodeChange(tuple(files), (old, new) if old and new and old != new else None)


def _differing(before: Mapping[str, str] | None, now: Mapping[str, str] | None) -> list[str]:
    if before is None or now is None:
        return []
    return sorted(name for name in before.keys() | now if before.get(name) != now.get(name))


def _by_file(diff: str) -> dict[str, str]:
    parts = re.split(r"^diff --git a/(.*) b/.*$", diff, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _sources(workdir: Path, packages: Collection[str]) -> dict[str, str]:
    files = [*workdir.glob("*.py")]
    files += [file for name in packages for file in (workdir / name).rglob("*.py")]
    hashes = {}
    for file in sorted(files)[:SOURCES_LIMIT]:
        try:
            content = file.read_bytes()
        except OSError:
            continue  # a folder of that name, or one that may not be read
        hashes[file.relative_to(workdir).as_posix()] = _hash(content)
    return hashes


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _git(workdir: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(workdir), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""
