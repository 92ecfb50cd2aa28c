"""`hpc-train submit --dry-run`: what a person reads before the job is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS


def test_ten_lines_say_what_will_run(hpc, tmp_path):
    words = ["--nodes", "3", "--gpus", "4", "--partition", "train", "slurm.time=2:00"]
    lines = hpc("submit", "--dry-run", DIGITS, *words, "global_batch_size=192").out.splitlines()
    assert lines[:10] == [
        "name       digits",
        "model      hpc_train.examples.digits.DigitsClassifier",
        "data       hpc_train.examples.digits.DigitsData",
        "until      max_epochs 15",
        "shape      3 nodes x 4 ranks = 12 ranks, a GPU each, else on CPUs (accelerator auto)",
        "batch      192 = 16 a rank x 12 ranks",
        "partition  train",
        "time       at most 0:02:00 (2 min 00 s), each job; the training goes on in another",
        "saves      every 5 minutes, and when it is stopped",
        lines[9],
    ]
    assert lines[9].startswith(f"runs in    {tmp_path}/runs, by ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            [],
            "partition  short (SBATCH_PARTITION of your shell), account me (SBATCH_ACCOUNT of your",
        ),
        (["--partition", "long", "--account", "a"], "partition  long, account a\n"),
    ],
)
def test_what_the_shell_has_set_counts_where_the_config_says_nothing(
    hpc, monkeypatch, words, line
) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "short")
    monkeypatch.setenv("SBATCH_ACCOUNT", "me")
    assert line in hpc("submit", DIGITS, "--dry-run", *words).out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--nodes", "1", "--gpus", "1"], "shape      1 node x 1 rank = 1 rank, a GPU each"),
        (["trainer.accelerator=cpu"], "shape      2 nodes x 2 ranks = 4 ranks, on CPUs"),
        (
            ["--spares", "1"],
            "ranks, a GPU each, else on CPUs (accelerator auto), 1 node in reserve",
        ),
        (
            ["--cluster", "slurm", "trainer.accelerator=gpu"],
            "shape      2 nodes x 2 ranks = 4 ranks, a GPU each",
        ),
        (["micro_batch_size=8"], "batch      96 = 8 a rank x 4 ranks x 3 accumulated"),
        ([], "partition  the default one"),
        (["--account", "a", "--qos", "q"], "partition  the default one, account a, qos q"),
        (
            ["requeue.enabled=false"],
            "time       at most 0:30:00 (30 min 00 s), each job; no other follows",
        ),
        (
            ["slurm.time=null"],
            (
                "time       as long as the partition lets it, each job; the training goes on in "
                "another"
            ),
        ),
        (["checkpoint.every_n_steps=100"], "saves      every 100 steps or 5 minutes, and"),
        (["checkpoint.every_n_minutes=null"], "saves      when it is stopped"),
        (["trainer.fast_dev_run=true"], "until      a trial of 1 batch (trainer.fast_dev_run)"),
        (["trainer.fast_dev_run=3"], "until      a trial of 3 batches (trainer.fast_dev_run)"),
        (["trainer.fast_dev_run=false"], "until      max_epochs 15"),
        (
            ["trainer.overfit_batches=2"],
            "until      max_epochs 15, each epoch of 2 batches (trainer.overfit_batches)",
        ),
        (
            ["trainer.limit_train_batches=0.1"],
            "15, each epoch of 0.1 of its batches (trainer.limit_train_batches)",
        ),
        (
            ["trainer.max_steps=70"],
            "until      max_epochs 15 or max_steps 70, whichever comes first",
        ),
        (["trainer.max_steps=-1"], "until      max_epochs 15"),
        (["trainer.max_epochs=-1", "trainer.max_steps=70"], "until      max_steps 70"),
        (
            ["trainer.max_epochs=-1", "trainer.max_time=00:01:00:00"],
            "until      max_time 00:01:00:00",
        ),
        (
            ["trainer.max_epochs=-1"],
            "until      it is cancelled, or a callback ends it (max_epochs -1: no end)",
        ),
        (
            ["trainer.max_epochs=-1", "trainer.max_steps=-1"],
            "until      it is cancelled, or a callback ends it (max_epochs -1: no end)",
        ),
        (["trainer.max_epochs=null"], "until      the end of Lightning's default, 1000 epochs"),
        (
            ["trainer.max_epochs=null", "trainer.max_steps=-1"],
            "until      the end of Lightning's default, 1000 epochs",
        ),
    ],
)
def test_what_is_asked_for_is_in_them(hpc, words, line):
    said = hpc("submit", "--dry-run", DIGITS, *words)
    ends = said.out.splitlines()[:10]
    exact = line.startswith(("until", "time"))
    assert any(told == line if exact else line in told for told in ends), said


def test_the_plan_is_shown_to_who_wants_all_of_it_and_the_script_to_all(hpc):
    short = hpc("submit", "--dry-run", DIGITS)
    assert '"ranks_per_node"' not in short.out
    assert "#SBATCH --nodes=2" in short.out
    whole = hpc("submit", "--dry-run", "-v", DIGITS)
    assert '"ranks_per_node": 2' in whole.out
    assert hpc("render", DIGITS).out in whole.out
    assert short.out.splitlines()[:10] == whole.out.splitlines()[:10]
    document = json.loads(hpc("submit", "--dry-run", "--json", DIGITS).out)
    assert document["plan"]["shape"]["ranks_per_node"] == 2


def test_on_this_machine_no_script_of_slurms_is_shown(hpc):
    said = hpc("submit", "--dry-run", DIGITS, "--cluster", "local", "trainer.accelerator=cpu")
    assert (said.code, "#SBATCH" in said.out) == (0, False)
    assert said.out.splitlines()[-1].startswith("runs in ")
    assert "#SBATCH" in hpc("submit", "--dry-run", DIGITS).out


LOOP = "import torch\nfor it in range(9):\n    torch.save({}, 'model.pt')\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "saves      of a Lightning Trainer every 10 minutes, and when it is stopped; other"),
        (["script.resume.when=model.pt"], "saves      by the script, as model.pt"),
    ],
)
def test_what_a_script_saves_is_its_own(hpc, tmp_path, words, line):
    (tmp_path / "train.py").write_text(LOOP)
    said = hpc("submit", "--dry-run", "train.py", "--cluster", "slurm", *words)
    assert line in said.out
    assert ("train.py:3 saves model.pt by itself" in said.err) == (not words)


def test_here_a_script_is_told_of_it_once_as_well(hpc, tmp_path):
    """A run of this machine that was stopped and goes on would begin anew just so."""
    (tmp_path / "train.py").write_text(LOOP)
    said = hpc("submit", "--dry-run", "train.py", "--cluster", "local")
    assert said.err.count("saves model.pt by itself") == 1


def test_a_rendered_script_goes_to_standard_output_by_a_dash(hpc) -> None:
    said = hpc("render", DIGITS, "-o", "-")
    assert (said.code, said.out) == (0, hpc("render", DIGITS).out)
    assert not (Path.cwd() / "-").exists()
