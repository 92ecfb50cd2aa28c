"""A script or a config of LightningCLI is told with the line to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import project, refused
from tests.cli.test_mistakes_of_first_days import OF_LIGHTNING_CLI

__all__ = ["project"]

HEAD = "from lightning.pytorch.cli import LightningCLI\nfrom nets import Net\n"


@pytest.mark.parametrize("script", ["train.py", "app.py"])
def test_a_config_below_its_command_is_told_with_the_line_that_trains_it(
    hpc, project: Path, script: str
) -> None:
    """Behind the command, jsonargparse takes the keys of that command alone."""
    indented = "".join(f"  {line}\n" for line in OF_LIGHTNING_CLI.splitlines())
    (project / "cfg.yaml").write_text(f"fit:\n{indented}")
    if script == "app.py":  # the only one that names LightningCLI
        (project / script).write_text(f"{HEAD}LightningCLI(Net)\n")
    line = f"hpc-train submit {script} -- --config cfg.yaml fit"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "a config of LightningCLI", line)


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("run app.py fit --config a.yaml", "run app.py -- fit --config a.yaml"),
        ("run app.py fit -c a.yaml", "run app.py -- fit -c a.yaml"),
        ("submit --nodes 1 app.py --config=a.yaml fit", "app.py --nodes 1 -- --config=a.yaml fit"),
        ("run --config app.py", "the file is a word by itself: hpc-train run FILE"),
        ("run --config=app.py", "the file is a word by itself: hpc-train run FILE"),
        ("run app.py", "fix: hpc-train run app.py -- fit\n"),
        ("submit --nodes 1 app.py", "fix: hpc-train submit --nodes 1 app.py -- fit\n"),
        ("run app.py -- fitt", "fix: write fit in place of fitt\n"),
        ("run app.py -- valdate", "fix: write validate in place of valdate\n"),
        ("run app.py -- train --model.lr 0.1", "fix: write fit in place of train\n"),
        ("run app.py -- --model.lr 0.1", "fix: hpc-train run app.py -- fit --model.lr 0.1\n"),
        ("run app.py -- --config c.yaml", "fix: hpc-train run app.py -- fit --config c.yaml\n"),
        ("run app.py -- --config=c.yaml", "fix: hpc-train run app.py -- fit --config=c.yaml\n"),
    ],
)
def test_a_script_of_lightning_cli_is_told_how_it_starts(
    hpc, project: Path, typed: str, fix: str
) -> None:
    (project / "app.py").write_text(f"{HEAD}if __name__ == '__main__':\n    LightningCLI(Net)\n")
    (project / "c.yaml").write_text("model: {lr: 0.1}\n")
    said = hpc(*typed.split())
    assert said.code in (2, 3)
    assert fix in said.err


@pytest.mark.parametrize(
    "config", ["fit: {model: {lr: 0.1}}", "subcommand: fit", "- a", "{"], ids=str
)
def test_a_file_that_may_name_the_command_is_left_to_the_script(
    hpc, project: Path, config: str
) -> None:
    (project / "app.py").write_text(f"{HEAD}if __name__ == '__main__':\n    LightningCLI(Net)\n")
    (project / "c.yaml").write_text(f"{config}\n")
    said = hpc("submit", "app.py", "--dry-run", "--", "--config", "c.yaml")
    assert "wants a command" not in said.err


@pytest.mark.parametrize("words", ["fit --config {}", "fit --config={}", "--config {} fit"])
def test_a_file_of_its_config_that_is_not_there_is_refused_with_the_near_one(
    hpc, project: Path, words: str
) -> None:
    (project / "app.py").write_text(f"{HEAD}if __name__ == '__main__':\n    LightningCLI(Net)\n")
    (project / "fits.yaml").write_text("model: {lr: 0.1}\n")
    said = hpc("submit", "app.py", "--dry-run", "--", *words.format("fitss.yaml").split())
    assert said.code == 3
    assert "app.py is given --config fitss.yaml, and there is no such file" in said.err
    assert "fix: did you mean 'fits.yaml'" in said.err
    for taken in (words.format("fits.yaml").split(), ["fit", "--config", "{model: {lr: 0.1}}"]):
        assert "no such file" not in hpc("submit", "app.py", "--dry-run", "--", *taken).err
