"""One rank from its first line to its exit code: `python -m hpc_train.training`.

What can be wrong is looked for in the order of its price: the environment before torch is imported,
devices and peers before Lightning is, classes before the process group's first collective.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.config.fit.data_paths import argument_texts
from hpc_train.config.fit.made_folders import make_folders
from hpc_train.errors import HpcTrainError, UsageError
from hpc_train.plan import env_names
from hpc_train.plan.plan import Batch, Plan, Shape
from hpc_train.plan.states import RankExit
from hpc_train.plan.world import World
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.lost_output import survive_lost_output
from hpc_train.runs.parent_death import signal_at_parents_death
from hpc_train.training.failures.absent_code import as_gone
from hpc_train.training.failures.changed_model import as_changed
from hpc_train.training.failures.dead_worker import unhear_workers
from hpc_train.training.fit_notes.broadcast_losses import broadcasts_noted
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.node_heartbeats import NodeHeartbeats
from hpc_train.training.own_exit import EndedItselfError, tell_own_exits
from hpc_train.training.prepare import (
    announce_threads,
    device_of_rank,
    enter_workdir,
    import_model,
    make_model_and_data,
    meet,
    threads_are_users,
)
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.rank_failure import (
    RankFailure,
    before_teardown,
    failure_of,
    leave,
    record_exit,
)
from hpc_train.training.resume.stop import StopFlag
from hpc_train.training.resume.unsavable import UnsavedEndError

if TYPE_CHECKING:
    from hpc_train.training.devices import Device, LoaderSettings
    from hpc_train.training.private.lightning import pl
    from hpc_train.training.resume.resume_state import ResumeState

_CLOSE_S = 20.0  # for atexit hooks of loggers; the work is done and recorded by then


@dataclass(frozen=True, kw_only=True)
class Here:
    """Where this process is: its run, its attempt and its number, as far as it can be known."""

    run: RunDir
    attempt: int
    rank: int
    node: str
    log_dir: Path | None

    @classmethod
    def from_env(cls, environ: Mapping[str, str], hostname: str) -> Here:
        """Read what the supervisor handed over.

        Slurm's name of a node need not be its host name (slurm.conf(5), NodeHostname).

        Raises:
            UsageError: the run directory is not named: this is started by hpc-train alone.
        """
        if env_names.RUN_DIR not in environ:
            raise UsageError(
                f"{env_names.RUN_DIR} is not set: this is a rank, which hpc-train starts",
                "type hpc-train run CONFIG",
            )
        number = environ.get("RANK", environ.get("SLURM_PROCID", "0"))
        log_dir = environ.get(env_names.RANK_LOG_DIR)
        return cls(
            run=RunDir(Path(environ[env_names.RUN_DIR])),
            attempt=int(environ.get(env_names.ATTEMPT, "0")),
            rank=int(number) if number.isdigit() else 0,
            node=environ.get("SLURMD_NODENAME", hostname),
            log_dir=Path(log_dir) if log_dir else None,
        )

    @property
    def attempt_dir(self) -> AttemptDir:
        """Files of this attempt."""
        return self.run.attempt(self.attempt)


def main(kind: type[Rank] | None = None, *, number: int | None = None) -> int:
    """Run the rank that the environment describes; returns its exit code, see `RankExit`.

    Args:
        kind: What the rank does; by default it trains.
        number: Its files', where it is not yet known which rank it is.
    """
    try:
        here = Here.from_env(os.environ, socket.gethostname())
        here = here if number is None else replace(here, rank=number)
    except HpcTrainError as error:
        print(f"error: {error.message}\n  fix: {error.hint}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    if here.log_dir is not None:  # torch's elastic launcher has started it, in its own session
        # A rank whose threads all wait for the GIL hears neither SIGTERM nor the supervisor.
        signal_at_parents_death(signal.SIGKILL)
        log_to(here.log_dir / here.attempt_dir.rank_log(here.rank).name)
    survive_lost_output()
    # Ctrl-C reaches all processes of a terminal; the supervisor alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop = StopFlag(here.run.stop).install()
    return (kind or Rank)(here, stop).run()


def log_to(path: Path) -> None:
    """Send everything this process writes, C++ included, to one file, line by line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(descriptor, stream.fileno())
    os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


class Rank:
    """The steps of one rank that trains, and what is known when one of them fails."""

    def __init__(self, here: Here, stop: StopFlag) -> None:
        self.here = here
        self.stop = stop
        self.heartbeat = HeartbeatThread(
            here.attempt_dir, rank=here.rank, node=here.node, every_s=1.0, stop=stop
        )
        self._begun = self._recorded = False
        self.is_rank = True  # else other processes are, which tell how they end
        self.first_step = 0
        self.early_end = ""
        self.kind_of_end = "finished"
        self.unsaved: UnsavedEndError | None = None  # of the newest fit
        self.batch: Batch | None = None  # what is trained with, once that is known
        self.texts: dict[str, str] = {}  # among the arguments of the same

    def run(self) -> int:
        """Train; whatever ends it is recorded before any peer can notice."""
        try:
            text = _read_plan(self.here.run)
            plan = Plan.from_json(text)
            world = World.from_env(os.environ, planned=self.started(plan.shape))
            self.begin(plan)
            with broadcasts_noted(self.here.attempt_dir) if world.rank == 0 else nullcontext():
                self.train(plan, world, hashlib.sha256(text.encode()).hexdigest()[:12])
            if self.unsaved is not None:
                raise self.unsaved
        except BaseException as error:  # noqa: BLE001 - the end of the process: all are recorded
            try:
                unhear_workers()
            except RuntimeError:  # that a worker has ended, raised as this was called
                unhear_workers()
            return self.end(error)
        self.finish()
        _close()
        return leave(int(RankExit.FINISHED))

    def begin(self, plan: Plan) -> None:
        """Give signs of life from now on."""
        self.heartbeat.every_s = plan.watchdog.heartbeat_s
        self.batch = None if plan.script else plan.batch
        starts_its_own = plan.script is not None and plan.script.launcher == "none"
        if not starts_its_own:
            here, ranks = self.here, plan.shape.world_size
            self.heartbeat.share(
                NodeHeartbeats.of_run(ranks, here.attempt_dir, here.run.stop, os.environ)
            )
        self.heartbeat.start()
        if plan.script is None:
            objects = {"model": plan.training.model, "data": plan.training.data}
            self.texts = argument_texts({key: vars(it) for key, it in objects.items()})
            tell_own_exits(self._ended_itself)
        self._begun = True

    def finish(self) -> None:
        """Record that this rank has ended well."""
        self._record(None)

    def started(self, shape: Shape) -> Shape:
        """What the launcher starts of a plan's shape."""
        return shape

    def end(self, last: BaseException) -> int:
        """Record what ended the training and leave; returns only where nothing has begun."""
        here = self.here
        error = as_changed(as_gone(before_teardown(last), here.run), here.run, here.attempt)
        failure = self._record(error)
        _say(failure, error)
        return leave(failure.code) if self._begun else failure.code

    def _ended_itself(self, error: EndedItselfError) -> int:
        """Record it as the user's, unless the rank's end is told, or it was asked to leave."""
        if self._recorded or self.stop.reason:
            return error.status
        failure = self._record(error)
        _say(failure, error)
        return failure.code

    def _record(self, error: BaseException | None) -> RankFailure:
        attempt, self._recorded = self.here.attempt_dir, True
        if not self.is_rank:
            return failure_of(error, self.batch, self.texts)
        return record_exit(
            attempt,
            error,
            self.heartbeat,
            first_step=self.first_step,
            early_end=self.early_end,
            kind_of_end=self.kind_of_end,
            batch=self.batch,
            texts=self.texts,
        )

    def train(self, plan: Plan, world: World, plan_hash: str) -> None:
        """Everything from the first import of torch to the training's end."""
        from hpc_train.training import devices

        # torch and Lightning make a million objects that stay; looking through them again and
        # again while they are imported is a fifth of that time. `build` switches it on again.
        gc.disable()
        host = devices.see_host()
        cpus = devices.cpus_per_rank(os.environ, host, devices.ranks_on_host(world))
        decide_threads = not threads_are_users(world, plan)
        if decide_threads:
            announce_threads(cpus, world)
        given = plan.training.trainer
        wanted = given.get("accelerator", "gpu" if plan.shape.gpus_per_node else "cpu")
        device = device_of_rank(str(wanted), given.get("precision"), world, self.here.attempt_dir)
        if decide_threads:  # what the data workers leave of this rank's CPUs
            import torch

            torch.set_num_threads(devices.threads_per_rank(cpus, device))
        enter_workdir(plan)
        meet(plan, world, device, plan_hash, self.here.node)
        self.work(plan, world, device, devices.loader_settings(world, device, cpus, host))

    def work(self, plan: Plan, world: World, device: Device, loader: LoaderSettings) -> None:
        """What the ranks are there for, once all have met."""
        if world.rank == 0:  # which writes
            make_folders(plan.training.trainer, plan.training.loggers)
        state = self.make_state(plan, world)
        start = state.load()
        self.first_step = start.manifest.step if start is not None else 0
        trainer, model, data = self.build(plan, world, device, loader)
        from hpc_train.training.fit_notes.unlogged_monitors import note_unlogged
        from hpc_train.training.loggers import (
            early_end,
            note_last_not_finite,
            write_final_metrics,
        )
        from hpc_train.training.resume.fit_with_resume import fit_with_resume
        from hpc_train.training.weights import forget_weights, load_weights, weights_path

        if plan.weights and start is None:
            load_weights(model, weights_path(self.here.run, plan), plan)
        fit_with_resume(state, trainer, model=model, datamodule=data)
        self.early_end, self.unsaved = early_end(trainer), state.controller.unsaved
        if world.rank == 0 and self.unsaved is None:
            write_final_metrics(self.here.run, trainer)
            note_last_not_finite(self.here.run, trainer)
            note_unlogged(self.here.attempt_dir, trainer)
            forget_weights(self.here.run)

    def make_state(self, plan: Plan, world: World) -> ResumeState:
        """What stops at a step's end, and saves; nothing is loaded yet. Collective."""
        from hpc_train.training.resume.resume_state import ResumeState

        here = self.here
        rank = RankConfig.of_plan(
            plan, here.run, attempt=here.attempt, rank=world.rank, world_size=world.world_size
        )
        return ResumeState(rank, self.heartbeat, self.stop)

    def build(
        self, plan: Plan, world: World, device: Device, loader: LoaderSettings
    ) -> tuple[pl.Trainer, pl.LightningModule, pl.LightningDataModule]:
        """The Trainer, the model and the data of the plan."""
        import_model(plan)  # before what imports Lightning
        from hpc_train.training.loggers import make_loggers
        from hpc_train.training.trainer import make_trainer, trainer_arguments

        run = self.here.run
        model, data = make_model_and_data(plan, world, device, loader)
        arguments = trainer_arguments(
            plan,
            world=world,
            device=device,
            model=model,
            loggers=make_loggers(plan.training.loggers, run, self.first_step),
            root=str(run.path),
            on_terminal=sys.stdout.isatty(),
        )
        trainer = make_trainer(arguments)
        gc.freeze()  # what is there now stays: no collection, and no data worker, has to touch it
        gc.enable()
        return trainer, model, data


def _read_plan(run: RunDir) -> str:
    try:
        return run.plan.read_text(encoding="utf-8")
    except OSError as error:
        raise HpcTrainError(
            f"{run.plan} cannot be read on {socket.gethostname()}: {error.strerror}",
            "is the run directory on a file system that all nodes see?",
        ) from error


def _say(failure: RankFailure, error: BaseException) -> None:
    if failure.kind == "saved":
        print(error, flush=True)  # noqa: T201 - a rank's log
        return
    if failure.traceback:
        print(failure.traceback, file=sys.stderr)  # noqa: T201 - a rank's log
    hint = f"\n  fix: {error.hint}" if isinstance(error, HpcTrainError) and error.hint else ""
    message = error.message if isinstance(error, HpcTrainError) else failure.error
    where = f" ({failure.where})" if failure.where else ""
    print(f"error: {message}{where}{hint}", file=sys.stderr, flush=True)  # noqa: T201


def _close() -> None:
    """End what libraries began, for a limited while: loggers upload in their atexit hooks.

    The interpreter's own end is left out: it takes a second to free torch's modules, and
    multiprocessing would wait there for data workers, in which stop signals are blocked.
    """
    import multiprocessing

    timer = threading.Timer(_CLOSE_S, os._exit, args=[int(RankExit.FINISHED)])
    timer.daemon = True
    timer.start()
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_initialized():
        with suppress(RuntimeError):  # a peer that has left already is no news at the end
            torch.distributed.destroy_process_group()
    for worker in multiprocessing.active_children():
        worker.kill()
    atexit._run_exitfuncs()
