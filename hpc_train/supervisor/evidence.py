"""What is known of an attempt when its ranks are gone: `outcome` judges by it."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpc_train.plan.states import Outcome, RankExit
from hpc_train.runs.ranks import ExitRecord
from hpc_train.slurm.srun_words import gave_up_waiting
from hpc_train.supervisor.deaths import Crash, Death


@dataclass(frozen=True, kw_only=True)
class Hang:
    """What the watchdog saw before it stopped the step.

    Attributes:
        who: Who is late, in words.
        late_ranks: All ranks where none stands out; then no node is blamed.
        step: Optimizer steps that had been taken.
        places: A rank of each place where ranks wait for each other, if that is not one.
        uneven: Which ranks have no batch left where others have, in words; empty where none.
    """

    reason: str
    who: str = ""
    late_ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    step: int | None = None
    places: tuple[str, ...] = ()
    uneven: str = ""


@dataclass(frozen=True, kw_only=True)
class AttemptEvidence:
    """Everything that is known when the ranks are gone.

    Attributes:
        launcher_code: Exit status of srun or the elastic launcher.
        records: Exit records of the ranks, by time.
        deaths: Ends that the launcher reported before it stopped the others, in their order.
        hang: What the watchdog stopped, if it did.
        lost_nodes: Nodes that no longer answer.
        taken_nodes: Nodes that Slurm itself has taken from the step; none where it runs none.
        unlaunched: Nodes on which srun could not start the step, with its words.
        crashes: Ranks whose faulthandler caught a signal of their own making.
        last_words: Of the logs of ranks that ended without an exit record, the last line.
        oom_nodes: Nodes whose kernel killed for memory.
        over_memory: Of ranks whose logs say that Slurm killed them for memory, what they say.
        stop_outcome: What a stop from outside means here: preempted, timeout or cancelled.
        stop_reason: The same in words.
        asked_for_s: Since when the supervisor knows of the stop; None where it was not told.
        saved_step: The newest checkpoint of this attempt; None where it made none.
        launcher_tail: The launcher's last words.
        started: Whether any rank gave a sign of life.
        may_take_no_steps: Whether a script may end well without a step.
        ranks_tell: Whether a rank that has finished always says so: that of a config.
        disk_trouble: Why nothing can be written into the run directory; empty if it can.
    """

    world_size: int
    launcher_code: int
    records: Sequence[ExitRecord] = ()
    deaths: Sequence[Death] = ()
    hang: Hang | None = None
    lost_nodes: tuple[str, ...] = ()
    taken_nodes: tuple[str, ...] = ()
    unlaunched: Mapping[str, str] = field(default_factory=dict)
    crashes: Mapping[int, Crash] = field(default_factory=dict)
    last_words: Mapping[int, str] = field(default_factory=dict)
    oom_nodes: tuple[str, ...] = ()
    over_memory: Mapping[int, str] = field(default_factory=dict)
    stop_outcome: Outcome | None = None
    stop_reason: str = ""
    asked_for_s: float | None = None
    saved_step: int | None = None
    launcher_tail: str = ""
    started: bool = False
    disk_trouble: str = ""
    may_take_no_steps: bool = True
    ranks_tell: bool = False

    @property
    def all_finished(self) -> bool:
        """Whether the ranks say that the training is complete."""
        return finished(self.records)

    @property
    def ended_themselves(self) -> bool:
        """Whether all ranks have ended with 0, by the launcher's code, and none says that it did.

        srun ends with 0 also where ranks outlast KillWait, or where Slurm took all nodes; it says
        so. Whatever it says, its code is then no rank's.
        """
        said = any(word in self.launcher_tail for word in ("error:", "aborted", "Terminat"))
        is_known = self.started and self.ranks_tell and not (self.records or self.deaths)
        is_left_alone = self.stop_outcome is None and self.hang is None and not self.lost_nodes
        return self.launcher_code == 0 and is_known and is_left_alone and not said

    @property
    def no_controller(self) -> bool:
        """Whether srun gave up since nobody answered at the controller's address: no node's fault.

        Source: slurm_strerror of SLURMCTLD_COMMUNICATIONS_*, slurm/slurm_errno.h.
        """
        return "Unable to contact slurm controller" in self.launcher_tail

    @property
    def ranks_stayed(self) -> bool:
        """Whether ranks that were asked to leave had to be killed."""
        killed = self.launcher_code == -signal.SIGKILL or any(
            death.signal == signal.SIGKILL for death in self.deaths
        )
        return killed or gave_up_waiting(self.launcher_tail)


def finished(records: Sequence[ExitRecord]) -> bool:
    """Whether ranks with these last words have completed the training."""
    codes = {record.code for record in records}
    return RankExit.FINISHED in codes and RankExit.SAVED not in codes
