"""What the end of a run that failed proposes to type."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hpc_train import api
from hpc_train.cli.following import follow_run, print_end
from hpc_train.plan.states import RunState
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.status import run_status
from tests.cli.test_mistakes_of_first_days import end, project, run

__all__ = ["project", "run"]


def test_a_batch_larger_than_the_set_is_for_a_new_run(hpc, capfd, run: RunDir) -> None:
    """`resume` was proposed, which takes no other batch."""
    reason = "the train set has 256 samples (submit again with global_batch_size=256 or less)"
    end(run, "failed", reason)
    assert follow_run(api.Run(run), show=False) == 10
    said = capfd.readouterr().out
    assert "go on      hpc-train submit CFG global_batch_size=256" in said
    assert "hpc-train resume" not in said


def test_what_fails_again_as_it_is_is_not_told_to_go_on_as_it_is(hpc, capfd, run: RunDir) -> None:
    data = {"attempt": 0, "outcome": "user_error", "reason": "rank 0 on n1 failed: ValueError: x"}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "failed", data["reason"])
    assert follow_run(api.Run(run), show=False) == 10
    said = capfd.readouterr().out
    assert f"go on      hpc-train resume {run.run_id}, once that is mended; with model, dat" in said
    (run.path / "snapshot.json").write_text("{}")
    assert follow_run(api.Run(run), show=False) == 10
    assert f"hpc-train resume {run.run_id} --new-snapshot, once" in capfd.readouterr().out


def test_a_folder_that_the_nodes_do_not_see_is_for_a_new_run(hpc, capfd, run: RunDir) -> None:
    """`resume` was proposed, which keeps the folder."""
    view = SchedulerView(RunState.FAILED, "JobLaunchFailure")
    sent = Event(1.0, EventKind.SUBMITTED, {"job_id": "7", "backend": "slurm"})
    print_end(run_status(run, [sent], view, beat=None, metrics={}, now=1000.0))
    said = capfd.readouterr().out
    assert "go on      hpc-train submit CFG runs_dir=FOLDER" in said
    assert "hpc-train resume" not in said


def test_the_config_that_was_typed_is_named(hpc, capfd, run: RunDir) -> None:
    end(run, "failed", "the train set is small (submit again with global_batch_size=4 or less)")
    with click.Context(click.Command("run")) as context:
        context.params["cfg"] = Path("my configs/net.yaml")
        assert follow_run(api.Run(run), show=False) == 10
    line = "go on      hpc-train submit 'my configs/net.yaml' global_batch_size=4"
    assert line in capfd.readouterr().out


def test_what_was_typed_behind_the_config_is_kept(hpc, capfd, run: RunDir) -> None:
    """The fix alone trained on other ranks, with other values."""
    end(run, "failed", "head.weight got no gradient (submit again with trainer.strategy=ddp_x)")
    with click.Context(click.Command("run")) as context:
        context.params |= {
            "cfg": Path("net.yaml"),
            "gpus": 2,
            "partition": None,
            "overrides": ("trainer.strategy=ddp", "model.init_args.lr=1", "data.init_args.at=a b"),
        }
        assert follow_run(api.Run(run), show=False) == 10
    typed = "net.yaml --gpus 2 model.init_args.lr=1 'data.init_args.at=a b' trainer.strategy=ddp_x"
    assert f"go on      hpc-train submit {typed}\n" in capfd.readouterr().out
