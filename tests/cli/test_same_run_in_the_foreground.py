"""`hpc-train run` of what was stopped before: the run that goes on from there is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from tests.cli.conftest import DIGITS, tell


@pytest.fixture(autouse=True)
def nothing_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpc_train.supervisor.run.supervise", lambda *_, **__: 0)


@pytest.mark.parametrize(
    ("state", "saved", "is_told"),
    [
        ("cancelled", True, True),
        ("failed", True, True),
        ("completed", True, False),
        ("cancelled", False, False),
    ],
)
def test_a_second_run_names_the_one_that_was_stopped(
    hpc, state: str, saved: bool, is_told: bool
) -> None:
    words = ("run", DIGITS, "--nodes", "1", "--gpus", "1", "trainer.accelerator=cpu")
    hpc(*words)
    (first,) = Path.cwd().glob("runs/*/*")
    if saved:
        manifest = first / "checkpoints/step-000000066/manifest.json"
        manifest.parent.mkdir(parents=True)
        manifest.write_text("{}")
    tell(RunDir(first), 9e9, EventKind.RUN_ENDED, state=state, reason="Ctrl-C")
    said = hpc(*words).err
    told = (
        f"{first.name} trained the same, has a checkpoint of step 66 and is {state}:"
        f" hpc-train resume {first.name} goes on there, this run begins anew"
    )
    assert (told in said) == is_told, said
    assert "trained the same" not in hpc(*words, "seed=7").err


def test_another_that_trains_the_same_is_named_with_what_ends_this_one(
    hpc, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("run", DIGITS, "--nodes", "1", "--gpus", "1", "trainer.accelerator=cpu")
    hpc(*words)
    (first,) = Path.cwd().glob("runs/*/*")
    from hpc_train.backends.observe import observe
    from hpc_train.backends.twins import Twins

    (status,) = observe([RunDir(first)], 0.0)
    monkeypatch.setattr("hpc_train.backends.twins.twins_of", lambda _: Twins([status]))
    said = hpc(*words).err
    assert f"note: {first.name} trains the same and is {status.state.value}" in said
    assert "where one is enough, Ctrl-C\n" in said
