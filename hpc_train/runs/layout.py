"""Every file name of a run directory, said once.

runs/NAME/RUN_ID/
    config.yaml plan.json job.sbatch environment.json events.jsonl (of a Session: session.txt)
    latest -> attempts/K       done (after the run completed)       stop (asks the ranks to stop)
    code-HASH.diff (what git said was changed)      snapshot/ snapshot.json (of `snapshot: git`)
    attempts/K/   environment.json rank-R.log supervisor.log launcher.log preflight.json nccl-*.log
                  flight-recorder-R beginning.json progress.jsonl stacks/ exits/rank-R.json abort dump-stacks
                  heartbeat/rank-R.json heartbeat/node-NAME.json (of many ranks)
    checkpoints/step-000001234/ (with its manifest.json)   checkpoints/fit-1/ (a script's next fit)
    models/       models.json *.ckpt (of the training's own ModelCheckpoints)
    weights/      what the model begins with, as a hard link   predictions/ (of `predict`)
    metrics/ monitor/NODE.jsonl submitit/ schedules.json
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CHECKPOINT_NAME", "AttemptDir", "RunDir", "SubmittedFiles", "checkpoint_name"]

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
        """How one rank says it ended: `runs.ranks.ExitRecord` as JSON."""
        return self.path / "exits" / f"rank-{rank}.json"

    def heartbeat(self, rank: int) -> Path:
        """The rank's sign of life: `runs.ranks.Heartbeat` as JSON, made anew each second."""
        return self.path / "heartbeat" / f"rank-{rank}.json"

    def node_heartbeats(self, name: str) -> Path:
        """The signs of life of all ranks of a node, in one file: of a run with many ranks."""
        return self.path / "heartbeat" / f"node-{name}.json"

    @property
    def beginning(self) -> Path:
        """Where the ranks really began: `runs.ranks.Beginning` as JSON, by rank 0."""
        return self.path / "beginning.json"

    @property
    def environment(self) -> Path:
        """The code as the attempt began, and what was installed where its rank 0 ran."""
        return self.path / "environment.json"

    @property
    def progress(self) -> Path:
        """When the training was at which step, by rank 0: a JSON document a line."""
        return self.path / "progress.jsonl"

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
        """Folder of the ranks' stacks: `rank_stacks`."""
        return self.path / "stacks"

    def rank_stacks(self, rank: int) -> Path:
        """What one rank did when the watchdog asked, or when a signal like SIGSEGV ended it."""
        return self.stacks / f"rank-{rank}.txt"

    @property
    def flight_recorder(self) -> Path:
        """What the names of torch's flight recorder's files begin with; the rank comes behind."""
        return self.path / "flight-recorder-"

    @property
    def dump_request(self) -> Path:
        """Made by the supervisor: every rank dumps its stacks into `stacks/rank-R.txt`."""
        return self.path / "dump-stacks"

    @property
    def stop_steps(self) -> Path:
        """Where the ranks of a script agree on the step to stop at: a file a rank."""
        return self.path / "stop-steps"

    def claim(self, rank: int) -> Path:
        """Of a script that starts its own ranks: on which node this one is, and its pid."""
        return self.path / "ranks" / f"rank-{rank}"

    @property
    def save_claims(self) -> Path:
        """Where the ranks of a script say to which files they save: a small file a path."""
        return self.path / "save-claims"

    @property
    def abort(self) -> Path:
        """Made by the supervisor: every rank leaves at once, with the exit code in this file."""
        return self.path / "abort"


class SubmittedFiles:
    """What the folder of a run and that of a sweep have alike."""

    path: Path

    @property
    def script(self) -> Path:
        """The script that was submitted; a fresh submission uses it, too."""
        return self.path / "job.sbatch"

    @property
    def environment(self) -> Path:
        """Git commit and changes, Python and modules at submission; an attempt has its own."""
        return self.path / "environment.json"

    @property
    def events(self) -> Path:
        """The history: one JSON document a line, append only."""
        return self.path / "events.jsonl"


@dataclass(frozen=True)
class RunDir(SubmittedFiles):
    """The files of one run.

    Attributes:
        named: The folder lies in one of the run's name; that of a Session is where its script says.
    """

    path: Path
    named: bool = True

    @property
    def run_id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.path.name

    @property
    def name(self) -> str:
        """The run's name, which is the parent folder's name."""
        return self.path.parent.name if self.named else self.path.name

    @property
    def config(self) -> Path:
        """The resolved config, for people."""
        return self.path / "config.yaml"

    @property
    def plan(self) -> Path:
        """The plan, which everything after submission reads."""
        return self.path / "plan.json"

    @property
    def session(self) -> Path:
        """In place of the plan, of a script of the user's with a Session: how it was started."""
        return self.path / "session.txt"

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
    def own_saves(self) -> Path:
        """Which checkpoints a script has written by itself: `script_saves.OwnSaves`."""
        return self.path / "own-saves.json"

    @property
    def models(self) -> Path:
        """Folder of what the training's own ModelCheckpoints save."""
        return self.path / "models"

    @property
    def models_list(self) -> Path:
        """What they have saved, with metric and step: `saved_models.SavedModel` as JSON."""
        return self.models / "models.json"

    @property
    def schedules(self) -> Path:
        """The learning rate schedules of the training, and for which length they were built."""
        return self.path / "schedules.json"

    @property
    def final_metrics(self) -> Path:
        """Every metric's last value, once the training is over."""
        return self.metrics / "final.json"

    @property
    def weights(self) -> Path:
        """Folder of the weights that the model begins with, so that nobody can delete them."""
        return self.path / "weights"

    @property
    def predictions(self) -> Path:
        """Folder of what `predict` gave."""
        return self.path / "predictions"

    @property
    def metrics(self) -> Path:
        """Folder of the loggers' files."""
        return self.path / "metrics"

    @property
    def metrics_csv(self) -> Path:
        """A row a step that logged anything, a column a metric, `step` first."""
        return self.metrics / "metrics.csv"

    @property
    def step_times(self) -> Path:
        """Of a bench's run, how fast it was: `step_times.StepTimes` as JSON."""
        return self.metrics / "step-times.json"

    @property
    def monitor(self) -> Path:
        """Folder of the node monitors' files."""
        return self.path / "monitor"

    @property
    def submitit(self) -> Path:
        """Submitit's own pickles and logs."""
        return self.path / "submitit"

    def job_log(self, job_id: str) -> Path:
        """What a Slurm job says before its supervisor does, and beside it.

        A task of a sweep's array (`ARRAY_TASK`) writes into the sweep's folder.
        """
        if "_" in job_id:
            sweep = self.path.with_name(self.run_id.rpartition("-")[0])
            return sweep / "logs" / f"slurm-{job_id}.log"
        return self.submitit / f"slurm-{job_id}.log"

    @property
    def attempts(self) -> Path:
        """Folder of all attempts."""
        return self.path / "attempts"

    def attempt(self, number: int) -> AttemptDir:
        """The folder of attempt `number`, counted from 0; it need not exist."""
        return AttemptDir(self.attempts / str(number))
