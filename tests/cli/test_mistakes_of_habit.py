"""Words of other tools, and of a script beside a config: the whole word to type comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import project, refused

__all__ = ["project"]

PARSED = """\
import argparse
import pytorch_lightning as pl
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float)
p.add_argument('-n', "--max-epochs", type=int)
pl.Trainer().fit(None)
"""


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("lr=0.1", "behind --: hpc-train run fit.py -- --lr 0.1"),
        ("max_epochs=3", "behind --: hpc-train run fit.py -- --max-epochs 3"),
        ("max-epochs=3", "behind --: hpc-train run fit.py -- --max-epochs 3"),
        ("depth=3", "behind --: hpc-train run fit.py -- depth=3"),
        ("lr", "behind --: hpc-train run fit.py -- lr"),
    ],
)
def test_an_argument_of_argparse_is_shown_as_it_takes_it(
    hpc, project: Path, word: str, fix: str
) -> None:
    (project / "fit.py").write_text(PARSED)
    said = "nothing that hpc-train takes beside a script"
    refused(hpc, project, ["run", "fit.py", word], 3, said, fix)


def test_a_config_and_a_script_are_two_ways_to_train(hpc, project: Path) -> None:
    fix = "leave fit.py out; to run fit.py, write it in the config's place, without the config"
    refused(hpc, project, ["run", "cfg.yaml", "fit.py"], 3, "'fit.py' is no key=value", fix)


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("include: base.yaml", "write defaults: [base.yaml]"),
        ("_base_: base.yaml", "write defaults: [base.yaml]"),
        ("extends: [a.yaml, b.yaml]", "write defaults: [a.yaml, b.yaml]"),
        ("include: {a: 1}", "known: "),
    ],
)
def test_another_tools_word_for_a_base_is_told_as_defaults(
    hpc, project: Path, line: str, fix: str
) -> None:
    config = project / "cfg.yaml"
    config.write_text(f"{line}\n{config.read_text()}")
    refused(hpc, project, ["run", "cfg.yaml"], 3, f"{line.partition(':')[0]} is no key", fix)


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (
            ["--sweep", "trainer.max_epochs=1,2"],
            "is: hpc-train run cfg.yaml trainer.max_epochs=1; on",
        ),
        (
            ["--sweep=seed=1,2", "--sweep", "name=a,b"],
            "is: hpc-train run cfg.yaml seed=1 name=a; on",
        ),
        (["--sweep", "seed=range(3)"], "KEY=VALUE; on a cluster a sweep is a job array"),
    ],
)
def test_a_sweep_of_run_is_told_with_its_first_training(
    hpc, project: Path, words: list[str], fix: str
) -> None:
    refused(hpc, project, ["run", "cfg.yaml", *words], 2, "--sweep", fix)


def test_a_dry_run_of_a_training_here_is_told_with_what_trains_nothing(hpc, project: Path) -> None:
    fix = "nothing is trained by hpc-train submit --dry-run CFG"
    refused(hpc, project, ["run", "--dry-run", "cfg.yaml"], 2, "'--dry-run'", fix)


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        ("-c 4", "no dashes: slurm.cpus_per_gpu=4"),
        ("-c4", "no dashes: slurm.cpus_per_gpu=4"),
        ("--cpus-per-task=4", "no dashes: slurm.cpus_per_gpu=4"),
        ("-c other.yaml", "the file is a word by itself: hpc-train submit FILE"),
        ("-c", "the file is a word by itself: hpc-train submit FILE"),
        ("--mem=8000", "no dashes: slurm.mem=8000M"),
        ("--mem 8", "no dashes: slurm.mem=..."),
        ("--mem", "no dashes: slurm.mem=..."),
        ("--constraint=a|b", "no dashes: slurm.constraint='a|b'"),
        ("--exclusive", "no dashes: slurm.exclusive=true"),
        ("--exclusive=user", "no dashes: slurm.exclusive=user"),
        ("--exclusive=x", "no dashes: slurm.exclusive=..."),
        ("-t 1:00:00", "write --time 1:00:00"),
        ("--gres=gpu:2", "write --gpus 2"),
        ("--gres gpu:a100:2", "write --gpus 2 slurm.gpu_type=a100"),
        ("--nproc_per_node=gpu", "write --gpus"),
        ("-G 8", "write --gpus"),
        ("-n 8", "write --nodes and --gpus: a rank a GPU"),
        ("--batch-size 8", "no dashes: global_batch_size=..."),
    ],
)
def test_an_option_of_others_is_told_with_the_value_that_was_typed(
    hpc, project: Path, words: str, fix: str
) -> None:
    for line in (f"submit cfg.yaml {words}", f"submit {words} cfg.yaml"):
        said = hpc(*line.split())
        assert (said.code, said.err.splitlines()[1].endswith(fix)) == (2, True), said.err


@pytest.mark.parametrize(
    ("gres", "typed", "written"),
    [
        ("gpu:2", "slurm.gpus_per_node=2", "gpus_per_node: 2"),
        ("gpu", "slurm.gpus_per_node=1", "gpus_per_node: 1"),
        (
            "gpu:a100:2",
            "slurm.gpus_per_node=2 slurm.gpu_type=a100",
            "gpus_per_node: 2 and gpu_type: a100",
        ),
        (
            "gpu:2,nvme:1",
            "slurm.gpus_per_node=2 slurm.extra.gres=nvme:1",
            "gpus_per_node: 2 and extra: {gres: 'nvme:1'}",
        ),
        ("shard:1", "slurm.extra.gres=shard:1", "extra: {gres: 'shard:1'}"),
        (
            "gpu:a:1,gpu:b:1",
            "slurm.gpus_per_node, how many of each node, and slurm.gpu",
            "gpus_per_node, how many of each node, and gpu_type",
        ),
        ("null", *["slurm.gpus_per_node, how many of each node, and slurm.gpu_type"] * 2),
    ],
)
def test_a_gres_is_told_as_keys_with_its_own_numbers(
    hpc, project: Path, gres: str, typed: str, written: str
) -> None:
    said = "gres is no key of hpc-train"
    for key in ("slurm.gres", "gres"):
        refused(hpc, project, ["submit", "cfg.yaml", f"{key}={gres}"], 3, said, f"write {typed}")
    config = project / "cfg.yaml"
    config.write_text(config.read_text().replace("{nodes: 1", f"{{gres: '{gres}', nodes: 1"))
    if gres != "null":
        refused(hpc, project, ["submit", "cfg.yaml"], 3, f"slurm.{said}", f"write {written}")


def test_gpus_under_extra_are_told_as_keys_with_their_own_numbers(hpc, project: Path) -> None:
    fix = "write slurm.gpus_per_node=3 slurm.gpu_type=v100"
    words = ["submit", "cfg.yaml", "slurm.extra.gres=gpu:v100:3"]
    refused(hpc, project, words, 3, "slurm.extra.gres asks for GPUs", fix)


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        *(
            (words, "name each run: `hpc-train list --active` shows them")
            for words in ("-u me", "-u", "--user=me", "--user me", "--me", "-t PENDING", "-p gpu")
        ),
        ("-n first", "a name is a word by itself: hpc-train cancel NAME"),
        ("-f first", "leave it out: it asks no question"),
        ("-s KILL 12", "leave it out: it tells the ranks to save and to end"),
    ],
)
def test_the_options_of_scancel_are_told_as_cancel_has_them(
    hpc, project: Path, words: str, fix: str
) -> None:
    refused(hpc, project, ["cancel", *words.split()], 2, "No such option", fix)
