"""Every file name of a run directory, said once.

runs/NAME/RUN_ID/
    config.yaml plan.json job.sbatch environment.json events.jsonl (of a Session: session.txt)
    latest -> attempts/K       done (after the run completed)       stop (asks the ranks to stop)
    code-HASH.diff (what git said was changed)      snapshot/ snapshot.json (of `snapshot: git`)
    attempts/K/   environment.json rank-R.log supervisor.log launcher.log preflight.json nccl-*.log
                  flight-recorder-R beginning.json progress.jsonl stacks/ exits/rank-R.json
                  abort dump-stacks
                  heartbeat/rank-R.json heartbeat/node-NAME.json (of many ranks)
    checkpoints/step-000001234/ (with its manifest.json)   checkpoints/fit-1/ (a script's next fit)
    models/       models.json *.ckpt (of the training's own ModelCheckpoints)
    weights/      what the model begins with, as a hard link   predictions/ (of `predict`)
    metrics/ monitor/NODE.jsonl submitit/ schedules.json
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

CHECKPOINT_NAME = re.compile(r"step-(\d{9,})\Z")


def checkpoint_name(step: int) -> str:
    """Name of the folder of the checkpoint taken after `step` optimizer steps."""
    return f"step-{step:09d}"


class InFolder:
    """A file or a folder of a fixed name in the folder whose class names it."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, folder: HasPath, _owner: type[HasPath] | None = None) -> Path:
        return folder.path.joinpath(*self._parts)


class HasPath(Protocol):
    """A folder with a layout."""

    @property
    def path(self) -> Path:
        """Where it is."""


@dataclass(frozen=True)
class AttemptDir:
    """The files of one attempt."""

    path: Path

    # Where the ranks really began: `runs.ranks.Beginning` as JSON, by rank 0.
    beginning = InFolder("beginning.json")
    # The code as the attempt began, and what was installed where its rank 0 ran.
    environment = InFolder("environment.json")
    # What a person should know of the training, by rank 0: a JSON document a line.
    notes = InFolder("notes.jsonl")
    # When the training was at which step, by rank 0: a JSON document a line.
    progress = InFolder("progress.jsonl")
    # What the supervisor said.
    supervisor_log = InFolder("supervisor.log")
    # Standard error of srun or of torch's elastic launcher.
    launcher_log = InFolder("launcher.log")
    # The verdict as JSON.
    preflight = InFolder("preflight.json")
    # Folder of the ranks' stacks: `rank_stacks`.
    stacks = InFolder("stacks")
    # What the names of torch's flight recorder's files begin with; the rank comes behind.
    flight_recorder = InFolder("flight-recorder-")
    # Made by the supervisor: every rank dumps its stacks into `stacks/rank-R.txt`.
    dump_request = InFolder("dump-stacks")
    # Where the ranks of a script agree on the step to stop at: a file a rank.
    stop_steps = InFolder("stop-steps")
    # Where the ranks of a script say to which files they save: a small file a path.
    save_claims = InFolder("save-claims")
    # Made by the supervisor: every rank leaves at once, with the exit code in this file.
    abort = InFolder("abort")

    def rank_log(self, rank: int) -> Path:
        """Standard output and error of one global rank."""
        return self.path / f"rank-{rank}.log"

    def exit_record(self, rank: int) -> Path:
        """How one rank says it ended: `runs.ranks.ExitRecord` as JSON."""
        return self.path / "exits" / f"rank-{rank}.json"

    def heartbeat(self, rank: int) -> Path:
        """The rank's sign of life: `runs.ranks.Heartbeat` as JSON, made anew each second."""
        return self.path / "heartbeat" / f"rank-{rank}.json"

    def node_heartbeats(self, name: str) -> Path:
        """The signs of life of all ranks of a node, in one file: of a run with many ranks."""
        return self.path / "heartbeat" / f"node-{name}.json"

    def rank_stacks(self, rank: int) -> Path:
        """What one rank did when the watchdog asked, or when a signal like SIGSEGV ended it."""
        return self.stacks / f"rank-{rank}.txt"

    def claim(self, rank: int) -> Path:
        """Of a script that starts its own ranks: on which node this one is, and its pid."""
        return self.path / "ranks" / f"rank-{rank}"


class SubmittedFiles:
    """What the folder of a run and that of a sweep have alike."""

    path: Path

    # The script that was submitted; a fresh submission uses it, too.
    script = InFolder("job.sbatch")
    # Git commit and changes, Python and modules at submission; an attempt has its own.
    environment = InFolder("environment.json")
    # The history: one JSON document a line, append only.
    events = InFolder("events.jsonl")


@dataclass(frozen=True)
class RunDir(SubmittedFiles):
    """The files of one run.

    Attributes:
        named: The folder lies in one of the run's name; that of a Session is where its script says.
    """

    path: Path
    named: bool = True

    # The resolved config, for people.
    config = InFolder("config.yaml")
    # The plan, which everything after submission reads.
    plan = InFolder("plan.json")
    # In place of the plan, of a script of the user's with a Session: how it was started.
    session = InFolder("session.txt")
    # Of a copy that was resumed: the folder of the run that it was copied from.
    copy_of = InFolder("copy-of")
    # Exists once the run completed; a restart that sees it ends at once with 0.
    done = InFolder("done")
    # While it exists, the ranks save at the next step boundary and leave.
    stop = InFolder("stop")
    # Held by the supervisor of the running attempt.
    lock = InFolder("supervisor.lock")
    # Folder of all attempts, and a link to the newest.
    attempts = InFolder("attempts")
    latest = InFolder("latest")
    # Folder of the checkpoints.
    checkpoints = InFolder("checkpoints")
    # Which checkpoints a script has written by itself: `script_saves.OwnSaves`.
    own_saves = InFolder("own-saves.json")
    # Folder of what the training's own ModelCheckpoints save, and what they have saved, with
    # metric and step: `saved_models.SavedModel` as JSON.
    models = InFolder("models")
    models_list = InFolder("models", "models.json")
    # The learning rate schedules of the training, and for which length they were built.
    schedules = InFolder("schedules.json")
    # Folder of the weights that the model begins with, so that nobody can delete them.
    weights = InFolder("weights")
    # Folder of what `predict` gave.
    predictions = InFolder("predictions")
    # Folder of the loggers' files.
    metrics = InFolder("metrics")
    # A row a step that logged anything, a column a metric, `step` first.
    metrics_csv = InFolder("metrics", "metrics.csv")
    # Every metric's last value, once the training is over.
    final_metrics = InFolder("metrics", "final.json")
    # Of a bench's run, how fast it was: `step_times.StepTimes` as JSON.
    step_times = InFolder("metrics", "step-times.json")
    # Folder of the node monitors' files.
    monitor = InFolder("monitor")
    # Submitit's own pickles and logs.
    submitit = InFolder("submitit")

    @property
    def run_id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.path.name

    @property
    def name(self) -> str:
        """The run's name, which is the parent folder's name."""
        return self.path.parent.name if self.named else self.path.name

    @property
    def latest_attempt(self) -> AttemptDir:
        """The folder of the newest attempt: through the link to it, by its number without one.

        What follows links as it copies a run leaves a folder in the link's place.
        """
        numbers = []
        with contextlib.suppress(OSError):  # before the first attempt, or not to be read
            if not self.latest.is_symlink():
                numbers = [int(it.name) for it in self.attempts.iterdir() if it.name.isdecimal()]
        return self.attempt(max(numbers)) if numbers else AttemptDir(self.latest)

    def job_log(self, job_id: str) -> Path:
        """What a Slurm job says before its supervisor does, and beside it.

        A task of a sweep's array (`ARRAY_TASK`) writes into the sweep's folder.
        """
        if "_" in job_id:
            sweep = self.path.with_name(self.run_id.rpartition("-")[0])
            return sweep / "logs" / f"slurm-{job_id}.log"
        return self.submitit / f"slurm-{job_id}.log"

    def attempt(self, number: int) -> AttemptDir:
        """The folder of attempt `number`, counted from 0; it need not exist."""
        return AttemptDir(self.attempts / str(number))
