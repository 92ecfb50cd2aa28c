"""The notebook's face of hpc-train, and what the commands are made of.

    import hpc_train

    loaded = hpc_train.load("configs/digits.yaml", "model.init_args.lr=0.01", nodes=3, gpus=4)
    print(hpc_train.render(loaded))
    run = hpc_train.submit(loaded)
    run.wait()
    run.status().metrics

Nothing here imports torch or lightning, and submitit and jinja2 only when something is submitted.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.errors import HpcTrainError, RunFailedError, SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.store.layout import RunDir

if TYPE_CHECKING:
    from hpc_train.config.load import Loaded
    from hpc_train.report.status import RunStatus
    from hpc_train.slurm.control import StartEstimate

__all__ = ["Run", "load", "plan", "prepare", "render", "run_here", "runs", "submit", "test_only"]

POLL_S = 0.5
ASK_SLURM_EVERY_S = 10.0
FLAG_KEYS = {
    "nodes": "slurm.nodes",
    "gpus": "slurm.gpus_per_node",
    "time": "slurm.time",
    "partition": "slurm.partition",
    "account": "slurm.account",
    "qos": "slurm.qos",
    "name": "name",
    "runs_dir": "runs_dir",
}


def load(path: str | Path, *overrides: str, **flags: object) -> Loaded:
    """Read a config, check it against what is installed here, and keep where each value came from.

    Args:
        path: The YAML file.
        overrides: `key=value`, the last one wins.
        flags: `nodes`, `gpus`, `time`, `partition`, `account`, `qos`, `name`, `runs_dir`.

    Raises:
        ConfigError: with file, line, key, and what to write instead.
    """
    from hpc_train.config.checks import check
    from hpc_train.config.load import load as read

    named = {FLAG_KEYS[name]: value for name, value in flags.items() if value is not None}
    loaded = read(path, overrides, flags=named)
    check(loaded, workdir=Path.cwd())
    return loaded


def plan(loaded: Loaded, *, for_script: bool = False) -> Plan:
    """Decide everything that follows from the config.

    Args:
        for_script: The plan is to work wherever its script is submitted from.

    Raises:
        CheckError: for a batch size that the shape cannot split; ConfigError for other values.
    """
    from hpc_train.plan.build import make_plan

    return make_plan(
        loaded.config, workdir=Path.cwd(), python=sys.executable, for_script=for_script
    )


def render(loaded: Loaded) -> str:
    """The sbatch script that does by itself what `submit` does."""
    from hpc_train.plan.script import render_script

    return render_script(plan(loaded, for_script=True))


def prepare(loaded: Loaded) -> Run:
    """Make the run directory with config, plan and script; nothing is submitted yet.

    Raises:
        ConfigError: when `runs_dir` cannot be written.
    """
    from hpc_train.config.show import to_yaml
    from hpc_train.plan.quoting import slug
    from hpc_train.plan.script import render_script
    from hpc_train.store.provenance import code_state
    from hpc_train.store.runs import create_run, new_run_id, remember_root

    decided = plan(loaded)
    runs_dir, folder, run_id = Path(decided.runs_dir), slug(decided.name), new_run_id(time.time())
    directory = RunDir(runs_dir / folder / run_id)
    files = {
        directory.config.name: to_yaml(loaded.config),
        directory.script.name: render_script(decided, run_dir=str(directory.path)),
        directory.environment.name: code_state(Path(decided.workdir)),
        directory.plan.name: decided.to_json(),
    }
    create_run(runs_dir, folder, run_id, files)
    remember_root(os.environ, runs_dir)
    return Run(directory)


def submit(loaded: Loaded, *, cluster: str | None = None) -> Run:
    """Submit a training.

    Args:
        cluster: `slurm` or `local`; by default Slurm where there is one.

    Raises:
        SlurmError: when Slurm refuses; nothing stays behind.
        ConfigError: when the run directory cannot be made.
    """
    from hpc_train.backends.submit import detect_cluster

    where = cluster or detect_cluster()
    run = prepare(loaded)
    try:
        run.start(where)
    except SlurmError:
        shutil.rmtree(run.directory.path)
        raise
    return run


def test_only(loaded: Loaded) -> StartEstimate:
    """Slurm's own verdict on the job and its estimate of the start; nothing is submitted.

    Raises:
        SlurmError: with Slurm's words and the key to change.
    """
    import tempfile

    from hpc_train.slurm.control import test_only as ask

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "job.sbatch"
        script.write_text(render(loaded), encoding="utf-8")
        return ask(script)


def run_here(loaded: Loaded) -> tuple[Run, int]:
    """Train in the foreground: on this machine, or in the allocation of an `salloc`.

    Returns:
        The run and the supervisor's exit code.
    """
    from hpc_train.supervise.run import supervise

    run = prepare(loaded)
    run.note_submission("foreground", os.environ.get("SLURM_JOB_ID", ""))
    return run, supervise(run.directory, os.environ, batch=False)


def runs(runs_dir: Path | None = None) -> list[RunStatus]:
    """The status of every run there is, by one query of Slurm for all of them."""
    from hpc_train.store.runs import iter_runs, roots

    folders = [runs_dir] if runs_dir else roots(os.environ, Path.cwd())
    return statuses([Run(directory) for directory in iter_runs(folders)])


def statuses(wanted: Sequence[Run]) -> list[RunStatus]:
    """The status of some runs, by one query of Slurm for all of them."""
    from hpc_train.backends.observe import observe

    return observe([run.directory for run in wanted], time.time())


@dataclass(frozen=True)
class Run:
    """A run: one training, from its first submission to its end."""

    directory: RunDir

    @classmethod
    def find(cls, reference: str, runs_dir: Path | None = None) -> Run:
        """The run that a name, a run id, a run directory or a job id means.

        Raises:
            NoSuchRunError: when none does.
        """
        from hpc_train.store.runs import find_run, roots

        folders = [runs_dir] if runs_dir else roots(os.environ, Path.cwd())
        return cls(find_run(reference, folders))

    def status(self) -> RunStatus:
        """What is known of the run now."""
        return statuses([self])[0]

    def start(self, cluster: str) -> str:
        """Submit the run, for the first time or again.

        Returns:
            The job id.
        """
        from hpc_train.backends import submit as doors

        if cluster == "slurm":
            decided = Plan.from_json(self.directory.plan.read_text(encoding="utf-8"))
            job_id = doors.submit_slurm(self.directory, decided)
        else:
            job_id = doors.submit_local(self.directory, os.environ)
        self.note_submission(cluster, job_id)
        return job_id

    def wait(self, timeout_s: float | None = None) -> RunStatus:
        """Wait for the run's end.

        Raises:
            HpcTrainError: when it has not ended after `timeout_s`.
        """
        for status in self.follow(timeout_s):
            last = status
        return last

    def follow(self, timeout_s: float | None = None) -> Iterator[RunStatus]:
        """The run's status about twice a second, until it has ended; Slurm is asked rarely.

        Raises:
            HpcTrainError: when it has not ended after `timeout_s`.
        """
        from hpc_train.backends.observe import observe

        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        ask_at = 0.0
        view = None
        while True:
            now = time.monotonic()
            ask = now >= ask_at
            (status,) = observe([self.directory], time.time(), ask_slurm=ask, known=view)
            if ask:
                ask_at, view = now + ASK_SLURM_EVERY_S, status.state
            yield status
            if status.state.ended:
                return
            if deadline is not None and now > deadline:
                raise HpcTrainError(f"{status.name} is still {status.state.value}")
            time.sleep(POLL_S)

    def log_file(self, rank: int = 0, attempt: int | None = None) -> Path:
        """The log of one rank; it need not be there yet."""
        if attempt is None:
            return self.directory.latest / f"rank-{rank}.log"
        return self.directory.attempt(attempt).rank_log(rank)

    def logs(self, rank: int = 0, attempt: int | None = None) -> str:
        """What one rank has written so far.

        Raises:
            RunFailedError: when there is no such log.
        """
        try:
            return self.log_file(rank, attempt).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError as error:
            raise RunFailedError(f"rank {rank} has no log yet: {error.filename}") from error

    def cancel(self) -> RunStatus:
        """End the run for good; it can be brought back with `resume`.

        Raises:
            HpcTrainError: when it has ended already; SlurmError when Slurm refuses.
        """
        from hpc_train.backends.observe import cancel_run

        status = self.status()
        if status.state.ended and status.state is not RunState.LOST:
            raise HpcTrainError(f"{status.name} ({status.run}) is already {status.state.value}")
        cancel_run(self.directory, status)
        return status

    def note_submission(self, backend: str, job_id: str) -> None:
        """Write the submission into the diary."""
        from hpc_train.store.events import Event, EventKind, append_event

        data = {"job_id": job_id, "backend": backend}
        append_event(self.directory.events, Event(time.time(), EventKind.SUBMITTED, data))
