"""Words as sbatch, torchrun and a shell have them: what to type here comes back at once."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.cli import run_command, submit_command
from hpc_train.config.scripts.script_arguments import OF_SUBMIT
from tests.cli.mistaken import project, refused

__all__ = ["project"]


@pytest.mark.parametrize(
    ("words", "code", "said", "fix"),
    [
        ("slurm.gpus_per_node=a100:2", 3, "is 'a100:2'", "gpus_per_node=2 slurm.gpu_type=a100"),
        ("slurm.gpus_per_node=gpu:h100:4", 3, "is 'gpu", "gpus_per_node=4 slurm.gpu_type=h100"),
        ("slurm.gpus_per_node=gpu:2", 3, "is 'gpu:2'", "fix: write slurm.gpus_per_node=2"),
        ("slurm.gpus_per_node=two", 3, "is 'two'", "write a whole number"),
        ("--gpus gpu:2", 2, "'gpu:2'", "fix: write --gpus 2"),
        ("--gpus gpu:a100:2", 2, "'gpu:a100:2'", "write --gpus 2 slurm.gpu_type=a100"),
        ("--sweep seed=1-3", 3, "seed=1-3 is no list of values", "write seed='range(1,4)'"),
        ("--sweep trainer.max_epochs=1-3", 3, "is no list", "trainer.max_epochs='range(1,4)'"),
        ("--sweep slurm.nodes=1-2", 3, "is no list", "slurm.nodes='range(1,3)'"),
        ("--sweep seed=3-1", 3, "is '3-1'", "write a whole number"),
        ("env.WANDB_API_KEY=xx", 3, "is no key", "env.passthrough: [WANDB_API_KEY], and set it in"),
        ("env.OMP_NUM_THREADS=2", 3, "is no key", "write env.variables.OMP_NUM_THREADS"),
    ],
)
def test_a_value_as_others_write_it(
    hpc, project: Path, words: str, code: int, said: str, fix: str
) -> None:
    refused(hpc, project, ["submit", "cfg.yaml", *shlex.split(words)], code, said, fix)


@pytest.mark.parametrize(
    ("line", "said", "fix"),
    [
        ("slurm: {gpus_per_node: 'a100:2'}", "cfg.yaml", "gpus_per_node: 2 and slurm.gpu_type: a1"),
        ("sweep: {seed: 1-3}", "sweep.seed is '1-3'", "or range(1, 4)"),
        ("sweep: {seed: 7}", "sweep.seed is 7", "write a list: [7], or range(3)"),
    ],
)
def test_a_value_of_a_file_as_others_write_it(
    hpc, project: Path, line: str, said: str, fix: str
) -> None:
    config = project / "cfg.yaml"
    key = line.partition(":")[0]
    kept = [it for it in config.read_text().splitlines() if not it.startswith(f"{key}:")]
    config.write_text("\n".join([*kept, line, ""]))
    refused(hpc, project, ["submit", "cfg.yaml"], 3, said, fix)


LR = "model.init_args.lr"


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (f"--sweep {LR} = 0.1,0.01", f"write --sweep {LR}=0.1,0.01"),
        (f"--sweep {LR} =0.1,0.01", f"write --sweep {LR}=0.1,0.01"),
        (f"--sweep {LR}= 0.1,0.01", f"write --sweep {LR}=0.1,0.01"),
        (f"--sweep {LR} = 0.1, 0.01 --nodes 1", f"write --sweep {LR}=0.1,0.01"),
        (f"--nodes 1 --sweep {LR} = 0.1 seed=3", f"write --sweep {LR}=0.1"),
        ("--sweep seed = 'range(1, 3)'", "write --sweep seed='range(1, 3)'"),
    ],
)
def test_blanks_beside_the_sign_of_a_sweep(hpc, project: Path, words: str, fix: str) -> None:
    said = "a blank stands beside the = behind --sweep"
    refused(hpc, project, ["submit", "cfg.yaml", *shlex.split(words)], 2, said, fix)


@pytest.mark.parametrize("kind", ["afterok", "after", "afterany", "afternotok", "aftercorr"])
def test_a_dependency_of_slurms_behind_after(hpc, taken, project: Path, kind: str) -> None:
    fix = f"after a run: --after RUN; after other jobs: slurm.dependency={kind}:12"
    said = f"--after {kind}:12: that is how sbatch is told"
    refused(hpc, project, ["submit", "cfg.yaml", "--after", f"{kind}:12"], 2, said, fix)


def test_a_name_that_begins_like_a_dependency_is_a_runs(hpc, taken, project: Path) -> None:
    words = ["submit", "cfg.yaml", "--after", "afterok-12"]
    refused(hpc, project, words, 5, "no run answers to 'afterok-12'", "looked in")


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("--dependency x", "write --after x"),
        ("--dependency=afterok:x:y", "write --after x --after y"),
        ("-d x,y", "write --after x --after y"),
        (
            "-d afterany:x",
            "write slurm.dependency=afterany:JOB; `hpc-train status x` names the JOB",
        ),
        ("-d afterok:12:x", "write slurm.dependency=afterok:JOB; `hpc-train status x` names"),
        ("-d afterok", "write slurm.dependency=afterok:JOB"),
        ("--dependency 12", "a key of the config has no dashes: slurm.dependency=afterok:12"),
        ("--dependency afterok:12", "has no dashes: slurm.dependency=afterok:12"),
        ("--dependency afterok:12,singleton", "slurm.dependency=afterok:12,singleton"),
        ("--dependency", "slurm.dependency=..."),
    ],
)
def test_a_dependency_is_told_as_the_run_or_the_jobs_that_it_names(
    hpc, taken, project: Path, typed: str, fix: str
) -> None:
    """A run's name was told as slurm.dependency=x, which is refused."""
    words = shlex.split(typed)
    said = f"No such option '{words[0].partition('=')[0]}'"
    refused(hpc, project, ["submit", "cfg.yaml", *words], 2, said, fix)


def test_what_waits_for_a_run_is_submitted(hpc, taken, project: Path) -> None:
    words = ["render", "cfg.yaml", "--dependency", "x"]
    fix = "of a run: hpc-train submit CFG --after x"
    refused(hpc, project, words, 2, "No such option '--dependency'", fix)


SCRIPT = """\
import argparse
import pytorch_lightning as pl
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float)
p.parse_args()
pl.Trainer().fit(None)
"""


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        ("-- --lr 0.1 --dry-run", "--dry-run is hpc-train's: write it in front of --"),
        ("-- --lr 0.1 --nodes 2", "--nodes is hpc-train's: write it in front of --"),
        ("-- --time=1:00:00", "--time is hpc-train's: write it in front of --"),
        ("--sweep lr=0.1,0.2 -- --lr {lr} --dry-run", "--dry-run is hpc-train's"),
        ("-- --lrr 0.1", "did you mean '--lr'?"),
        ("-- --depth 3", "it takes --lr"),
    ],
)
def test_an_option_of_ours_behind_the_dashes(hpc, project: Path, words: str, fix: str) -> None:
    (project / "fit.py").write_text(SCRIPT)
    said = "fit.py refuses: unrecognized arguments"
    refused(hpc, project, ["submit", "fit.py", *words.split()], 3, said, fix)


def test_a_script_that_has_an_option_of_that_name_gets_it(hpc, taken, project: Path) -> None:
    (project / "fit.py").write_text(SCRIPT.replace("--lr", "--nodes"))
    said = hpc("submit", "fit.py", "trainer.accelerator=cpu", "--dry-run", "--", "--nodes", "2")
    assert "is hpc-train's" not in said.err, said


def test_the_options_of_ours_are_those_of_the_commands() -> None:
    params = (*submit_command.command.params, *run_command.command.params)
    options = {it for one in params for it in one.opts if it.startswith("--")}
    assert {f"--{name}" for name in OF_SUBMIT} | {"--verbose"} == options | {"--hosts"}
