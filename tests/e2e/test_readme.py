"""What the README tells a newcomer to type, typed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.e2e.conftest import ROOT, Shell

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, beginning: str) -> str:
    """The README's block that begins so."""
    (found,) = re.findall(rf"^```{language}\n({beginning}.*?)^```$", README, re.S | re.M)
    return str(found)


def test_the_first_class_of_the_readme_trains(here: Shell) -> None:
    config = block("yaml", "name: first")
    assert len(config.splitlines()) == 10
    Path(here.folder, "first.yaml").write_text(config)
    Path(here.folder, "nets.py").write_text(block("python", "import torch"))
    command, submission = block("bash", "hpc-train run").splitlines()
    words = command.partition("#")[0].split()[1:]
    here.hpc(*words)
    status = here.status("first")
    assert (status["state"], status["step"]) == ("completed", 2 * 256 // 32)
    assert submission.partition("#")[0].split()[1:] == ["submit", "first.yaml", "--follow"]
    here.hpc("submit", "first.yaml", "--dry-run")


def test_it_is_installed_from_a_clone_by_pip(here: Shell) -> None:
    install, _ = block("bash", "pip install /path").splitlines()
    path = install.split()[2]
    assert path == "/path/to/hpc-train"
    # What it depends on is there; the network is not asked.
    alone = ["--quiet", "--no-deps", "--no-build-isolation", "--target", "site"]
    here.run(sys.executable, "-m", "pip", "install", *alone, ROOT)
    here.environment["PYTHONPATH"] = str(here.folder / "site")
    code = "import hpc_train; print(hpc_train.__file__)"
    assert here.run(sys.executable, "-c", code).stdout.startswith(str(here.folder))
    assert "srun" in here.hpc("render", here.folder / "site/hpc_train/configs/digits.yaml").stdout
