"""Sweeps from Python: one job array over the points of a config, each an ordinary run.

loaded = hpc_train.load("digits.yaml", sweep=["model.init_args.lr=0.1,0.01", "seed=range(3)"])
sweep = hpc_train.submit_sweep(loaded, at_most=2)
sweep.status().summary
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train import api
from hpc_train.config.call_arguments import checked_call, checked_methods
from hpc_train.errors import ConfigError, HpcTrainError, NoSuchRunError, SlurmError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import folders
from hpc_train.runs.sweep_dir import SweepDir, entries, make_sweep
from hpc_train.runs.sweep_hints import SweepHints
from hpc_train.runs.this_folder import newest

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.config.schema import Config
    from hpc_train.plan.plan import Plan
    from hpc_train.plan.sweep_plan import SweepPlan, SweepPoint
    from hpc_train.runs.snapshot import Selection
    from hpc_train.runs.sweep_status import SweepStatus
    from hpc_train.supervisor.dependents import Priors


def plan_sweep(
    loaded: LoadedConfig, *, at_most: int | None = None, cluster: str = "local"
) -> tuple[SweepPlan, list[Config]]:
    """Decide every point, as `api.plan` does for one training; nothing is written.

    Args:
        cluster: Where it goes to: of `slurm`, a refused shape is told with those that it gives.

    Returns:
        The plan, its folders relative to the one that the job starts in, and the config of each
        point, or of the first one alone where `plain_point` makes the others from it.

    Raises:
        ConfigError: naming the point whose config is refused; CheckError as for one training.
    """
    from hpc_train.backends.find_weights import settle_weights
    from hpc_train.backends.shapes_given import shapes_of_slurm
    from hpc_train.config.sweeps.sweep import is_plain, load_point, plain_point, points_of
    from hpc_train.config.validate import check_training, point_check
    from hpc_train.plan.from_config import with_training
    from hpc_train.plan.sweep_plan import SweepPlan, refused_point, sweep_point

    chosen = points_of(loaded)
    quick = is_plain(loaded, chosen)
    fits: Callable[[Config], bool] = bool
    plans: list[Plan] = []
    points: list[SweepPoint] = []
    configs: list[Config] = []
    for number, overrides in enumerate(chosen):
        try:
            config = plain_point(configs[0], overrides) if number and quick else None
            if config is not None and fits(config):
                decided = with_training(plans[0], config, loaded.origins)
            else:
                point = load_point(loaded, overrides)
                check_training(point, workdir=Path.cwd())
                if quick:
                    fits = point_check(point, workdir=Path.cwd())
                if point.config.init_from:
                    point = settle_weights(point, folders(None), Path.cwd())
                with shapes_of_slurm(point.config, cluster):
                    decided = api.plan(point, for_script=True)
                configs.append(point.config)
            plans.append(decided)
            points.append(sweep_point(plans[0], decided, overrides))
        except HpcTrainError as error:
            raise refused_point(number, overrides, error) from error
    return SweepPlan(plan=plans[0], points=tuple(points), at_most=at_most), configs


def check_keys(loaded: LoadedConfig, *, wholly: bool = False) -> None:
    """Refuse a key that varies and is none, or has no place in the arguments of a script.

    Args:
        wholly: Check all of the first point, as its training would be.

    Raises:
        ConfigError: naming the first point.
    """
    from hpc_train.config.sweeps.sweep import load_point, points_of
    from hpc_train.config.validate import check_training
    from hpc_train.plan.sweep_plan import refused_point

    first = points_of(loaded)[0]
    try:
        point = load_point(loaded, first)
        if wholly:
            check_training(point, workdir=Path.cwd())
    except HpcTrainError as error:
        raise refused_point(0, first, error) from error


def notes_on_first(loaded: LoadedConfig) -> list[str]:
    """What `api.load` notes of one training, of the first point of a sweep."""
    from hpc_train.config.fit.code_notes import notes_on_code
    from hpc_train.config.sweeps.sweep import load_point, points_of
    from hpc_train.plan.notes import notes_on

    point = load_point(loaded, points_of(loaded)[0])
    code = notes_on_code(point, workdir=Path.cwd())
    return [it for it in (*notes_on(point.config, point.origins), *code) if it not in loaded.notes]


def check_no_array(loaded: LoadedConfig) -> str:
    """What trains the sweep where no job array can; the first point has been checked.

    Raises:
        ConfigError: naming the first point.
    """
    from hpc_train.config.sweeps.sweep import without_array

    check_keys(loaded, wholly=True)
    return without_array(loaded)


def first_point(loaded: LoadedConfig) -> LoadedConfig:
    """The config of the first point; all of them have been checked.

    Raises:
        ConfigError: naming the point whose config is refused.
    """
    from hpc_train.config.sweeps.sweep import load_point

    return load_point(loaded, plan_sweep(loaded, cluster="slurm")[0].points[0].overrides)


def render_sweep(loaded: LoadedConfig, *, at_most: int | None = None) -> str:
    """The sbatch script that does by itself what `submit_sweep` does."""
    from hpc_train.plan.script import render_sweep as render

    return render(plan_sweep(loaded, at_most=at_most)[0])


@checked_call
def submit_sweep(
    loaded: LoadedConfig, *, at_most: int | None = None, after: Priors | None = None
) -> Sweep:
    """Submit all points of the config's `sweep` as one job array.

    Args:
        at_most: So many points run together; by default as many as Slurm starts.
        after: A run or a sweep, or several, to be complete before any point begins.

    Raises:
        ConfigError: for a point that is refused; nothing was submitted.
        CheckError: when `after` cannot be waited for.
        SlurmError: when Slurm refuses, or takes no array of that size; nothing stays behind.
        RunCancelledError: somebody has cancelled it meanwhile, and so it is.
    """
    from hpc_train.backends.submit import check_submission
    from hpc_train.backends.sweep_jobs import submit_array
    from hpc_train.plan.script import render_sweep as render
    from hpc_train.runs.known_places import remember_root
    from hpc_train.runs.lock import waited_lock
    from hpc_train.runs.registry import absent_folders, remove_run
    from hpc_train.runs.snapshot import take
    from hpc_train.supervisor.dependents import wait_for

    _check_submission(loaded)
    first = wait_for(after, loaded.config.slurm.dependency, "slurm")
    portable, configs = plan_sweep(loaded, at_most=at_most, cluster="slurm")
    unchecked = check_submission(portable.plan, loaded.origins)
    sweep, files, decided, code = prepared(loaded, portable, configs)
    files[sweep.script.name] = render(portable, sweep_dir=str(sweep.path))
    absent = absent_folders(sweep.path.parent)
    make_sweep(sweep, decided, files)
    try:
        if code is not None:
            take(code, sweep.path)
        with waited_lock(sweep.document, wait_s=0):  # tells that it is being submitted
            job_id = submit_array(sweep, None, first.options if first else (), unchecked)
    except (SlurmError, OSError):
        remove_run(RunDir(sweep.path), absent)
        raise
    if first:
        first.note(sweep, job_id)
    remember_root(os.environ, sweep.path.parent.parent)
    return Sweep(sweep)


def _check_submission(loaded: LoadedConfig) -> None:
    """Refuse what could not be an array of jobs here, before a point is planned."""
    from hpc_train.backends.started_by import refuse_several
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.config.changes import refuse_changes
    from hpc_train.config.load import check_loaded
    from hpc_train.config.sweeps.sweep import points_of
    from hpc_train.slurm.arrays import check_array
    from hpc_train.slurm.dependencies import check_dependency

    check_loaded(loaded)
    refuse_changes(loaded)
    refuse_several(os.environ)
    if not loaded.config.sweep:
        raise ConfigError("no key varies in this config", "load(..., sweep=['seed=1,2'])")
    check_keys(loaded)
    if detect_cluster() != "slurm":
        raise SlurmError(
            "a sweep is a job array of Slurm, and there is no Slurm here",
            f"log in to a node of a cluster; or {check_no_array(loaded)}",
        )
    check_dependency(loaded.config.slurm.dependency or "")
    check_array(len(points_of(loaded)))


def prepared(
    loaded: LoadedConfig, portable: SweepPlan, configs: Sequence[Config]
) -> tuple[SweepDir, dict[str, str], SweepPlan, Selection | None]:
    """Where the sweep will be, its files by name, its plan with the folders settled, its code."""
    from hpc_train.backends.check_environment import check_environment, check_image
    from hpc_train.backends.code_copy import code_for
    from hpc_train.backends.make_run import config_record
    from hpc_train.config.show import to_yaml
    from hpc_train.plan.quoting import slug
    from hpc_train.runs.provenance import code_files, code_state, packages_of
    from hpc_train.runs.registry import new_run_id

    here = Path.cwd()
    check_environment(loaded.config.env, here, os.environ, loaded.origins)
    check_image(loaded.config.container, here, loaded.origins)
    runs_dir = here / Path(portable.plan.runs_dir).expanduser()
    sweep = SweepDir(runs_dir / slug(portable.plan.name) / new_run_id(time.time()))
    code = code_for(loaded, here, runs_dir, configs)
    workdir = code.workdir_in(sweep.path) if code else here
    decided = portable.placed(str(workdir), str(runs_dir))
    state = code_state(here, packages_of(decided.plan))
    files = {
        **{sweep.config(number).name: to_yaml(one) for number, one in enumerate(configs)},
        **code_files({**state, "config": config_record(loaded)}),
    }
    return sweep, files, decided, code


def find_sweep(
    reference: str, runs_dir: Path | None = None, *, to_change: bool = False
) -> Sweep | None:
    """The sweep that an id, a folder, the id of its array or a name means, if any does.

    Raises:
        NoSuchRunError: `to_change` it, a name alone leads to another folder's.
    """
    from hpc_train.runs.sweep_dir import find_sweep as find

    found = find(reference, folders(runs_dir), to_change=to_change)
    return Sweep(found) if found else None


def newest_sweep(runs_dir: Path | None = None) -> Sweep | None:
    """The newest sweep, where no run that is no point of it is newer."""
    where = folders(runs_dir)
    found = newest(entries(where), where)
    return Sweep(found) if isinstance(found, SweepDir) else None


@checked_methods
@dataclass(frozen=True)
class Sweep(SweepHints):
    """A sweep: one submission, a run a point."""

    directory: SweepDir

    def __post_init__(self) -> None:
        """Refuse a name in the place of a sweep directory."""
        given: object = self.directory
        if not isinstance(given, SweepDir):
            hint = f"write hpc_train.Sweep.find({str(given)!r})"
            raise NoSuchRunError(f"{given!r} is no sweep directory", hint)

    @classmethod
    def find(cls, reference: str, runs_dir: Path | None = None) -> Sweep:
        """As `find_sweep`; raises NoSuchRunError where there is none."""
        found = find_sweep(reference, runs_dir)
        if found is None:
            raise NoSuchRunError(f"no sweep answers to {reference!r}", "hpc-train list shows all")
        return found

    @property
    def job_id(self) -> str:
        """The newest array."""
        from hpc_train.runs.events import read_events
        from hpc_train.runs.history import newest_job_id

        return newest_job_id(read_events(self.directory.events))

    def run(self, number: int) -> api.Run:
        """The run of a point, made if its job has not made it yet."""
        from hpc_train.runs.sweep_dir import make_point

        return api.Run(make_point(self.directory, number))

    def status(self) -> SweepStatus:
        """What is known of all points now, by one query of Slurm."""
        from hpc_train.backends.sweep_jobs import observe_sweep

        return observe_sweep(self.directory, time.time())

    def cancel(self) -> list[int]:
        """End all points that have not ended, for good; `resume` brings them back.

        Raises:
            HpcTrainError: when all have ended; SlurmError when Slurm refuses.
        """
        from hpc_train.backends.sweep_jobs import cancel_sweep

        self._refuse_anothers("cancel")
        status = self.status()
        ended = cancel_sweep(self.directory, status)
        if not ended:
            raise HpcTrainError(f"{status.name} ({status.sweep}) has ended: {status.summary}")
        return ended

    def resume(self) -> tuple[str, list[int]]:
        """Submit the points again that have ended and are not complete, as one array.

        Returns:
            The array's job id, and the points.

        Raises:
            HpcTrainError: when there are none; SlurmError when Slurm refuses.
        """
        from hpc_train.backends.moved_run import refuse_moved_sweep
        from hpc_train.backends.sweep_jobs import submit_array

        if self.directory.bench.exists():
            raise HpcTrainError(
                f"{self.directory.sweep_id} is a bench, which is not gone on with", "bench again"
            )
        refuse_moved_sweep(self.directory)
        points = self._ended()
        for number in points:
            self.directory.point(number).stop.unlink(missing_ok=True)
        return submit_array(self.directory, points), points

    def resume_each(
        self, *overrides: str, cluster: str | None = None, **flags: Any
    ) -> dict[int, str]:
        """The same with changes, as `api.Run.resume` takes them: each point in a job of its own.

        Returns:
            The job id of each point.

        Raises:
            HpcTrainError: as `resume` does, and for changes that any point refuses, before the
                first one is submitted.
        """
        chosen = [(number, self.run(number)) for number in self._ended()]
        planned = [(number, run, run.next_plan(*overrides, **flags)) for number, run in chosen]
        return {number: run.go_on(again, cluster=cluster) for number, run, again in planned}

    def _refuse_anothers(self, doing: str) -> None:
        from hpc_train.runs.ownership import not_yours

        whole = self.directory
        what = f"{whole.name} ({whole.sweep_id}) is a sweep"
        if anothers := not_yours(whole.path, what, doing):
            raise HpcTrainError(anothers)

    def _ended(self) -> list[int]:
        """The points that have ended and are not complete."""
        self._refuse_anothers("resume")
        status = self.status()
        if not (points := status.to_go_on_with):
            raise HpcTrainError(
                f"{status.name} ({status.sweep}) has nothing to go on with: {status.summary}"
            )
        return points
