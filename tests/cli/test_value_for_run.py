"""KEY=VALUE in the place of RUN, and options of sbatch about what it prints."""

from __future__ import annotations

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.mistaken import project, refused
from tests.cli.run_of_yesterday import project as project_of_yesterday
from tests.cli.run_of_yesterday import run

__all__ = ["project", "project_of_yesterday", "run"]


@pytest.mark.parametrize("value", ["trainer.max_epochs=6", "seed=3", "data.init_args.a=b c"])
@pytest.mark.parametrize("command", ["resume", "test"])
def test_a_value_without_its_run_is_told_with_the_newest(hpc, slurm, command, value, run) -> None:
    said = hpc(command, value).err.splitlines()
    shown = f"'{value}'" if " " in value else value
    kind = "training" if command == "test" else "run"
    assert said == [
        f"error: '{value}' is a value, and no run: RUN stands before it",
        f"  fix: hpc-train {command} x {shown} takes this folder's newest {kind}",
    ]


@pytest.mark.parametrize("command", ["status", "logs"])
def test_a_command_that_takes_no_values_is_told_without_it(
    hpc, slurm, command, run: RunDir
) -> None:
    said = hpc(command, "seed=3").err
    assert "error: 'seed=3' is a value, and no run\n" in said
    assert f"fix: hpc-train {command} x takes this folder's newest run\n" in said
    assert "fix: hpc-train cancel RUN; `hpc-train list`" in hpc("cancel", "seed=3").err


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("--parsable", "hpc-train submit CFG --json prints the job's number as job_id"),
        ("--quiet", "hpc-train submit CFG > /dev/null prints nothing but what is wrong"),
        ("-Q", "hpc-train submit CFG > /dev/null prints nothing but what is wrong"),
        ("--usage", "see hpc-train submit --help, or sbatch --usage"),
        ("--clusters=c2", "type export SLURM_CLUSTERS=NAME"),
    ],
)
def test_options_on_what_sbatch_prints_are_told_with_what_does_that_here(
    hpc, project, option: str, fix: str
) -> None:
    """It was called the command's business."""
    name = option.partition("=")[0]
    for words in (["cfg.yaml", option], [option, "cfg.yaml"]):
        refused(hpc, project, ["submit", *words], 2, f"No such option '{name}'", fix)
