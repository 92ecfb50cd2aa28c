"""The Python interface of hpc-train for notebooks and scripts; the commands are made of it.

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

from hpc_train.errors import ConfigError, HpcTrainError, RunFailedError, SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.states import RunState
from hpc_train.runs.layout import RunDir

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.runs.status import RunStatus
    from hpc_train.slurm.control import StartEstimate
    from hpc_train.training.resume.checkpoint import CheckedCheckpoint

__all__ = ["Run", "load", "plan", "prepare", "render", "run_here", "runs", "submit", "test_only"]

POLL_S = 0.5
ASK_SLURM_EVERY_S = 10.0


def load(path: str | Path, *overrides: str, **flags: object) -> LoadedConfig:
    """Read a config, check it against what is installed here, and keep where each value came from.

    Args:
        path: The YAML file.
        overrides: `key=value`, the last one wins.
        flags: As the options of `hpc-train submit` (`config.flags`): `nodes=3`, `gpus=4`.

    Raises:
        ConfigError: with file, line, key, and what to write instead.
    """
    from hpc_train.config.load import load as read
    from hpc_train.config.validate import check

    loaded = read(path, overrides, flags=flags)
    check(loaded, workdir=Path.cwd())
    return loaded


def plan(loaded: LoadedConfig, *, for_script: bool = False) -> Plan:
    """Decide everything that follows from the config.

    Args:
        for_script: The plan is to work wherever its script is submitted from.

    Raises:
        CheckError: for a batch size that the shape cannot split; ConfigError for other values.
    """
    from hpc_train.plan.from_config import make_plan

    here = Path.cwd()
    decided = make_plan(
        loaded.config,
        workdir=here,
        python=sys.executable,
        for_script=for_script,
        origins=loaded.origins,
    )
    if decided.preflight.thresholds or decided.preflight.network:
        from hpc_train.preflight.run_preflight import check_sections

        check_sections(decided.preflight)
    return decided


def render(loaded: LoadedConfig) -> str:
    """The sbatch script that does by itself what `submit` does."""
    from hpc_train.plan.script import render_script

    return render_script(plan(loaded, for_script=True))


def prepare(loaded: LoadedConfig) -> Run:
    """Make the run directory with config, plan and script; nothing is submitted yet.

    Raises:
        ConfigError: when `runs_dir` cannot be written.
    """
    from concurrent.futures import ThreadPoolExecutor

    from hpc_train.config.show import to_yaml
    from hpc_train.plan.quoting import slug
    from hpc_train.plan.script import render_script
    from hpc_train.runs.provenance import code_state
    from hpc_train.runs.registry import create_run, new_run_id, remember_root

    portable, here = plan(loaded, for_script=True), Path.cwd()
    decided = portable.placed(str(here), str(here / portable.runs_dir))
    runs_dir, folder, run_id = Path(decided.runs_dir), slug(decided.name), new_run_id(time.time())
    directory = RunDir(runs_dir / folder / run_id)
    with ThreadPoolExecutor(max_workers=1) as beside:  # git answers while jinja2 is imported
        state = beside.submit(code_state, Path(decided.workdir))
        files = {
            directory.config.name: to_yaml(loaded.config),
            directory.script.name: render_script(portable, run_dir=str(directory.path)),
            directory.environment.name: state.result(),
            directory.plan.name: decided.to_json(),
        }
    create_run(runs_dir, folder, run_id, files)
    remember_root(os.environ, runs_dir)
    return Run(directory)


def submit(loaded: LoadedConfig, *, cluster: str | None = None) -> Run:
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


def test_only(loaded: LoadedConfig) -> StartEstimate:
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


def run_here(loaded: LoadedConfig) -> tuple[Run, int]:
    """Train in the foreground: on this machine, or in the allocation of an `salloc`.

    Returns:
        The run and the supervisor's exit code.
    """
    from hpc_train.supervisor.run import supervise

    run = prepare(loaded)
    run.note_submission("foreground", os.environ.get("SLURM_JOB_ID", ""), time.time())
    return run, supervise(run.directory, os.environ, batch=False)


def runs(runs_dir: Path | None = None) -> list[RunStatus]:
    """The status of every run there is, the newest first, by one query of Slurm for all of them."""
    return statuses(Run.all(runs_dir))


def statuses(wanted: Sequence[Run]) -> list[RunStatus]:
    """The status of some runs, by one query of Slurm for all of them."""
    from hpc_train.backends.observe import observe

    return observe([run.directory for run in wanted], time.time())


@dataclass(frozen=True)
class Run:
    """A run: one training, from its first submission to its end."""

    directory: RunDir

    @classmethod
    def all(cls, runs_dir: Path | None = None) -> list[Run]:
        """All runs there are, the newest first."""
        from hpc_train.runs.registry import all_runs

        return [cls(directory) for directory in all_runs(_folders(runs_dir))]

    @classmethod
    def find(cls, reference: str, runs_dir: Path | None = None) -> Run:
        """The run that a name, a run id, a run directory or a job id means.

        Raises:
            NoSuchRunError: when none does.
        """
        from hpc_train.runs.registry import find_run

        return cls(find_run(reference, _folders(runs_dir)))

    def status(self) -> RunStatus:
        """What is known of the run now."""
        return statuses([self])[0]

    def start(self, cluster: str) -> str:
        """Submit the run, for the first time or again.

        Returns:
            The job id.
        """
        from hpc_train.backends.submit import submit_local

        began = time.time()
        left_out: tuple[str, ...] = ()
        if cluster == "slurm":
            job_id, left_out = self._to_slurm()
        else:
            job_id = submit_local(self.directory, os.environ)
        self.note_submission(cluster, job_id, began, left_out)
        return job_id

    def _to_slurm(self) -> tuple[str, tuple[str, ...]]:
        """Submit without the nodes that are remembered as bad, or with them where none else are."""
        from hpc_train.backends.submit import remembered_nodes, submit_slurm

        decided = Plan.from_json(self.directory.plan.read_text(encoding="utf-8"))
        bad = remembered_nodes(os.environ, time.time())
        if bad:
            try:
                return submit_slurm(self.directory, decided, bad), bad
            except SlurmError:
                # Too few nodes are left, or a name is no node any more: the preflight will tell.
                return submit_slurm(self.directory, decided), ()
        return submit_slurm(self.directory, decided), ()

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
        run = self.directory
        return (run.latest_attempt if attempt is None else run.attempt(attempt)).rank_log(rank)

    def logs(self, rank: int = 0, attempt: int | None = None) -> str:
        """What one rank has written so far.

        Raises:
            RunFailedError: when there is no such log.
        """
        try:
            return self.log_file(rank, attempt).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError as error:
            raise RunFailedError(f"rank {rank} has no log yet: {error.filename}") from error

    def checkpoints(self, *, verify: bool = False) -> list[CheckedCheckpoint]:
        """The run's checkpoints, newest first; `verify` reads every file and compares its hash."""
        from hpc_train.training.resume.checkpoint import list_checkpoints

        return list_checkpoints(self.directory.checkpoints, verify=verify)

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

    def resume(self, *overrides: str, cluster: str | None = None, **flags: object) -> str:
        """Submit the run again; it goes on from its newest valid checkpoint.

        Args:
            overrides: `key=value` of anything that does not make another training.
            cluster: `slurm` or `local`; by default where it was.
            flags: As the options of `hpc-train submit`: `nodes=3`, `gpus=4`.

        Returns:
            The job id.

        Raises:
            HpcTrainError: when it still runs or is complete.
            ConfigError: when it would be another training.
        """
        status = self.status()
        if not status.state.ended:
            raise HpcTrainError(
                f"{status.name} ({status.run}) is {status.state.value} as job {status.job_id}",
                f"hpc-train cancel {status.run} ends it",
            )
        if status.state is RunState.COMPLETED:
            raise HpcTrainError(
                f"{status.name} ({status.run}) is complete; there is nothing to go on with",
                "to train longer, submit a config with a larger trainer.max_epochs or max_steps",
            )
        if overrides or any(value is not None for value in flags.values()):
            self._plan_again(overrides, flags)
        self.directory.stop.unlink(missing_ok=True)
        return self.start(cluster or ("slurm" if status.backend == "slurm" else "local"))

    def _plan_again(self, overrides: Sequence[str], flags: dict[str, object]) -> None:
        """Decide anew in another shape, and keep the plan before it beside the new one."""
        from hpc_train.config.load import load as read
        from hpc_train.plan.from_config import make_plan
        from hpc_train.plan.script import render_script
        from hpc_train.runs.atomic import write_text

        directory = self.directory
        before = Plan.from_json(directory.plan.read_text(encoding="utf-8"))
        if not directory.config.is_file():
            raise ConfigError(
                f"{directory.path} was made by a rendered script, which carries no config",
                "go on in the same shape (resume without options), or submit the config anew",
            )
        loaded = read(directory.config, overrides, flags=flags)
        portable = make_plan(
            loaded.config,
            workdir=before.workdir,
            python=before.shell.python,
            for_script=True,
            origins=loaded.origins,
        )
        again = portable.placed(before.workdir, before.runs_dir)
        if again.config_hash != before.config_hash:
            raise ConfigError(
                "the overrides make another training: model, data, trainer, seed and"
                " global_batch_size stay as they are in a run",
                "submit the changed config as a run of its own",
            )
        kept = directory.path / f"plan-before-{time.strftime('%Y%m%d-%H%M%S')}.json"
        write_text(kept, before.to_json())
        write_text(directory.script, render_script(portable, run_dir=str(directory.path)))
        write_text(directory.plan, again.to_json())

    def note_submission(
        self, backend: str, job_id: str, began: float, left_out: tuple[str, ...] = ()
    ) -> None:
        """Write the submission into the history, with the time before the job could start."""
        from hpc_train.runs.events import Event, EventKind, append_event

        data = {"job_id": job_id, "backend": backend, "left_out": list(left_out)}
        append_event(self.directory.events, Event(began, EventKind.SUBMITTED, data))


def _folders(runs_dir: Path | None) -> list[Path]:
    from hpc_train.runs.registry import roots

    return [runs_dir.absolute()] if runs_dir else roots(os.environ, Path.cwd())
