"""A config that is submitted from a folder above its project."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.mistaken import project, refused

__all__ = ["project"]


@pytest.fixture
def birds(project: Path) -> Path:
    """`birds/experiments/base.yaml` in a folder of projects, its modules in birds."""
    above = project / "my work"
    (above / "birds" / "experiments").mkdir(parents=True)
    (above / "birds" / "nets.py").write_text((project / "nets.py").read_text())
    (above / "birds" / "experiments" / "base.yaml").write_text((project / "cfg.yaml").read_text())
    (project / "nets.py").unlink()
    return above / "birds"


@pytest.mark.parametrize(
    ("place", "typed", "told"),
    [
        (
            ".",
            "submit birds/experiments/base.yaml seed=3",
            "cd birds && hpc-train submit {} seed=3",
        ),
        (".", "run birds/experiments/base.yaml", "cd birds && hpc-train run {}"),
        ("..", "submit 'my work/birds/experiments/base.yaml'", "cd 'my work/birds' && "),
        ("other", "submit ../birds/experiments/base.yaml", "cd ../birds && hpc-train submit {}"),
    ],
)
def test_the_line_to_type_goes_to_the_folder_of_its_modules(
    hpc, birds: Path, monkeypatch, place: str, typed: str, told: str
) -> None:
    (birds.parent / "other").mkdir()
    monkeypatch.chdir(birds.parent / place)
    fix = f"it is in {birds}: {told.format('experiments/base.yaml')}"
    refused(hpc, birds, shlex.split(typed), 3, "there is no module 'nets' in ", fix)
    assert "write birds." not in hpc(*shlex.split(typed)).err


def test_a_misspelt_module_means_one_of_the_configs_own_project(
    hpc, birds: Path, monkeypatch
) -> None:
    copy = birds.parent / "a_copy"
    copy.mkdir()
    (copy / "nets.py").write_text((birds / "nets.py").read_text())
    monkeypatch.chdir(birds.parent)
    config = birds / "experiments" / "base.yaml"
    config.write_text(config.read_text().replace("nets.", "netz."))
    cd = "cd birds && hpc-train submit experiments/base.yaml"
    typed = ["submit", "birds/experiments/base.yaml"]
    fix = f"Net, and submit from its folder: {cd}"
    refused(hpc, birds, typed, 3, "no module 'netz'", fix, others=1)
    assert "a_copy" not in hpc(*typed).err


def test_a_folder_of_configs_alone_keeps_the_words_of_the_folder_here(
    hpc, birds: Path, monkeypatch
) -> None:
    monkeypatch.chdir(birds)
    config = birds / "experiments" / "base.yaml"
    config.write_text(config.read_text().replace("nets.", "netz."))
    (birds / "experiments" / "demo.py").write_text((birds / "nets.py").read_text())
    typed = ["submit", "experiments/base.yaml"]
    refused(hpc, birds, typed, 3, "no module 'netz'", "did you mean 'nets'")
    assert "cd " not in hpc(*typed).err
