"""What Slurm knows of jobs: one query for all of them, and the details of one from inside it.

Text with named fields, not JSON, whose form differs by version. squeue with `--states=all` also
shows what ended within MinJobAge (slurm.conf(5)); older endings come from sacct where there is one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from hpc_train.errors import SlurmError
from hpc_train.plan.hostlist import expand
from hpc_train.plan.states import RunState, run_state_of_slurm
from hpc_train.slurm.command import SACCT, is_available, run

# Above this many jobs the list of ids is left out and all of the user's jobs are read instead.
IDS_IN_ONE_COMMAND = 500
BLANK = ("None", "None assigned", "N/A", "Unknown", "(null)")
SACCT_FIELDS = "JobID,State,Reason,Start"
FEDERATED = 1 << 26
# A cluster's record of a job that another one of its federation runs.
ELSEWHERE = "REVOKED"
# Else the tasks of a long array are cut after 64 characters (sacct(1), ENVIRONMENT VARIABLES).
WHOLE_IDS = "SLURM_BITSTR_LEN"
ENDLESS_S = 364.9 * 86400.0
_TIME = "%Y-%m-%dT%H:%M:%S"  # local to where squeue runs
# A person waits for these. squeue itself would try a controller that is stopped for a minute.
SQUEUE_S = 2.0
SACCT_S = 20.0


@dataclass(frozen=True)
class JobView:
    """A job, or one task of an array (`ARRAY_TASK`), as the scheduler sees it from outside."""

    job_id: str
    slurm_state: str
    reason: str = ""
    start: str = ""  # began, or the scheduler's estimate
    end: str = ""  # of one that runs: its time limit
    dependency: str = ""  # of one that waits: `afterok:61(unfulfilled)`
    script: str = ""  # its path, where squeue told all of the user's jobs

    @property
    def state(self) -> RunState:
        """The state in our words."""
        return run_state_of_slurm(self.slurm_state)

    @property
    def span_s(self) -> tuple[float, float] | None:
        """Start and time limit, in seconds since the epoch; None where squeue does not tell both.

        Of a job without a limit it tells a year, and more of one that was suspended
        (`job_end_time_reset` in job_mgr.c).
        """
        start, end = seconds_of(self.start), seconds_of(self.end)
        if start is None or end is None or end - start >= ENDLESS_S:
            return None
        return start, end

    def starts_in_s(self, now: float) -> float:
        """Until the start that the scheduler estimates; 0 where it tells none."""
        start = seconds_of(self.start)
        return 0.0 if start is None else start - now


def seconds_of(text: str) -> float | None:
    """A time in Slurm's form, in seconds since the epoch; None for what is none."""
    try:
        return time.mktime(time.strptime(text, _TIME))
    except ValueError:
        return None


@dataclass(frozen=True)
class JobDetails:
    """One job in `scontrol show job`, as fields by Slurm's own names."""

    fields: Mapping[str, str]

    def get(self, name: str) -> str:
        """A field's text; empty where Slurm has none or says `(null)`."""
        value = self.fields.get(name, "")
        return "" if value in ("(null)", "None", "N/A", "Unknown") else value

    @property
    def preempted(self) -> bool:
        """Whether Slurm has begun to preempt it (the grace may still run)."""
        return bool(self.get("PreemptTime"))

    @property
    def is_ending(self) -> bool:
        """Whether Slurm ends it at this moment, as it does after scancel."""
        return self.get("JobState").startswith(("CANCELLED", "COMPLETING"))

    @property
    def is_alive(self) -> bool:
        """Whether it runs or waits."""
        return not run_state_of_slurm(self.get("JobState")).ended

    def is_of(self, uid: int) -> bool:
        """Whether it is this user's (`UserId=name(1000)`)."""
        return self.get("UserId").endswith(f"({uid})")

    @property
    def restarts(self) -> int:
        """How often it was put back into the queue, the present time included."""
        return int(self.get("Restarts") or 0)

    @property
    def may_requeue(self) -> bool:
        """Whether the job allows `scontrol requeue` (sbatch --requeue, JobRequeue)."""
        return self.get("Requeue") == "1"


def is_federated(job_id: str) -> bool:
    """Whether any cluster of a federation may run the job.

    The upper bits of its id name the cluster that took it (slurm.conf(5), MaxJobId).
    """
    return job_id.isdigit() and int(job_id) >= FEDERATED


def query_jobs(job_ids: Collection[str], *, of_user: bool = False) -> dict[str, JobView]:
    """All of the given jobs that Slurm still knows, by id: one squeue, and one sacct for the rest.

    Args:
        job_ids: The jobs.
        of_user: They are all this user's, whose other jobs are given as well, by the same squeue.

    Raises:
        SlurmError: when squeue cannot be asked, or gives no answer in `SQUEUE_S`. A missing,
            failing or silent sacct is no error.
    """
    if not job_ids and not of_user:
        return {}
    seen = _ask_squeue(job_ids, of_user=of_user)
    found = {view.job_id: view for view in seen if of_user or view.job_id in job_ids}
    missing = [job_id for job_id in job_ids if job_id not in found]
    if missing and is_available("sacct"):
        found |= _from_sacct(missing)
    return found


@dataclass(frozen=True)
class PendingJob:
    """A job that waits: since when, why by squeue's %r, and the start that Slurm expects, if any.

    Times are in Slurm's form, local to the cluster.
    """

    job_id: str
    reason: str
    submitted: str
    start: str


def pending_job(name: str) -> PendingJob | None:
    """The user's job of that name, while it waits; None also where squeue cannot be asked."""
    argv = ["squeue", "--me", f"--name={name}", "--noheader", "--states=PENDING"]
    try:
        said = run([*argv, "--format=%A|%r|%V|%S"], timeout_s=30)
    except SlurmError:
        return None
    cells = said.stdout.strip().split("|")
    if len(cells) != 4:
        return None
    job_id, reason, submitted, start = ("" if cell in BLANK else cell for cell in cells)
    return PendingJob(job_id, reason, submitted, start)


def job_details(job_id: str, *, timeout_s: float = 30) -> JobDetails:
    """What the controller knows of one job.

    Raises:
        SlurmError: when it cannot be asked or does not know the job.
    """
    # --local: in a federation the cluster that took the job would be asked for it, which knows
    # neither its preemption nor its restarts, and which nodes may not reach.
    said = run(["scontrol", "--local", "show", "job", "-o", job_id], timeout_s=timeout_s)
    if said.returncode != 0:
        raise SlurmError(f"scontrol does not know job {job_id}: {said.stderr.strip()}")
    return JobDetails(dict(re.findall(r"(?:^|\s)([A-Za-z:]+)=(\S*)", said.stdout)))


def jobs_forgotten(job_ids: Collection[str]) -> list[str]:
    """Those of the jobs and arrays that the controller does not know, or no longer (MinJobAge).

    Raises:
        SlurmError: when it cannot be asked.
    """
    seen = [view.job_id for view in _ask_squeue(job_ids)]
    known = {*seen, *_whole_jobs(seen)}
    return [job_id for job_id in job_ids if job_id not in known]


def _ask_squeue(job_ids: Collection[str], *, of_user: bool = False) -> list[JobView]:
    asked = _whole_jobs(job_ids)
    by_ids = len(asked) <= IDS_IN_ONE_COMMAND and not of_user
    whose = ["--jobs", ",".join(asked)] if by_ids else ["--me"]
    if any(map(is_federated, asked)):
        whose.append("--sibling")  # a line of each cluster that knows the job
    # --array: else the tasks of an array that wait are one line, `123_[4-9%2]`.
    argv = ["squeue", "--array", "--noheader", "--states=all", *whose]
    scripts = "|%o" if of_user else ""
    said = run([*argv, f"--format=%i|%T|%r|%S|%e|%E{scripts}"], timeout_s=SQUEUE_S)
    if said.returncode != 0 and "Invalid job id" not in said.stderr:
        raise SlurmError(
            f"squeue: {said.stderr.strip()}", "`scontrol ping` tells whether the controller is up"
        )
    return _views(said.stdout)


def live_scripts(*, ended_too: bool = False) -> dict[str, str]:
    """The paths of the scripts of the user's jobs that wait or run, by job id.

    Of a job that sbatch was given on its standard input it is no path. Empty where Slurm does not
    answer. Never raises.

    Args:
        ended_too: Also of those that have ended, which Slurm forgets after a while.
    """
    states = ["--states=all"] if ended_too else []
    argv = ["squeue", "--me", "--noheader", "--array", *states, "--format=%i|%o"]
    try:
        said = run(argv, timeout_s=SQUEUE_S)
    except SlurmError:
        return {}
    rows = (line.partition("|") for line in said.stdout.splitlines())
    return {job_id: script for job_id, _, script in rows} if said.returncode == 0 else {}


def steps_of(job_id: str) -> list[str]:
    """The steps of a job (`JOB.STEP`) that srun has started and that have not ended.

    Raises:
        SlurmError: when Slurm cannot be asked.
    """
    argv = ["squeue", "--local", "--steps", "--noheader", f"--jobs={job_id}", "--format=%i"]
    said = run(argv, timeout_s=30)
    if said.returncode != 0:
        raise SlurmError(f"squeue --steps: {said.stderr.strip()}")
    return [step for step in said.stdout.split() if step.rpartition(".")[2].isdigit()]


def jobs_of_scripts(prefix: str) -> frozenset[str]:
    """The user's waiting and running jobs whose script's path begins with `prefix`.

    Of an array it is the array's own id, whichever tasks of it are left.

    Raises:
        SlurmError: when Slurm cannot be asked.
    """
    said = run(["squeue", "--local", "--me", "--noheader", "--format=%F|%o"], timeout_s=30)
    if said.returncode != 0:
        raise SlurmError(f"squeue: {said.stderr.strip()}")
    rows = (line.partition("|") for line in said.stdout.splitlines())
    return frozenset(job_id for job_id, _, script in rows if script.startswith(prefix))


def _from_sacct(job_ids: Collection[str]) -> dict[str, JobView]:
    jobs = ",".join(_whole_jobs(job_ids))
    argv = [*SACCT, "-X", f"--jobs={jobs}", f"--format={SACCT_FIELDS}"]
    try:
        said = run(argv, timeout_s=SACCT_S, env={**os.environ, WHOLE_IDS: "0"})
    except SlurmError:
        return {}
    if said.returncode != 0:
        return {}  # no accounting at this site: squeue's answer is all there is
    return {
        job_id: replace(view, job_id=job_id)
        for view in _views(said.stdout)
        for job_id in _tasks(view.job_id)
    }


def _whole_jobs(job_ids: Collection[str]) -> list[str]:
    """The jobs of these ids, an array once for all of its tasks."""
    return list(dict.fromkeys(job_id.partition("_")[0] for job_id in job_ids))


def _tasks(job_id: str) -> list[str]:
    """The ids in one line of sacct: `123_[4-6,9%2]` are tasks that ended before they began."""
    return expand(re.sub(r"%\d+(?=\]$)", "", job_id)) if "[" in job_id else [job_id]


def _views(text: str) -> list[JobView]:
    """The jobs in lines of squeue or sacct; of one that several clusters know, what holds last."""
    views = [view for view in map(_view, text.splitlines()) if view]
    return sorted(
        (view for view in views if view.slurm_state != ELSEWHERE),
        key=lambda view: (
            view.slurm_state != "REQUEUED",  # where it ran before (sacct alone)
            not view.state.ended,
            view.state is not RunState.PENDING,
        ),
    )


def _view(line: str) -> JobView | None:
    """The fields of a line, empty where Slurm says that there is none."""
    cells = ["" if cell in BLANK else cell for cell in line.split("|", 6)]
    return JobView(*cells) if 4 <= len(cells) <= 7 else None
