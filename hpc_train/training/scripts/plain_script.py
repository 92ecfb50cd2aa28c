"""A script that makes no Trainer: each of its optimizer steps is seen, and it is stopped at one.

Its lines are as they were. torch calls the hooks of every optimizer
(`register_optimizer_step_pre_hook`), and what a stop means is done before the next step, when the
one before it is complete on all ranks, schedulers and counters included.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from hpc_train.plan import env_names
from hpc_train.plan.plan import Plan, ScriptPlan
from hpc_train.plan.world import World
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Beginning, write_beginning
from hpc_train.runs.script_saves import OwnSaves, newest_own_step, newest_save, stamp
from hpc_train.training.environment_record import write_environment
from hpc_train.training.faults import RehearsedFaults
from hpc_train.training.private.main_stack import Place, place_of_main_thread
from hpc_train.training.rank import Rank
from hpc_train.training.resume.stop import Stopped
from hpc_train.training.scripts.script_signals import ScriptSignals
from hpc_train.training.scripts.shared_saves import SharedSaves, path_saved_to
from hpc_train.training.scripts.stop_together import StopTogether
from hpc_train.training.scripts.unnamed_saves import UnnamedSaves

_LOOK_FOR_SAVES_S = 1.0
_CLOCK_TICK_NS = 20_000_000  # a file's times come from a clock that ticks (inode(7), clock_getres)
_STILL_S = 3.0  # without a step: then the place of the main thread tells whether it waits
_TORCH = str(Path(torch.__file__).parent)


def resume_arguments() -> list[str]:
    """What the script's arguments get added in this attempt."""
    return list(_resume()["args"])


def _resume() -> dict[str, Any]:
    text = os.environ.get(env_names.SCRIPT_RESUME, "")
    return json.loads(text) if text else {"args": [], "path": "", "step": 0}


class PlainScript:
    """What one rank of it tells, and how it is stopped.

    Attributes:
        is_plain: False once a Trainer of Lightning is there, which is followed in its own way.
        first: Optimizer steps in the checkpoint that the script goes on from.
        stopped_at: Steps when it was told to stop; None before.
        checks: Called before the first step; raises what must not go on.
        looks: Called before the second one.
        stepped: Whether any optimizer took a step, also one of a Trainer's.
        by_callback: The script's own loop asks `is_stopping`, so that no step is interrupted.
    """

    def __init__(self, rank: Rank, plan: Plan, world: World, script: ScriptPlan) -> None:
        self._rank, self._script = rank, script
        self._world, self._workdir = world, Path(plan.workdir)
        attempt = rank.here.attempt_dir
        self._together = StopTogether(
            attempt.stop_steps, rank=world.rank, world_size=world.world_size, stop=rank.stop
        )
        self._faults = RehearsedFaults.from_env(
            os.environ, rank=world.rank, attempt=rank.here.attempt
        )
        self.first = int(_resume()["step"])
        self.is_plain = True
        self.stopped_at: int | None = None
        self.stepped = False
        self.checks: list[Callable[[], None]] = []
        self.looks: list[Callable[[], None]] = []
        self.by_callback = False
        self._signals = ScriptSignals()
        self._shared = SharedSaves(attempt, rank=world.rank, node=rank.here.node)
        self._inside: list[int] = []  # optimizers that are taking a step, the outer one first
        self._place: Place = ()
        self._stepped_at = time.monotonic()
        self._next_look = 0.0
        self._noted_ns = 0
        # When torch.save was called, in nanoseconds, and at which step.
        self._saves: deque[tuple[int, int]] = deque([(0, self.first)], maxlen=32)
        self._saved_until_ns = 0  # the end of the newest of them; without one as long as it goes on
        self._saved_to: dict[str, int] = {}  # path -> step, since they were looked at last
        self._noting = threading.RLock()
        self._unnamed = UnnamedSaves(rank.here.run, attempt, script, self._workdir)
        self._save_stamp = _stamp_of(_resume()["path"])

    @property
    def step(self) -> int:
        """Optimizer steps since the run's first attempt."""
        return self.first + self._together.step

    def follow(self, *, hooks: bool = True, handlers: Mapping[int, Any] | None = None) -> None:
        """From now on; before the script begins.

        Args:
            hooks: Ask torch to call `before_step` and `after_step`; else somebody else does.
            handlers: Of signals, where the script has begun before.
        """
        self._signals.follow(handlers or {})
        if hooks:
            register_optimizer_step_pre_hook(self.before_step)
            register_optimizer_step_post_hook(self.after_step)
        save = torch.save

        def noted_save(*given: Any, **named: Any) -> Any:
            self._saves.append((time.time_ns(), self.step))
            self._saved_until_ns = sys.maxsize
            try:
                saved = save(*given, **named)
            finally:
                self._saved_until_ns = time.time_ns()
            target = given[1] if len(given) > 1 else named.get("f")
            if path := path_saved_to(target):
                self._saved_to[path] = self._saves[-1][1]
            if self.is_plain and self._world.world_size > 1:
                self._shared.saving(target)
            return saved

        torch.save = noted_save
        self._rank.heartbeat.also = self._look

    def hand_over(self) -> None:
        """A Trainer of Lightning is there, whose steps are followed in its own way."""
        self.is_plain = False

    def hand_over_to_session(self) -> None:
        """A Session is there, with signals and a heartbeat of its own."""
        self.is_plain = False
        self._signals.leave()
        self._rank.heartbeat.end()

    @property
    def run(self) -> RunDir:
        """The run that it belongs to."""
        return self._rank.here.run

    def begin_at(self, step: int, steps: int) -> None:
        """A script with callbacks says at which step it goes on, and of how many."""
        self.first = step - self._together.step
        self._rank.heartbeat.steps = steps
        self._tell_beginning()

    def leave_if_stopped(self) -> None:
        """A script with callbacks has ended its training: after a stop the process ends here."""
        if self.stopped_at is not None:
            self.note_save()
            self._rank.end(self._stopped())

    def is_stopping(self) -> bool:
        """For a script with callbacks: whether all ranks stop behind the step at hand."""
        if self.stopped_at is None and self._together.is_due():
            self._begin_to_stop()
        return self.stopped_at is not None

    def finished(self) -> None:
        """The script came to its end, or left with 0.

        Raises:
            Stopped: it did so since it was told to stop.
        """
        self.note_save()
        if not self.is_plain:
            return
        self._together.leave()
        if self.stopped_at is not None:
            raise self._stopped()
        self._rank.kind_of_end = "left"

    def ended_by(self, error: BaseException) -> BaseException:
        """What ended the script, in our words: after a stop, whatever it was is the stop."""
        self.note_save()
        self._together.leave()
        if self.stopped_at is None:
            return error
        if isinstance(error, Exception) and not isinstance(error, Stopped):
            traceback.print_exception(error)
        return error if isinstance(error, Stopped) else self._stopped()

    def note_save(self, *, path: Path | None = None, step: int | None = None) -> None:
        """Look whether the script has written a checkpoint, and note its step; rank 0 alone."""
        if self._world.rank == 0 and self.is_plain:
            with self._noting:  # the heartbeat's thread looks as well
                self._note_save(path, step)

    def _note_save(self, path: Path | None, step: int | None) -> None:
        if said := self._shared.told():
            print(said, file=sys.stderr, flush=True)  # noqa: T201 - a rank's log
        saves = OwnSaves.of(self._rank.here.run)
        saved, self._saved_to = self._saved_to, {}
        saves = self._unnamed.noted(saves, saved)
        if path is None and self._script.resume_when:
            path = next(iter(newest_save(self._script.resume_when, self._workdir)), None)
        with contextlib.suppress(OSError):  # replaced meanwhile, or the disk is full
            if path is None or stamp(path) == self._save_stamp or not saves.is_of_this_run(path):
                return
            now = stamp(path)
            saves.noted(path, self._step_at(now) if step is None else step).write(self.run)
            self._save_stamp, self._noted_ns = now, time.time_ns()

    def _step_at(self, changed_ns: int) -> int:
        """Of a file that was last changed then: of the torch.save that wrote it, if one did."""
        is_of_another = changed_ns > self._saved_until_ns + _CLOCK_TICK_NS
        if self._saves[-1][0] <= self._noted_ns and is_of_another:
            return self.step
        before = [step for at, step in self._saves if at <= changed_ns + _CLOCK_TICK_NS]
        return before[-1] if before else self._saves[0][1]

    # -- in the main thread

    def before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """Called by torch; stops here what is to stop."""
        number = id(optimizer)
        if number in self._inside:  # the step before it ended in an exception
            del self._inside[self._inside.index(number) :]
        self._inside.append(number)
        if len(self._inside) > 1 or not self.is_plain:  # a wrapper's own optimizer
            return
        if self._together.step == 0:
            self._begin()
        for look in self.looks if self._together.step == 1 else ():
            look()
        if not self.by_callback and self.stopped_at is None and self._together.is_due():
            self._stop()

    def after_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """Called by torch."""
        if self._inside and self._inside[-1] == id(optimizer):
            self._inside.pop()
        self.stepped = True
        if self._inside or not self.is_plain:
            return
        self._together.step += 1
        self._stepped_at = time.monotonic()
        heartbeat = self._rank.heartbeat
        if self.stopped_at is None and heartbeat.phase != "train":
            heartbeat.phase = "train"
        heartbeat.batch = 0
        heartbeat.stepped(self.step)
        self._faults.at("step", self.step)

    def _begin(self) -> None:
        for check in self.checks:
            check()
        self._rank.first_step = self.first
        self._tell_beginning()

    def _tell_beginning(self) -> None:
        self._rank.first_step = self.first
        if self._world.rank == 0:
            with contextlib.suppress(OSError):
                beginning = Beginning(self.first, ranks=self._rank.heartbeat.ranks)
                write_beginning(self._rank.here.attempt_dir, beginning)
                write_environment(self._rank.here.attempt_dir)

    def _begin_to_stop(self) -> None:
        self.stopped_at = self.step
        self._rank.heartbeat.phase = "save"
        self._next_look = 0.0
        timer = threading.Timer(self._script.stop_grace_s, self._overdue)
        timer.daemon = True
        timer.start()
        if self._world.rank == 0:
            print(f"told to stop behind step {self.step}, as all ranks", flush=True)  # noqa: T201

    def _stop(self) -> None:
        self._begin_to_stop()
        if not self._signals.deliver(self._script.on_stop):
            self.note_save()
            self._rank.end(self._stopped())

    # -- in other threads

    def _look(self) -> None:
        """Four times a second, by the heartbeat's thread."""
        if not self.is_plain:
            return
        self._together.look()
        now = time.monotonic()
        if now - self._stepped_at > _STILL_S:
            self._look_at_main_thread()
        if now >= self._next_look:
            self._next_look = now + _LOOK_FOR_SAVES_S
            self.note_save()

    def _look_at_main_thread(self) -> None:
        """A validation of the script's is no hang; who waits inside of torch is not late."""
        heartbeat = self._rank.heartbeat
        place = place_of_main_thread()
        if place != self._place:
            self._place = place
            heartbeat.batch = 0
            heartbeat.moves()
        elif place:
            heartbeat.batch = int(place[0][0].startswith(_TORCH))

    def _overdue(self) -> None:
        print(  # noqa: T201 - a rank's log
            f"the script did not leave within {self._script.stop_grace_s:g} s of its stop"
            " (script.stop_grace_s), so it is ended",
            file=sys.stderr,
            flush=True,
        )
        self.note_save()
        self._rank.end(self._stopped())

    def _stopped(self) -> Stopped:
        """All ranks leave together: the launcher ends the others when the first one has left."""
        self._together.leave(together_s=self._script.stop_grace_s)
        saved = newest_own_step(self.run)
        cause = self._rank.stop.reason or "stop file"
        stopped = Stopped(cause, self.step, saved=saved > self.first)
        of = f"of step {saved}" if saved else "not there, or not named by script.resume"
        newest = f"the script's newest checkpoint is {of}"
        if not saved and (unnamed := OwnSaves.of(self.run).unnamed):
            write = self._unnamed.how_to_name(unnamed)
            newest = f"the script saved {unnamed}: to go on from it {write}"
        stopped.args = (f"stopped by {cause} behind step {self.step}; {newest}",)
        return stopped


def _stamp_of(path: str) -> int:
    try:
        return stamp(Path(path)) if path else 0
    except OSError:
        return 0
