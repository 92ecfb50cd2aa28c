"""What happens between two steps: is anybody asked to stop, is a save due. No Lightning here.

The loops of Lightning and the sessions of raw loops both come here at each optimizer step.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hpc_train.config.schema import CheckpointConfig
from hpc_train.training.faults import RehearsedFaults
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.resume.agreement import Agreed, Agreement
from hpc_train.training.resume.saving import Saver, Snapshot, say_loudly
from hpc_train.training.resume.stop import Stopped
from hpc_train.training.resume.unsavable import UnsavedEndError

LAST_SAVES_S = (0.0, 2.0, 4.0)  # waited before each trial to save the last state
_ABANDON_S = 1.5  # an evaluation that takes less is finished before a stop


class StepController:
    """Decides at step boundaries, the same on all ranks.

    Args:
        clock: Seconds, monotonic.

    Attributes:
        unsaved: Why the last state of a training that is over is on no disk.
    """

    def __init__(
        self,
        config: CheckpointConfig,
        *,
        agreement: Agreement,
        evaluation: Agreement,
        saver: Saver,
        heartbeat: HeartbeatThread,
        faults: RehearsedFaults,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.saver = saver
        self.heartbeat = heartbeat
        heartbeat.failed_saves = lambda: saver.failed
        self.faults = faults
        self.unsaved: UnsavedEndError | None = None
        self._config = config
        self._agreement = agreement
        self._evaluation = evaluation
        self._clock = clock
        self._saved_at = clock()
        self._saved_step = 0
        self._prepared = self._is_asked = False
        self._before_evaluation: Snapshot | None = None
        self._evaluation_s: float | None = None
        self._evaluation_began = 0.0
        self._common_batches = 0

    def begin(self, step: int) -> None:
        """Training begins after `step` steps; a stop that came before it leaves now. Collective.

        Raises:
            Stopped: with nothing new to save.
        """
        self._saved_at, self._saved_step = self._clock(), step
        self.saver.last_step = step if step else None
        self.faults.at("start")
        self.heartbeat.step = step
        self.heartbeat.phase = "train"
        self._leave_if_asked(self._agreement.check(written=self.saver.written), step)

    def ask_to_save(self) -> None:
        """Save soon, whatever the config says, on all ranks; only rank 0's word counts."""
        self._is_asked = True

    def boundary(self, step: int, snapshot: Callable[[], Snapshot], *, over: bool) -> None:
        """An optimizer step is done, and everything that belongs to it.

        Args:
            snapshot: Makes the state; called where it is needed.
            over: The training ends here by itself, so that a stop has nothing to save.

        Raises:
            Stopped: all ranks saved this step.
        """
        self.heartbeat.stepped(step)
        self.faults.at("step", step)
        due = self._due_by_time() or (self._is_asked and not self.saver.busy)
        agreed = self._agreement.boundary(save_due=due, written=self.saver.written)
        if agreed is not None:
            self.saver.settle(agreed.written)
            if agreed.cause and not over:
                self._stop(agreed.cause, snapshot())
        if self._due_by_steps(step) or (agreed is not None and agreed.save):
            self._save(step, snapshot())
        elif not self._prepared and self._saves_in_background():
            self.saver.prepare(snapshot())
        self._prepared = True  # a save makes its own buffers
        self.heartbeat.begins_step()

    def _due_by_time(self) -> bool:
        """Whether the minutes between two saves are over, and the last save is written."""
        minutes = self._config.every_n_minutes
        if minutes is None or self.saver.busy:
            return False
        return self._clock() - self._saved_at >= 60 * minutes

    def _due_by_steps(self, step: int) -> bool:
        every = self._config.every_n_steps
        return every is not None and step - self._saved_step >= every

    def _saves_in_background(self) -> bool:
        config = self._config
        saves = config.every_n_steps is not None or config.every_n_minutes is not None
        return config.asynchronous and saves

    def _save(self, step: int, snapshot: Snapshot) -> None:
        self._saved_at, self._saved_step, self._is_asked = self._clock(), step, False
        with self.heartbeat.during("save"):
            self.saver.start(snapshot)
        self._agreement.rest()

    def _stop(self, cause: str, snapshot: Snapshot) -> None:
        with self.heartbeat.during("save"):
            saved = self.saver.save(snapshot)
        if not saved:
            say_loudly(f"stopped by {cause} after step {snapshot.step}, and it could not be saved")
        raise Stopped(cause, snapshot.step, saved=saved)

    def _leave_if_asked(self, agreed: Agreed, step: int) -> None:
        if agreed.cause:
            self.saver.finish()
            raise Stopped(agreed.cause, step, saved=False)

    def evaluation_begins(
        self,
        step: int,
        *,
        snapshot: Callable[[], Snapshot] | None,
        may_leave: bool,
        batches: int,
    ) -> None:
        """An evaluation begins on all ranks. Collective.

        It must not keep a stop waiting, nor be saved in its middle: callbacks may have put other
        weights into the model. So the state is copied here for a stop, and evaluated anew later.

        Args:
            snapshot: Makes the state to leave with; None where there is nothing new to save.
            may_leave: False where a stop has to wait for the evaluation's end.
            batches: How many this rank has, 0 if unknown. Behind the least number of any rank
                nobody asks any more, so that uneven ranks do not wait for one another.

        Raises:
            Stopped: a stop came before.
        """
        self.heartbeat.phase = "validate"
        self._agreement.rest()
        self._evaluation_began = self._clock()
        self._before_evaluation = None
        worth_it = self._evaluation_s is None or self._evaluation_s > _ABANDON_S
        agreed = self._evaluation.check(save_due=worth_it and not self.saver.busy, common=batches)
        self._common_batches = agreed.common if may_leave else 0
        if not may_leave:
            return
        if snapshot is None:
            self._leave_if_asked(agreed, step)
        elif agreed.cause:
            self._stop(agreed.cause, snapshot())
        elif agreed.save:
            self.saver.finish()
            self._before_evaluation = self.saver.copy(snapshot())
        else:
            self._common_batches = 0

    def evaluation_batch(self, step: int, batch: int) -> None:
        """Evaluation batch number `batch`, counted from 1, is done.

        Raises:
            Stopped: the state from before the evaluation is saved.
        """
        self.heartbeat.batch = batch
        self.faults.at("validate", batch)
        if batch > self._common_batches:
            return
        agreed = self._evaluation.boundary(save_due=False, written=0)
        if agreed is None or not agreed.cause:
            return
        if self._before_evaluation is not None:
            self._stop(agreed.cause, self._before_evaluation)
        self._leave_if_asked(agreed, step)

    def evaluation_ends(self, *, whole: bool = True) -> None:
        """Back to training; `whole` is False after a sanity check, which tells no duration."""
        self.heartbeat.phase = "train"
        if whole:
            self._evaluation_s = self._clock() - self._evaluation_began
        self._before_evaluation = None
        self._evaluation.rest()
        self._agreement.rest()

    def meet_at_end(self) -> None:
        """This rank has taken its last step; returns once all ranks have. Collective.

        Ranks whose shares of the data are unequal wait here for ever, for some that are in a step.
        That is no save, which may take its time: so all are here before one begins.
        """
        self._agreement.meet()

    def end(self, snapshot: Callable[[], Snapshot]) -> None:
        """The training is over: its last state is saved, or `unsaved` says why not. Collective.

        Nothing is raised here: callbacks and a script may still save what they have elsewhere.
        """
        with self.heartbeat.during("save"):
            self.unsaved = self._save_last(snapshot())

    def _save_last(self, snapshot: Snapshot) -> UnsavedEndError | None:
        saver = self.saver
        saver.is_last = True
        for wait_s in LAST_SAVES_S:
            time.sleep(wait_s)  # others that write there may make room
            if saver.save(snapshot):
                return None
        rank = saver.rank
        return UnsavedEndError(snapshot.step, saver.why_failed(), rank.run, rank.checkpoints)
