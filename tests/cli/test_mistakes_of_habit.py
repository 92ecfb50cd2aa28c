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
        ("lr=0.1", "behind --: fit.py -- --lr 0.1"),
        ("max_epochs=3", "behind --: fit.py -- --max-epochs 3"),
        ("max-epochs=3", "behind --: fit.py -- --max-epochs 3"),
        ("depth=3", "behind --: fit.py -- depth=3"),
        ("lr", "behind --: fit.py -- lr"),
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


def test_a_dry_run_of_a_training_here_is_told_with_what_trains_nothing(hpc, project: Path) -> None:
    fix = "nothing is trained by hpc-train submit --dry-run CFG"
    refused(hpc, project, ["run", "--dry-run", "cfg.yaml"], 2, "'--dry-run'", fix)
