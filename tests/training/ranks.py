"""Runs ranks as local processes over gloo, as a launcher would, and keeps what they said."""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

from hpc_train.runs.layout import RunDir
from hpc_train.runs.process_group import signal_group
from hpc_train.training.heartbeat import STACKS_SIGNAL
from tests.ledger import Entry, read_ledger
from tests.training.forked import start
from tests.training.training import DEFAULTS


class Run:
    """One run directory, and attempts that follow one another in it."""

    def __init__(self, path: Path, **spec: Any) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.dir = RunDir(path)
        self.spec = {**DEFAULTS, **spec, "run_dir": str(path)}
        self.attempt = 0

    def start(self, world_size: int = 2, faults: str = "", **changes: Any) -> Ranks:
        spec = {**self.spec, **changes, "attempt": self.attempt}
        (self.path / "attempts" / str(self.attempt)).mkdir(parents=True)
        file = self.path / f"spec-{self.attempt}.json"
        file.write_text(json.dumps(spec))
        self.attempt += 1
        folder = self.path / "attempts" / str(spec["attempt"])
        return Ranks(file, folder, world_size, faults, spec["module"])

    def run(self, world_size: int = 2, faults: str = "", **changes: Any) -> list[int]:
        return self.start(world_size, faults, **changes).wait()

    @property
    def ledger(self) -> list[Entry]:
        return read_ledger(self.path / "ledger")

    @property
    def checkpoints(self) -> list[str]:
        folder = self.dir.checkpoints
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def epochs(self, rank: int = 0) -> list[str]:
        return (self.path / f"epochs-{rank}.txt").read_text().splitlines()

    def log(self, attempt: int, rank: int) -> str:
        return (self.path / "attempts" / str(attempt) / f"rank-{rank}.log").read_text()


def _be_a_rank(spec: str, log: str, environment: dict[str, str], module: str) -> None:
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.environ.update(environment)
    importlib.import_module(module).main(json.loads(Path(spec).read_text(encoding="utf-8")))


class Ranks:
    """The processes of one attempt."""

    def __init__(self, spec: Path, folder: Path, world_size: int, faults: str, module: str) -> None:
        self.folder = folder
        self.processes = []
        for rank in range(world_size):
            environment = {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "NODE_RANK": "0",
                "WORLD_SIZE": str(world_size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "0",
                "RENDEZVOUS_FILE": str(folder / "rendezvous"),  # ports are taken by others
                "HPC_TRAIN_FAULTS": faults,
                "OMP_NUM_THREADS": "1",
                "XDG_STATE_HOME": str(folder / "state"),
                "PYTHONWARNINGS": "ignore",
            }
            log = folder / f"rank-{rank}.log"
            log.touch()
            self.processes.append(start(_be_a_rank, str(spec), str(log), environment, module))

    def wait_for_step(self, step: int, rank: int = 0, timeout_s: float = 150) -> None:
        ledger = self.folder.parents[1] / "ledger" / f"rank-{rank}.jsonl"

        def reached() -> bool:
            lines = ledger.read_text().splitlines() if ledger.exists() else []
            return any(f'"step": {number}, ' in line for line in lines for number in [step])

        self.wait_until(reached, timeout_s)

    def wait_for_text(self, text: str, rank: int = 0, timeout_s: float = 150) -> None:
        log = self.folder / f"rank-{rank}.log"
        self.wait_until(lambda: text in log.read_text(), timeout_s)

    def wait_until(self, condition: Any, timeout_s: float = 150) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            is_over = not any(p.is_alive() for p in self.processes)
            if is_over and condition():  # what they wrote last
                return
            if is_over or time.monotonic() > deadline:
                codes = self.kill()
                raise AssertionError(f"did not come; exit codes {codes}\n{self.logs()}")
            time.sleep(0.01)

    def send(self, number: signal.Signals, *ranks: int) -> None:
        for rank in ranks or range(len(self.processes)):
            os.kill(self.processes[rank].pid, number)

    def wait(self, timeout_s: float = 200, left_s: float | None = None) -> list[int]:
        """Exit codes of all; with `left_s` the others are ended so long behind a killed one.

        A job's supervisor does that; gloo does not always tell a rank of its peer's death
        (tests/scripts/left_in_gloo.py).
        """
        deadline, left = time.monotonic() + timeout_s, math.inf
        while any(process.is_alive() for process in self.processes):
            if time.monotonic() > min(deadline, left):
                break
            if left_s is not None and any((item.exitcode or 0) < 0 for item in self.processes):
                left = min(left, time.monotonic() + left_s)
            time.sleep(0.02)
        codes = [process.exitcode for process in self.processes]
        if None in codes and left == math.inf:
            stacks = self.stacks()
            self.kill()
            said = f"ranks still run after {timeout_s} s: {codes}\n{self.logs()}\n{stacks}"
            raise AssertionError(said)
        self.kill()
        return [process.exitcode for process in self.processes]

    def stacks(self) -> str:
        """Where the ranks that still run are, and their data workers, which share the file."""
        for process in self.processes:
            self._signal_group(process, STACKS_SIGNAL)
        time.sleep(2.0)
        files = sorted((self.folder / "stacks").glob("*"))
        return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in files)

    def kill(self) -> list[int | None]:
        codes = [process.exitcode for process in self.processes]
        for process in self.processes:
            self._signal_group(process, signal.SIGKILL)  # data workers too
            process.join()
        return codes

    @staticmethod
    def _signal_group(process: Any, number: signal.Signals) -> None:
        signal_group(process.pid, number, is_reaped=process.exitcode is not None)

    def logs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text()[-3000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )
