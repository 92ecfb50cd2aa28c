"""A Fabric that nothing launches, on several ranks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpc_train.config.scripts.ranks_apart import Apart
from hpc_train.config.scripts.unlaunched_fabrics import unlaunched_fabric

SCRIPT = """\
import torch
from lightning.fabric import Fabric
from own import learn
def main():
    fabric = Fabric(precision="32")
    LAUNCH
    model, opt = fabric.setup(torch.nn.Linear(1, 1), None)
    learn(fabric, model)
if __name__ == "__main__":
    main()
"""
SAID = "makes a Fabric, and nothing calls its launch(): with 2 ranks its setup raises"


def told(folder: Path, text: str, own: str = "", *, ranks: int = 2) -> Apart | None:
    file = folder / "train.py"
    (folder / "own.py").write_text(f"{own}\ndef learn(fabric, model): pass\n")
    file.write_text(text.replace("LAUNCH", "pass"))
    tree = ast.parse(file.read_text())
    return unlaunched_fabric(tree, file, [str(folder)], ranks=ranks)


def test_it_is_sure_where_all_is_known(tmp_path: Path) -> None:
    fix = "write fabric.launch() behind that line"
    assert told(tmp_path, SCRIPT) == Apart(5, SAID, fix, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch", "import torch, somebodys_trainer"),
        ("    fabric = Fabric", "    if 1 < 2: fabric = Fabric"),
    ],
)
def test_it_is_likely_where_others_have_a_hand_in_it(tmp_path: Path, old: str, new: str) -> None:
    apart = told(tmp_path, SCRIPT.replace(old, new))
    assert apart is not None
    assert not apart.is_sure


@pytest.mark.parametrize(
    ("text", "own", "ranks"),
    [
        (SCRIPT, "", 1),
        (SCRIPT.replace("LAUNCH", "fabric.launch()"), "", 2),
        (SCRIPT.replace("LAUNCH", "fabric.launch(main)"), "", 2),
        (SCRIPT, "def begin(fabric):\n    fabric.launch()", 2),
        (SCRIPT.replace("fabric.setup(", "own("), "", 2),
        (SCRIPT.replace("Fabric", "Cloth"), "", 2),
    ],
)
def test_what_may_be_launched_is_not_told(tmp_path: Path, text: str, own: str, ranks: int) -> None:
    assert told(tmp_path, text, own, ranks=ranks) is None
