"""The machine's GPUs, runs on them, and the table of what was seen."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from hpc_train.runs.layout import RunDir
from tests.e2e.conftest import ROOT, Shell

OVER = ("completed", "failed", "cancelled", "timed_out", "lost")
CONFIG: dict[str, Any] = {
    "name": "gpu",
    "global_batch_size": 16,
    "seed": 3,
    "reproducible": True,
    "model": {"class_path": "tests.gpu.training.Model", "init_args": {}},
    "data": {"class_path": "tests.gpu.training.Data", "init_args": {}},
    "trainer": {"max_epochs": 2},
    "loggers": ["csv"],
    "preflight": "off",
    "checkpoint": {"every_n_minutes": None, "every_n_steps": 4},
}
_rows: list[tuple[str, str, str]] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a GPU a test here is not passed and not skipped: it is not there."""
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.gpu)
    wants = config.getoption("gpu") or config.getoption("gpu_rehearsal")
    left_out = [item for item in here if not wants or _lacks(config, item)]
    items[:] = [item for item in items if item not in left_out]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def _lacks(config: pytest.Config, item: pytest.Item) -> bool:
    needs = item.get_closest_marker("gpus")
    count = needs.args[0] if needs else 1
    return not config.getoption("gpu_rehearsal") and torch.cuda.device_count() < count


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A row of the table; with several workers this is called where all of them report."""
    if report.when == "call" or report.failed:
        said = "; ".join(f"{name} {value}" for name, value in report.user_properties)
        name = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
        _rows.append((name, report.outcome, said))


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption("gpu_report")
    if file and _rows and not hasattr(session.config, "workerinput"):
        Path(file).write_text(_table(), encoding="utf-8")
        print(f"\n{file}")


def _table() -> str:
    lines = [f"# {machine()}", "", "| check | result | numbers |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in _rows)]) + "\n"


def machine() -> str:
    """GPUs and versions, in a line."""
    count = torch.cuda.device_count()
    gpus = f"{count} x {torch.cuda.get_device_name(0)}" if count else "no GPU (a rehearsal)"
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if count else "none"
    versions = f"torch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {nccl}"
    return f"{gpus}; {versions}; Python {platform.python_version()}; {time.strftime('%Y-%m-%d')}"


@pytest.fixture
def on_gpu(pytestconfig: pytest.Config) -> bool:
    """False in a rehearsal, where trainings are on the CPU."""
    return not pytestconfig.getoption("gpu_rehearsal")


@pytest.fixture
def needs_gpu(on_gpu: bool) -> None:
    """Nothing of this can be rehearsed."""
    if not on_gpu:
        pytest.skip("on a GPU only")


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Put numbers into the check's row: `tell(ratio="1.004")`."""

    def told(**numbers: object) -> None:
        for name, value in numbers.items():
            record_property(name.replace("_", " "), value)

    return told


@dataclass
class Trained:
    """A run, and what its model wrote down."""

    directory: RunDir
    status: dict[str, Any]

    @property
    def log(self) -> str:
        return self.directory.latest_attempt.rank_log(0).read_text()

    def lines(self, rank: int = 0) -> list[dict[str, Any]]:
        text = (self.directory.path / f"steps-{rank}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def hashes(self, rank: int = 0) -> dict[int, str]:
        """Of the parameters after each step; of a step taken twice, the last time."""
        return {line["step"]: line["parameters"] for line in self.lines(rank)}


@dataclass
class Bench:
    """Where trainings are started on this machine."""

    folder: Path
    on_gpu: bool
    environment: dict[str, str] = field(default_factory=dict)

    def hpc(self, *words: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        state = {"XDG_STATE_HOME": str(self.folder / "state")}
        shell = Shell(ROOT, {**state, **self.environment})
        return shell.hpc(*words, code=code, timeout_s=500)

    def submit(self, ranks: int = 1, model: dict[str, Any] | None = None, **keys: Any) -> str:
        """Start a training with `keys` of the config otherwise; returns the run's id."""
        trainer = {**CONFIG["trainer"], "accelerator": "gpu" if self.on_gpu else "cpu"}
        config = {**CONFIG, **keys, "trainer": {**trainer, **keys.get("trainer", {})}}
        config["model"] = {**CONFIG["model"], "init_args": model or {}}
        config["runs_dir"] = str(self.folder / "runs")
        config["slurm"] = {"nodes": 1, "gpus_per_node": ranks}
        file = self.folder / f"config-{time.monotonic_ns()}.yaml"
        file.write_text(yaml.safe_dump(config))
        return str(
            json.loads(self.hpc("submit", "--cluster", "local", "--json", file).stdout)["run"]
        )

    def status(self, run: str) -> dict[str, Any]:
        return dict(json.loads(self.hpc("status", run, "--json", *self._where()).stdout))

    def _where(self) -> list[str]:
        return ["--runs-dir", str(self.folder / "runs")]

    def ended(self, run: str) -> Trained:
        deadline = time.monotonic() + 450
        while (status := self.status(run))["state"] not in OVER:
            assert time.monotonic() < deadline, status
            time.sleep(0.5)
        return Trained(RunDir(Path(status["run_dir"])), status)

    def completed(self, run: str) -> Trained:
        trained = self.ended(run)
        assert trained.status["state"] == "completed", (trained.status, trained.log)
        return trained

    def interrupt(self, run: str, step: int) -> None:
        """Cancel it once it has taken `step` steps, and wait until it has saved and left."""
        deadline = time.monotonic() + 300
        while (status := self.status(run))["step"] < step:
            assert status["state"] not in OVER, status
            assert time.monotonic() < deadline, status
            time.sleep(0.2)
        self.hpc("cancel", run, *self._where())
        assert self.ended(run).status["state"] == "cancelled"

    def resume(self, run: str) -> None:
        self.hpc("resume", run, "--cluster", "local", *self._where())

    def interrupted(self, ranks: int = 1, at: tuple[int, ...] = (6, 14), **keys: Any) -> Trained:
        """The training stopped at about these steps and resumed each time."""
        model = {**keys.pop("model", {}), "step_s": 0.5}
        run = self.submit(ranks, model, **keys)
        for step in at:
            self.interrupt(run, step)
            self.resume(run)
        return self.completed(run)


@pytest.fixture
def bench(tmp_path: Path, on_gpu: bool) -> Bench:
    return Bench(tmp_path, on_gpu)
