"""`--gpus 0`: what is left to write, by what the config says of the accelerator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import project

__all__ = ["project"]
HOW_MANY = "write how many GPUs of each node are used, 1 or more"


@pytest.mark.parametrize("command", ["run", "submit", "render"])
@pytest.mark.parametrize(
    ("accelerator", "fix"),
    [
        ("cpu", "write 1 or more: with trainer.accelerator: cpu it is the number of ranks a node"),
        ("gpu", f"{HOW_MANY}: trainer.accelerator is gpu"),
        ("auto", f"{HOW_MANY}; without GPUs write trainer.accelerator: cpu, and here the number"),
        ("null", f"{HOW_MANY}; without GPUs write trainer.accelerator: cpu, and here the number"),
    ],
)
def test_what_is_set_already_is_not_advised(
    hpc, project: Path, command: str, accelerator: str, fix: str
) -> None:
    said = hpc(command, "cfg.yaml", "--gpus", 0, f"trainer.accelerator={accelerator}")
    assert said.code == 3
    assert f"  fix: {fix}" in said.err


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        ([], f"{HOW_MANY}; without GPUs write script.accelerator: cpu, and here the number"),
        (
            ["script.accelerator=cpu"],
            "write 1 or more: with script.accelerator: cpu it is the number of ranks a node",
        ),
    ],
)
def test_beside_a_script_it_is_the_scripts(hpc, tmp_path: Path, words: list[str], fix: str) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    assert f"  fix: {fix}" in hpc("submit", "train.py", "--gpus", 0, *words).err
