"""The Python interface of hpc-train for notebooks and scripts; the commands are made of it.

    import hpc_train

    loaded = hpc_train.load("configs/digits.yaml", "model.init_args.lr=0.01", nodes=3, gpus=4)
    print(hpc_train.render(loaded))
    run = hpc_train.submit(loaded)
    run.wait()
    run.status().metrics

Nothing here imports torch or lightning, and submitit only when something is submitted.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.config.call_arguments import checked_call, checked_methods
from hpc_train.errors import ConfigError, HpcTrainError, NoSuchRunError, RunFailedError
from hpc_train.plan.plan import Plan, Verb
from hpc_train.plan.states import RunState
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_hints import RunHints
from hpc_train.runs.status import FOREGROUND, RunStatus

if TYPE_CHECKING:
    from hpc_train.backends.replan import NextPlan
    from hpc_train.config.load import LoadedConfig
    from hpc_train.runs.saved_models import SavedModel
    from hpc_train.slurm.control import StartEstimate
    from hpc_train.supervisor.dependents import Priors
    from hpc_train.training.resume.checkpoint import CheckedCheckpoint


@checked_call
def load(
    path: str | Path,
    *overrides: str,
    arguments: Sequence[str] | None = None,
    sweep: Sequence[str] = (),
    **flags: object,
) -> LoadedConfig:
    """Read a config, check it against what is installed here, and keep where each value came from.

    Args:
        path: The YAML file, or a training script, which is called with `arguments`.
        overrides: `key=value`, the last one wins.
        sweep: `key=value,value` or `key=range(3)`: for `submit_sweep`, which checks each point.
        flags: As the options of `hpc-train submit` (`config.flags`): `nodes=3`, `gpus=4`.

    Raises:
        ConfigError: with file, line, key, and what to write instead.
    """
    from hpc_train.config.fit.code_notes import notes_on_code
    from hpc_train.config.load import load as read
    from hpc_train.config.validate import check_training
    from hpc_train.plan.notes import notes_on
    from hpc_train.runs.run_as_config import refuse_run_as_config

    refused: list[ConfigError] = []
    refuse_run_as_config(path)
    loaded = read(path, overrides, arguments=arguments, flags=flags, sweep=sweep, refused=refused)
    loaded.as_read.update(dataclasses.asdict(loaded.config))
    if loaded.config.sweep:
        return loaded
    check_training(loaded, workdir=Path.cwd(), refused=refused)
    if loaded.config.init_from:
        from hpc_train.backends.find_weights import settle_weights
        from hpc_train.runs.registry import folders

        loaded = settle_weights(loaded, folders(None), Path.cwd())
    notes = (*notes_on(loaded.config, loaded.origins), *notes_on_code(loaded, workdir=Path.cwd()))
    return dataclasses.replace(loaded, notes=(*loaded.notes, *notes))


@checked_call
def plan(loaded: LoadedConfig, *, for_script: bool = False) -> Plan:
    """Decide everything that follows from the config.

    Args:
        for_script: The plan is to work wherever its script is submitted from.

    Raises:
        CheckError: for a batch size that the shape cannot split; ConfigError for other values.
    """
    from hpc_train.config.changes import settle_changes
    from hpc_train.config.load import check_loaded
    from hpc_train.config.sweeps.sweep import check_is_one
    from hpc_train.config.values import check_begin
    from hpc_train.plan.from_config import make_plan

    check_loaded(loaded)
    check_is_one(loaded)
    here = Path.cwd()
    settle_changes(loaded, workdir=here)
    if loaded.config.snapshot.mode != "none":
        from hpc_train.backends.code_copy import settle_paths

        settle_paths(loaded.config, here)
    decided = make_plan(
        loaded.config,
        workdir=here,
        python=sys.executable,
        for_script=for_script,
        origins=loaded.origins,
    )
    check_begin(loaded.config.slurm, loaded.origins)
    if decided.preflight.thresholds or decided.preflight.network:
        from hpc_train.preflight.run_preflight import check_sections

        check_sections(decided.preflight, loaded.origins)
    return decided


@checked_call
def render(loaded: LoadedConfig) -> str:
    """The sbatch script that does by itself what `submit` does; of `env`, `setup` is checked."""
    from hpc_train.backends.check_environment import check_setup
    from hpc_train.backends.rendered_config import rendered_from
    from hpc_train.plan.script import render_script

    decided = plan(loaded, for_script=True)
    check_setup(loaded.config.env, loaded.origins)
    kept = rendered_from(loaded, Path.cwd())
    return render_script(dataclasses.replace(decided, rendered_from=kept))


@checked_call
def prepare(loaded: LoadedConfig) -> Run:
    """Make the run directory with config, plan and script; nothing is submitted yet.

    Raises:
        ConfigError: when `env` cannot be had, or `runs_dir` cannot be written.
    """
    from hpc_train.backends.make_run import make_run

    return Run(make_run(loaded, plan(loaded, for_script=True), Path.cwd()))


@checked_call
def submit(loaded: LoadedConfig, *, cluster: str | None = None, after: Priors | None = None) -> Run:
    """Submit a training.

    Args:
        cluster: `slurm` or `local`; by default Slurm where there is one.
        after: A run or a sweep, or several, to be complete before this one begins.

    Raises:
        SlurmError: when Slurm refuses; nothing stays behind.
        ConfigError: when the run directory cannot be made.
    """
    from hpc_train.backends.look_at_hosts import where_to
    from hpc_train.backends.shapes_given import shapes_of_slurm
    from hpc_train.backends.start_run import make_and_start
    from hpc_train.config.load import check_loaded

    check_loaded(loaded)
    with shapes_of_slurm(loaded.config, cluster):
        decided = plan(loaded, for_script=True)
    where = where_to(decided, cluster)
    return Run(make_and_start(loaded, decided, Path.cwd(), where, after=after))


@checked_call
def test_only(loaded: LoadedConfig) -> StartEstimate:
    """Slurm's own verdict on the job and its estimate of the start; nothing is submitted.

    Raises: SlurmError: with Slurm's words and the key to change.
    """
    from hpc_train.backends.submit import ask_for_start

    return ask_for_start(plan(loaded), render(loaded), loaded.origins)


@checked_call
def run_here(
    loaded: LoadedConfig,
    around: Callable[[Run], AbstractContextManager[object]] = nullcontext,
) -> tuple[Run, int]:
    """Train in the foreground: on this machine, or in the allocation of an `salloc`.

    Args:
        around: Makes what is entered before the run trains and left behind it, to show it.

    Returns: `run, code`: the run and the supervisor's exit code.
    """
    from hpc_train.backends.local_devices import check_place
    from hpc_train.backends.make_run import make_run
    from hpc_train.backends.start_run import note_submission
    from hpc_train.runs.run_here_result import RunHereResult
    from hpc_train.supervisor.run import supervise

    decided = plan(loaded, for_script=True)
    check_place(decided, os.environ)
    run = Run(make_run(loaded, decided, Path.cwd()))
    job_id = os.environ.get("SLURM_JOB_ID", "")
    note_submission(run.directory, FOREGROUND, job_id, time.time())
    with around(run):
        code = supervise(run.directory, os.environ, batch=False)
    return RunHereResult(run, code)


@checked_call
def list_runs(runs_dir: Path | str | None = None) -> list[RunStatus]:
    """The status of every run there is, the newest first, by one query of Slurm for all of them."""
    return statuses(Run.all(runs_dir))


@checked_call
def statuses(wanted: Sequence[Run]) -> list[RunStatus]:
    """The status of some runs, by one query of Slurm for all of them."""
    from hpc_train.backends.observe import observe

    return observe([run.directory for run in wanted], time.time())


@checked_methods
@dataclasses.dataclass(frozen=True)
class Run(RunHints):
    """A run: one training, from its first submission to its end."""

    directory: RunDir

    def __post_init__(self) -> None:
        """Refuse a name in the place of a run directory."""
        given: object = self.directory
        if not isinstance(given, RunDir):
            hint = f"write hpc_train.Run.find({str(given)!r})"
            raise NoSuchRunError(f"{given!r} is no run directory", hint)

    def __repr__(self) -> str:
        """The run's id and its folder."""
        return f"Run({self.directory.run_id}, {str(self.directory.path)!r})"

    @classmethod
    def all(cls, runs_dir: Path | str | None = None) -> list[Run]:
        """All runs there are, the newest first."""
        from hpc_train.runs.registry import all_runs, folders

        return [cls(directory) for directory in all_runs(folders(runs_dir))]

    @classmethod
    def find(cls, reference: str, runs_dir: Path | str | None = None) -> Run:
        """The run that a name, a run id, a run directory or a job id means; `latest` is the newest.

        Raises:
            NoSuchRunError: when none does.
        """
        from hpc_train.runs.sweep_dir import find_run_or_point

        return cls(find_run_or_point(str(reference), runs_dir))

    def _repr_html_(self) -> str:
        """Where the run stands and what happened, as a notebook shows it."""
        from hpc_train.runs.history_text import history_html

        return history_html(self.status(), time.time())

    def status(self) -> RunStatus:
        """What is known of the run now."""
        return statuses([self])[0]

    def start(self, cluster: str, options: Sequence[str] = ()) -> str:
        """Submit the run, for the first time or again, with more options of sbatch.

        Returns:
            The job id.
        """
        from hpc_train.backends.start_run import start_run

        return start_run(self.directory, cluster, options)

    def wait(self, timeout_s: float | None = None) -> RunStatus:
        """Wait for the run's end. Raises HpcTrainError when that is not after `timeout_s`."""
        from hpc_train.python_notes import told_end

        return told_end(self.follow(timeout_s))

    def follow(self, timeout_s: float | None = None) -> Iterator[RunStatus]:
        """The status about twice a second, as long as `wait` waits; Slurm is asked rarely."""
        from hpc_train.backends.follow import follow

        return follow(self.directory, timeout_s)

    def log_file(self, rank: int = 0, attempt: int | None = None) -> Path:
        """The log of one rank; it need not be there yet."""
        run = self.directory
        return (run.latest_attempt if attempt is None else run.attempt(attempt)).rank_log(rank)

    def logs(self, rank: int = 0, attempt: int | None = None) -> str:
        """What one rank has written so far. Raises HpcTrainError when there is no such log."""
        try:
            return self.log_file(rank, attempt).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError as error:
            status = self.status()
            yet = f": {error.filename}" if status.state.ended else f" yet: it is {status.stands}"
            why = f", since {status.reason}" if status.last_words else yet
            all_of_it = f"all of it: {self.directory.job_log(status.job_id)}"
            hint = all_of_it if status.last_words else ""
            failed = status.state in (RunState.FAILED, RunState.LOST)
            kind = RunFailedError if failed else HpcTrainError
            raise kind(f"rank {rank} has no log{why}", hint) from error

    def checkpoints(self, *, verify: bool = False) -> list[CheckedCheckpoint]:
        """The run's checkpoints, newest first; `verify` reads every file and compares its hash."""
        from hpc_train.runs.checkpoints import fits_with_checkpoints
        from hpc_train.training.resume.checkpoint import list_checkpoints

        fits = fits_with_checkpoints(self.directory)[::-1]
        return [one for fit in fits for one in list_checkpoints(fit, verify=verify)]

    def models(self) -> list[SavedModel]:
        """What the training's own ModelCheckpoints have saved, newest first."""
        from hpc_train.runs.saved_models import read_models

        return read_models(self.directory)

    def best_model(self, monitor: str | None = None) -> SavedModel:
        """The best whole model, by `monitor` if several metrics decide. Raises HpcTrainError."""
        from hpc_train.python_notes import say
        from hpc_train.runs.saved_models import choose_best, passed_over

        best = choose_best(self.directory, monitor)
        say(passed_over(self.directory, best))
        return best

    def cancel(self) -> RunStatus:
        """End the run for good; `resume` brings it back. Raises HpcTrainError when it has ended."""
        from hpc_train.backends.cancel import cancel_one

        return cancel_one([self.directory])[0]

    def resume(
        self,
        *overrides: str,
        cluster: str | None = None,
        new_snapshot: bool = False,
        **flags: object,
    ) -> str:
        """Submit the run again; it goes on from its newest valid checkpoint.

        Args:
            overrides: `key=value` of anything that does not make another training; its length
                may change, also of one that is complete.
            cluster: `slurm` or `local`; by default where it was.
            new_snapshot: The project's code of now takes the place of the run's copy.
            flags: As the options of `hpc-train submit`: `nodes=3`.

        Returns:
            The job id.

        Raises:
            HpcTrainError: when it still runs or is complete.
            ConfigError: when it would be another training.
            SlurmError: when Slurm refuses; the run is as it was.
        """
        plan = self.next_plan(*overrides, new_snapshot=new_snapshot, **flags)
        return self.go_on(plan, cluster=cluster)

    def go_on(self, plan: NextPlan, *, cluster: str | None = None) -> str:
        """Submit the run again with what `next_plan` gave; returns the job id."""
        with plan.in_place(self.directory):
            self.directory.stop.unlink(missing_ok=True)
            return self.start(cluster or plan.cluster)

    def evaluate(
        self, verb: Verb, *overrides: str, ckpt: str = "", cluster: str = "", **flags: object
    ) -> tuple[Run, str]:
        """Test, validate or predict with the run's model; arguments are as of `resume`.

        Args:
            ckpt: `best`, `last` or a path; by default the best model where one metric decides.

        Returns:
            The run that does it, and which weights it takes, in words.

        Raises:
            HpcTrainError: when there are no weights; ConfigError when a method is missing.
        """
        from hpc_train.backends.plan_evaluation import plan_evaluation
        from hpc_train.python_notes import say

        planned = plan_evaluation(self.directory, verb, ckpt, overrides, flags)
        say(planned.notes)
        where = cluster or ("slurm" if self.status().backend == "slurm" else "local")
        return Run(planned.start(where)), f"{planned.weights.path} ({planned.weights.said})"

    def next_plan(self, *overrides: str, new_snapshot: bool = False, **flags: object) -> NextPlan:
        """What `resume` would submit, or what it would raise; nothing is written."""
        from hpc_train.backends.replan import plan_again

        now = self.status()
        return plan_again(now, self.directory, overrides, flags, new_snapshot=new_snapshot)
