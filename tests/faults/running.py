"""A run on the test cluster, seen as its user sees it: the command line, the history, the ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.history import AttemptRecord, attempts_in, newest_job_id
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import Heartbeat, read_heartbeats
from tests.cluster import Cluster
from tests.cluster.faults import find

__all__ = [
    "RANK",
    "SUPERVISOR",
    "Training",
    "ends_though_preempted",
    "hpc_train",
    "report_adds_up",
    "submit",
    "until",
]

ROOT = Path(__file__).parents[2]
CONFIG = Path(__file__).with_name("tiny.yaml")
LEAN = Path(__file__).with_name("lean")
RANK = r"^\S*python\S* -m hpc_train\.training"  # and not the srun that starts it
SUPERVISOR = r"hpc_train\.supervisor|submitit\.core\._submit"

STARTED_S = 180.0  # for ranks to come up, on a machine that does other things as well


def until(true: Callable[[], Any], what: str, timeout_s: float) -> Any:
    """The first truthy value of `true`, asked ten times a second."""
    deadline = time.monotonic() + timeout_s
    while not (value := true()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s"
        time.sleep(0.1)
    return value


def hpc_train(
    cluster: Cluster, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """The command, as a user of that cluster types it, by default in the repository's root."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "HPC_TRAIN_"))}
    return subprocess.run(
        [sys.executable, "-m", "hpc_train.cli", *arguments],
        env={**environ, **cluster.env(), **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=STARTED_S,
        check=False,
    )


def submit(
    cluster: Cluster,
    folder: Path,
    *overrides: str,
    config: Path = CONFIG,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> Training:
    """`hpc-train submit` of the tiny training."""
    # Nodes that other tests have found bad are remembered in the user's own folder.
    own = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(LEAN), **(env or {})}
    done = hpc_train(
        cluster,
        *("submit", "--json", str(config), f"runs_dir={folder / 'runs'}", *overrides),
        env=own,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    return Training(cluster, RunDir(Path(said["run_dir"])), said["job_id"])


def report_adds_up(training: Training, outcomes: Sequence[str | None]) -> None:
    """`hpc-train report` tells these ends, and shares out the time that has gone by."""
    submitted = read_events(training.run.events)[0].time
    before = time.time()
    done = hpc_train(training.cluster, "report", "--json", str(training.run.path))
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert [it["outcome"] for it in run["attempts"]] == list(outcomes)
    ends = [
        event.time
        for event in read_events(training.run.events)
        if event.kind is EventKind.RUN_ENDED
    ]
    until_s = (ends[-1] if ends else before) - submitted
    shares = run["goodput"]
    room_s = 0.01 * until_s + (0 if ends else time.time() - before)
    assert abs(shares["wall_s"] - until_s) <= room_s, shares
    assert abs(sum(shares["seconds"].values()) - until_s) <= room_s, shares
    assert min(shares["seconds"].values()) >= 0
    assert shares["seconds"]["training"] > 0
    assert shares["seconds"]["startup"] > 0
    assert shares["seconds"]["queue"] > 0
    assert shares["notes"] == []
    for record, times in zip(run["attempts"], shares["attempts"], strict=True):
        assert times["seconds"].get("lost", 0) > 0 or not record["steps_lost"], (
            "lost steps cost time"
        )


@dataclass(frozen=True)
class Training:
    """A run that was submitted."""

    cluster: Cluster
    run: RunDir
    job_id: str

    @classmethod
    def at(cls, cluster: Cluster, folder: Path) -> Training:
        """The run in a folder, by its history."""
        run = RunDir(folder)
        until(lambda: read_events(run.events), "the history", 60)
        return cls(cluster, run, newest_job_id(read_events(run.events)))

    # --- as the user sees it

    def status(self) -> dict[str, Any]:
        """`hpc-train status --json`."""
        done = hpc_train(self.cluster, "status", "--json", str(self.run.path))
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def attempt(self, number: int) -> dict[str, Any]:
        """One attempt in `hpc-train status --json`."""
        return self.status()["attempts"][number]

    def diagnosed(self, attempt: int = 0) -> tuple[str, int | None, str | None]:
        """What `hpc-train diagnose` says of an attempt: the cause's name, the rank, the node."""
        words = ("diagnose", str(self.run.path), "--attempt", str(attempt), "--json")
        done = hpc_train(self.cluster, *words)
        assert done.returncode == 3, done.stdout + done.stderr
        document = json.loads(done.stdout)
        assert document["cause"], document
        return document["name"], document["rank"], document["node"]

    # --- waiting, by the files alone, so that waiting costs little

    def records(self) -> list[AttemptRecord]:
        """The attempts so far."""
        return attempts_in(read_events(self.run.events))

    def beats(self, attempt: int) -> list[Heartbeat]:
        """The ranks' signs of life."""
        return read_heartbeats(self.run.attempt(attempt))

    def wait_step(self, attempt: int = 0, *, new: int = 3, timeout_s: float = STARTED_S) -> int:
        """Wait until all ranks of an attempt have taken `new` steps; returns the least step."""

        def stepping() -> int:
            self._not_over(attempt)
            began = [record for record in self.records() if record.attempt == attempt]
            beats = self.beats(attempt)
            world = json.loads(self.run.plan.read_text())["shape"]
            if not began or len(beats) < world["nodes"] * world["ranks_per_node"]:
                return 0
            least = min(beat.step for beat in beats)
            return least if least >= began[0].first_step + new else 0

        try:
            return int(until(stepping, f"{new} steps in attempt {attempt}", timeout_s))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from error

    def wait_saved(self, step: int, timeout_s: float = STARTED_S) -> None:
        """Wait for a whole checkpoint of that step or later: it is written beside the steps."""
        what = f"a checkpoint of step {step} or later"
        until(lambda: newest_step(self.run) >= step, what, timeout_s)

    def wait_attempt_end(self, attempt: int = 0, timeout_s: float = STARTED_S) -> AttemptRecord:
        """Wait until the history says how an attempt ended and what follows."""

        def ended() -> AttemptRecord | None:
            found = [record for record in self.records() if record.attempt == attempt]
            return found[0] if found and found[0].decision else None

        try:
            return until(ended, f"the end of attempt {attempt}", timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from error

    def wait_end(self, timeout_s: float = STARTED_S) -> str:
        """Wait until the run is over; returns its state."""

        try:
            return str(until(self.end, "the run's end", timeout_s))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from error

    def wait_job(self, states: str | Sequence[str], timeout_s: float = STARTED_S) -> str:
        """Wait for the job of the submission to be in a state, other ends notwithstanding."""
        wanted = [states] if isinstance(states, str) else states
        return until(
            lambda: (state := self.cluster.state(self.job_id)) in wanted and state,
            f"job {self.job_id} in {wanted}",
            timeout_s,
        )

    def end(self) -> str:
        """The run's state, once it is over and nobody has resumed it since; empty before."""
        state = ""
        for event in read_events(self.run.events):
            if event.kind is EventKind.RUN_ENDED:
                state = str(event.get("state"))
            elif event.kind is EventKind.SUBMITTED:
                state = ""
        return state

    def _not_over(self, attempt: int) -> None:
        assert not self.end(), f"over before attempt {attempt} took its steps\n{self.story()}"

    # --- processes

    def pids(self, node: str, pattern: str = RANK) -> list[int]:
        """Processes of this run on a node."""
        return find(self.cluster, node, pattern)

    def processes(self) -> dict[str, list[int]]:
        """The ranks that are left, by node."""
        left = {node: self.pids(node) for node in self.cluster.nodes}
        return {node: pids for node, pids in left.items() if pids}

    def wait_no_ranks(self, nodes: Sequence[str] = (), timeout_s: float = 120) -> None:
        """No rank may stay behind, on any node."""
        names = nodes or list(self.cluster.nodes)
        until(lambda: not any(self.pids(name) for name in names), "all ranks to end", timeout_s)

    # --- for messages

    def story(self) -> str:
        """Everything that is known, for the message of a test that failed."""
        parts = [self.run.events.read_text() if self.run.events.exists() else "no history"]
        logs = sorted(self.run.submitit.glob("slurm-*.log"))
        logs += sorted(self.run.attempts.glob("*/*.log"))
        for log in logs:
            tail = log.read_text(errors="replace").splitlines()[-15:]
            parts += [f"--- {log.relative_to(self.run.path)}", *tail]
        return "\n".join(parts)


def ends_though_preempted(cluster: Cluster, training: Training, nodes: Sequence[str]) -> None:
    """Preempt it once: no step is lost, it goes on where it saved, and ends as completed."""
    urgent = cluster.preempt(nodes)
    until(lambda: cluster.state(urgent) == "RUNNING", "the urgent job to start", 120)
    cluster.cancel(urgent)
    assert training.wait_end() == "completed", training.story()
    first, second = training.status()["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0), training.story()
    assert second["first_step"] == first["saved_step"] >= 3
