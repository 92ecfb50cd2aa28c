"""A line that is told for several values, with whole keys in the place of the short ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import project

__all__ = ["project"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "submit cfg.yaml --multirun width=1,2",
            "submit cfg.yaml --sweep model.init_args.width=1,2",
        ),
        (
            "submit cfg.yaml --multirun max_epochs=1,2 model.width=4 seed=3",
            "submit cfg.yaml --sweep trainer.max_epochs=1,2 model.init_args.width=4 seed=3",
        ),
        ("run cfg.yaml --multirun width=1,2", "run cfg.yaml model.init_args.width=1"),
        ("run cfg.yaml --sweep width=1,2", "run cfg.yaml model.init_args.width=1"),
        ("run cfg.yaml --sweep=max_epochs=1,2", "run cfg.yaml trainer.max_epochs=1"),
    ],
)
def test_a_short_key_of_several_values_is_told_by_its_whole_key(
    hpc, project: Path, words: str, line: str
) -> None:
    """The line that is told is taken when it is typed, also its second half."""
    said = hpc(*words.split())
    assert said.code != 0
    assert f"hpc-train {line}" in said.err
    for told in said.err.split("hpc-train ")[1:]:
        typed = told.partition(";")[0].replace("run ", "submit ").split()
        assert hpc(*typed, "--dry-run").code == 0, typed


def test_a_word_that_may_be_the_scripts_stays_in_a_line_for_several_values(
    hpc, project: Path
) -> None:
    (project / "train.py").write_text("print()\n")
    (project / "s.yaml").write_text("name: s\nscript: {path: train.py}\n")
    assert "hpc-train run s.yaml lr=1;" in hpc("run", "s.yaml", "--sweep", "lr=1,2").err
    assert "cfg.yaml --sweep odd=1,2" in hpc("submit", "cfg.yaml", "-m", "odd=1,2").err
