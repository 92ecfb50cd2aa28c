"""Every file name of a run directory, said once.

runs/NAME/RUN_ID/
    config.yaml plan.json job.sbatch environment.json events.jsonl
    latest -> attempts/K       done (after the run completed)       stop (asks the ranks to stop)
    attempts/K/   rank-R.log supervisor.log launcher.log preflight.json nccl-*.log
                  beginning.json stacks/ exits/rank-R.json heartbeat/rank-R.json abort dump-stacks
    checkpoints/step-000001234/ (with its manifest.json)
    metrics/ monitor/NODE.jsonl submitit/
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CHECKPOINT_NAME", "AttemptDir", "RunDir", "checkpoint_name"]

CHECKPOINT_NAME = re.compile(r"step-(\d{9,})\Z")


def checkpoint_name(step: int) -> str:
    """Name of the folder of the checkpoint taken after `step` optimizer steps."""
    return f"step-{step:09d}"


@dataclass(frozen=True)
class AttemptDir:
    """The files of one attempt."""

    path: Path

    def rank_log(self, rank: int) -> Path:
        """Standard output and error of one global rank."""
        return self.path / f"rank-{rank}.log"

    def exit_record(self, rank: int) -> Path:
        """How one rank says it ended: `store.ranks.ExitRecord` as JSON."""
        return self.path / "exits" / f"rank-{rank}.json"

    def heartbeat(self, rank: int) -> Path:
        """The rank's sign of life: `store.ranks.Heartbeat` as JSON, made anew each second."""
        return self.path / "heartbeat" / f"rank-{rank}.json"

    @property
    def beginning(self) -> Path:
        """Where the ranks really began: `store.ranks.Beginning` as JSON, by rank 0."""
        return self.path / "beginning.json"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor said."""
        return self.path / "supervisor.log"

    @property
    def launcher_log(self) -> Path:
        """Standard error of srun or of torch's elastic launcher."""
        return self.path / "launcher.log"

    @property
    def preflight(self) -> Path:
        """The verdict as JSON."""
        return self.path / "preflight.json"

    @property
    def stacks(self) -> Path:
        """Folder of the stacks that the watchdog dumped."""
        return self.path / "stacks"

    @property
    def dump_request(self) -> Path:
        """Made by the supervisor: every rank dumps its stacks into `stacks/rank-R.txt`."""
        return self.path / "dump-stacks"

    @property
    def abort(self) -> Path:
        """Made by the supervisor: every rank leaves at once, with the exit code in this file."""
        return self.path / "abort"


@dataclass(frozen=True)
class RunDir:
    """The files of one run."""

    path: Path

    @property
    def run_id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.path.name

    @property
    def name(self) -> str:
        """The run's name, which is the parent folder's name."""
        return self.path.parent.name

    @property
    def config(self) -> Path:
        """The resolved config, for people."""
        return self.path / "config.yaml"

    @property
    def plan(self) -> Path:
        """The plan, which everything after submission reads."""
        return self.path / "plan.json"

    @property
    def script(self) -> Path:
        """The script a fresh submission of this run uses."""
        return self.path / "job.sbatch"

    @property
    def environment(self) -> Path:
        """Git commit and diff, packages, versions, modules at submission."""
        return self.path / "environment.json"

    @property
    def events(self) -> Path:
        """The history: one JSON document a line, append only."""
        return self.path / "events.jsonl"

    @property
    def done(self) -> Path:
        """Exists once the run completed; a restart that sees it ends at once with 0."""
        return self.path / "done"

    @property
    def stop(self) -> Path:
        """While it exists, the ranks save at the next step boundary and leave."""
        return self.path / "stop"

    @property
    def lock(self) -> Path:
        """Held by the supervisor of the running attempt."""
        return self.path / "supervisor.lock"

    @property
    def latest(self) -> Path:
        """Link to the newest attempt."""
        return self.path / "latest"

    @property
    def latest_attempt(self) -> AttemptDir:
        """The folder of the newest attempt, through that link."""
        return AttemptDir(self.latest)

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        """Folder of the loggers' files."""
        return self.path / "metrics"

    @property
    def monitor(self) -> Path:
        """Folder of the node monitors' files."""
        return self.path / "monitor"

    @property
    def submitit(self) -> Path:
        """Submitit's own pickles and logs."""
        return self.path / "submitit"

    @property
    def attempts(self) -> Path:
        """Folder of all attempts."""
        return self.path / "attempts"

    def attempt(self, number: int) -> AttemptDir:
        """The folder of attempt `number`, counted from 0; it need not exist."""
        return AttemptDir(self.attempts / str(number))
