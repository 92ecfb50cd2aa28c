"""Runs whose folder is not where their job has it: moved to another place, or removed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpc_train.backends.observe import SlurmAnswer, ask_slurm
from hpc_train.backends.rendered_job import names_of_script, refuse_ended, run_of_id
from hpc_train.errors import NoSuchRunError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import find_run
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir
from hpc_train.slurm.command import is_available
from hpc_train.slurm.jobs import JobView, live_scripts


def moved_run(word: str, folders: Sequence[Path]) -> tuple[RunDir, Path] | None:
    """The run of a job that is alive, where it lies now, and where it was under that name.

    Args:
        word: The name that its folder had, which no run answers to.
        folders: Of runs, in which it is looked for by its id.
    """
    for _, run_id, was in _gone(word, live_scripts() if is_available("squeue") else {}):
        try:
            return find_run(run_id, folders), was
        except NoSuchRunError:
            continue
    return None


def refuse_removed(word: str) -> None:
    """Raise for the name or the id of a run whose job has ended, and whose folder is gone.

    Else nothing, also where Slurm has forgotten that job.
    """
    if re.fullmatch(r"\d+(_\d+)?", word) or not is_available("squeue"):
        return  # by the number it is told anyway
    found = [job_id for job_id, _, _ in _gone(word, live_scripts(ended_too=True))]
    if found:
        refuse_ended(max(found, key=lambda it: [*map(int, re.findall(r"\d+", it))]))


def _gone(word: str, scripts: dict[str, str]) -> Iterator[tuple[str, str, Path]]:
    """Jobs of such a name or id, the ids of their runs, and the folders, which are not there.

    Args:
        word: The name or the id; empty for any.
        scripts: By the id of the job.
    """
    for job_id, path in scripts.items():
        names = names_of_script(script := Path(path))
        if names and (not word or word in names) and script.is_absolute():
            folder = next(it for it in script.parents if it.name == names[1])
            if _is_absent(folder):
                yield job_id, names[1], folder


def _is_absent(folder: Path) -> bool:
    """Whether it surely is; a file system that does not answer, or lets nobody look, says less."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


@dataclass
class AskedForAll:
    """Asks Slurm once for jobs, and keeps what the same answer tells of the user's others.

    A run of another user is in no answer about this user's jobs: where there is one, the others
    are not asked for.

    Attributes:
        entries: The runs and sweeps whose jobs are asked about.
        are_all: There is no run whose job could be asked about: Slurm is asked for any.
        others: The user's other jobs, as the answer told them.
    """

    entries: Sequence[RunDir | SweepDir]
    are_all: bool
    others: Sequence[JobView] = field(default=(), init=False)

    def __call__(self, job_ids: Collection[str]) -> SlurmAnswer:
        """What Slurm knows of these; it is not asked where all of some runs have ended."""
        of_user = self.are_all or (bool(job_ids) and all(map(_is_own, self.entries)))
        answer = ask_slurm(job_ids, of_user=of_user)
        self.others = answer.others
        return answer


def _is_own(entry: RunDir | SweepDir) -> bool:
    try:
        return entry.path.stat().st_uid == os.geteuid()
    except OSError:
        return False


def jobs_without_folder(
    jobs: Sequence[JobView], known: Collection[str], runs_dir: Path | None
) -> list[RunStatus]:
    """A status for each run or sweep whose job is alive, and whose folder is nowhere.

    Args:
        jobs: Of the user's.
        known: Ids of runs and sweeps that are listed by themselves, as moved ones.
        runs_dir: Where it was, where that is said; else anywhere.
    """
    alive = {job.job_id: job for job in jobs if not job.state.ended}
    found: dict[str, RunStatus] = {}
    for job_id, run_id, was in _gone("", {it: job.script for it, job in alive.items()}):
        inside = runs_dir is None or runs_dir.absolute() in was.parents
        if run_id in known or run_id in found or not inside or run_of_id(run_id):
            continue
        whole = job_id.partition("_")[0]
        found[run_id] = RunStatus(
            run=run_id,
            name=was.parent.name,
            run_dir=str(was),
            state=alive[job_id].state,
            job_id=whole,
            backend="slurm",
            reason=f"its run's folder is gone; scancel {whole} ends it",
        )
    return sorted(found.values(), key=lambda it: it.run, reverse=True)
