"""A tracking service that is away: told at once in a first attempt, later it ends no training.

W&B's and MLflow's own packages, see tests/logger_services.txt; MLflow's server is a stand-in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc_train.training.service_outages import NEXT_TRY_S, OutageTolerantClient, be_brief
from tests.training.mlflow_stand_in import MlflowStandIn

FOLDER = Path(sys.prefix, "logger-services")
needs_services = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"make test installs wandb and mlflow-skinny into {FOLDER}"
)
ATTEMPT = """
import json, sys
from pathlib import Path
from hpc_train.runs.layout import RunDir
from hpc_train.training.loggers import make_loggers

run, first = RunDir(Path(sys.argv[1])), int(sys.argv[2])
(logger,) = make_loggers([json.loads(sys.argv[3])], run, first)
for step in range(first, first + 3):
    logger.log_metrics({"loss": 1.0 / (step + 1)}, step=step)
    print("logged", step, flush=True)
    sys.stdin.readline()
logger.finalize("success")
print("finished", flush=True)
"""
MLFLOW = {
    "class_path": "pytorch_lightning.loggers.MLFlowLogger",
    "init_args": {"experiment_name": "d"},
}
WANDB = {"class_path": "pytorch_lightning.loggers.WandbLogger", "init_args": {"project": "d"}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder with an attempt, which takes the notes."""
    folder = tmp_path / "digits" / "20260101-abc"
    (folder / "attempts" / "0").mkdir(parents=True)
    (folder / "latest").symlink_to("attempts/0")
    return folder


@pytest.fixture
def server() -> Iterator[MlflowStandIn]:
    with MlflowStandIn() as stand_in:
        yield stand_in


class Attempt:
    """A process that logs three steps, each when it is told to go on."""

    def __init__(self, run: Path, first: int, kind: dict[str, Any], **environ: str) -> None:
        command = [sys.executable, "-c", ATTEMPT, str(run), str(first), json.dumps(kind)]
        quick = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "WANDB_SILENT": "true"}
        places = {"PYTHONPATH": str(FOLDER), "RANK": "0", "HOME": str(run.parent)}
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **places, **quick, **environ},
            cwd=run.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""

    def until(self, word: str) -> None:
        """Read until a line begins with WORD; fails with what it said where it ended before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if line.startswith(word):
                return
        raise AssertionError(self.said)

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def to_the_end(self) -> int:
        self.said += self.process.communicate("\n\n\n", timeout=120)[0]
        return self.process.returncode


def notes(run: Path) -> str:
    return "\n".join(file.read_text() for file in run.glob("attempts/*/notes*"))


@needs_services
def test_a_server_that_is_away_at_the_start_is_told_with_its_address(run: Path) -> None:
    stand_in = MlflowStandIn()
    stand_in.start()
    stand_in.stop()
    attempt = Attempt(run, 0, MLFLOW, MLFLOW_TRACKING_URI=stand_in.url)
    assert attempt.to_the_end() != 0
    said = f"loggers[0]: MLflow's server {stand_in.url} does not answer: Connection refused"
    assert said in attempt.said


@needs_services
@pytest.mark.parametrize("fault", ["stopped", "answers 503"])
def test_the_training_goes_on_to_its_end_without_the_server(
    run: Path, server: MlflowStandIn, fault: str
) -> None:
    attempt = Attempt(run, 0, MLFLOW, MLFLOW_TRACKING_URI=server.url)
    attempt.until("logged 0")
    if fault == "stopped":
        server.stop()
    else:
        server.status = 503
    assert attempt.to_the_end() == 0, attempt.said
    assert server.metrics == [("loss", 0)]
    said = notes(run)
    assert f"MLflow's server {server.url} does not answer (" in said
    assert "2 calls with metrics were not sent" in said


@needs_services
def test_what_was_logged_meanwhile_is_sent_once_in_its_order(
    run: Path, server: MlflowStandIn
) -> None:
    attempt = Attempt(run, 0, MLFLOW, MLFLOW_TRACKING_URI=server.url)
    attempt.until("logged 0")
    server.stop()
    attempt.go_on()
    attempt.until("logged 1")
    attempt.go_on()
    attempt.until("logged 2")
    server.start()
    assert attempt.to_the_end() == 0, attempt.said
    assert server.metrics == [("loss", step) for step in range(3)]
    assert server.ended == ["FINISHED"]
    assert "answers again: 2 calls sent" in notes(run)


@needs_services
def test_a_later_attempt_begins_while_the_server_is_away(run: Path, server: MlflowStandIn) -> None:
    assert Attempt(run, 0, MLFLOW, MLFLOW_TRACKING_URI=server.url).to_the_end() == 0
    server.stop()
    attempt = Attempt(run, 3, MLFLOW, MLFLOW_TRACKING_URI=server.url)
    attempt.until("logged 3")
    attempt.go_on()
    attempt.until("logged 4")
    server.start()
    assert attempt.to_the_end() == 0, attempt.said
    assert server.metrics == [("loss", step) for step in range(6)]


@needs_services
def test_a_run_that_began_before_the_experiment_was_kept_asks_for_it(
    run: Path, server: MlflowStandIn
) -> None:
    kept = run / "metrics" / "mlflow-run-0.txt"
    kept.parent.mkdir()
    kept.write_text("r1\n")
    assert Attempt(run, 3, MLFLOW, MLFLOW_TRACKING_URI=server.url).to_the_end() == 0
    assert kept.read_text() == "r1\n7\n"
    assert server.metrics == [("loss", step) for step in range(3, 6)]


@needs_services
@pytest.mark.parametrize("first", [0, 3])
def test_weights_and_biases_away_ends_a_first_attempt_alone(run: Path, first: int) -> None:
    away = {
        "WANDB_BASE_URL": "http://127.0.0.1:9",
        "WANDB_API_KEY": "0" * 40,
        "WANDB_INIT_TIMEOUT": "4",
    }
    attempt = Attempt(run, first, WANDB, **away)
    code = attempt.to_the_end()
    if first == 0:
        assert code != 0
        assert "loggers[0]: W&B is not reached: " in attempt.said
        return
    assert code == 0, attempt.said
    assert "this attempt logs into files" in notes(run)
    (file,) = (run / "metrics").glob("wandb/offline-run-*/run-20260101-abc.wandb")
    assert file.stat().st_size > 0


class RefusedError(Exception):
    """As MLflow's exceptions tell what a server answered."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code

    def get_http_status_code(self) -> int:
        return self.code


class FakeClient:
    """Answers with the codes it is given, then with 200."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.tried: list[int] = []

    def log_metric(self, value: int) -> int:
        self.tried.append(value)
        code = self.codes.pop(0) if self.codes else 200
        if code != 200:
            raise RefusedError(code)
        return value


def tolerant(client: FakeClient, clock: list[float]) -> tuple[OutageTolerantClient, list[str]]:
    said: list[str] = []
    made = OutageTolerantClient(client, where="it", note=said.append, clock=lambda: clock[0])
    return made, said


@pytest.mark.parametrize("code", [400, 401, 404])
def test_what_the_server_refuses_is_the_users_error(code: int) -> None:
    client, said = tolerant(FakeClient(code), [0.0])
    with pytest.raises(RefusedError):
        client.log_metric(1)
    assert said == []


def test_it_is_asked_again_after_a_while_and_not_before() -> None:
    fake, clock = FakeClient(500, 503), [0.0]
    client, said = tolerant(fake, clock)
    for value in (1, 2, 3):
        client.log_metric(value)
    assert fake.tried == [1]
    clock[0] = NEXT_TRY_S
    client.log_metric(4)  # still away
    assert fake.tried == [1, 1]
    clock[0] = 2 * NEXT_TRY_S
    assert client.log_metric(5) == 5
    assert fake.tried == [1, 1, 1, 2, 3, 4, 5]
    assert len(said) == 2


def test_what_is_refused_later_is_told_and_the_rest_is_sent() -> None:
    fake, clock = FakeClient(500, 400), [0.0]
    client, said = tolerant(fake, clock)
    client.log_metric(1)
    client.log_metric(2)
    client.last_try()
    assert fake.tried == [1, 1, 2]
    assert said[1] == "MLflow refused what had waited (log_metric): code 400"


def test_mlflows_client_gives_up_after_two_retries_unless_the_user_says_otherwise() -> None:
    for given, tries in ({}, "2"), ({"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "7"}, "7"):
        environ: dict[str, str] = dict(given)
        be_brief(environ)
        assert environ == {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": tries}
