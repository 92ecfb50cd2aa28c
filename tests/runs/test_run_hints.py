"""What is told for a word that a run lacks: of its end where it may be just submitted."""

from __future__ import annotations

import pytest

from hpc_train import api
from hpc_train.runs.run_hints import RunHints
from hpc_train.runs.saved_models import SavedModel
from hpc_train.runs.status import RunStatus

METRICS = "run.wait().metrics (it waits for the end; run.status().metrics are those of now)"
OUTCOME = "run.wait().outcome (it waits for the end; run.status().outcome is that of now)"
MODELS = METRICS.replace("metrics", "best_models")
LOGGED = "run.wait().metrics, which has what was logged; of now: run.status().metrics"
NEWEST = "run.checkpoints(), the newest first, and none before the first is saved"
BEST = "run.best_model().path, once one is saved: run.wait() waits for the end"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((name, METRICS) for name in ("metrics", "result", "results", "scores")),
        *((name, LOGGED) for name in ("loss", "val_acc", "metric")),
        *((name, NEWEST) for name in ("checkpoint", "ckpt", "last_checkpoint")),
        *((name, BEST) for name in ("best_model_path", "best_checkpoint", "model")),
        ("exit_code", OUTCOME),
        ("best_models", MODELS),
        ("state", "run.status().state, of now; run.wait().state waits for the end"),
        ("step", "run.status().step"),
        ("job_id", "run.status().job_id"),
        ("done", "run.status().state.ended"),
        ("run_id", "run.directory.run_id"),
        ("nothing", ""),
    ],
)
def test_a_word_is_told_with_where_it_is(name: str, said: str) -> None:
    assert RunHints.where(name) == said


def test_what_is_told_is_there() -> None:
    for name in ("metrics", "outcome", "best_models", "newest_model", "state", "step"):
        assert name in RunStatus.__dataclass_fields__ or hasattr(RunStatus, name)
    for name in ("wait", "status", "checkpoints", "best_model"):
        assert hasattr(api.Run, name)
    assert "path" in SavedModel.__dataclass_fields__
