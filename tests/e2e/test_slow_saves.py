"""A script's own checkpoint that takes long to write is of the step that it was begun at."""

from __future__ import annotations

from pathlib import Path

from hpc_train.runs.layout import RunDir
from hpc_train.runs.script_saves import OwnSaves
from tests.e2e.conftest import Shell

SCRIPT = """\
import time
import torch

class Slow:
    def __reduce__(self):
        time.sleep(3)
        return (int, ())

layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for step in range(5):
    optimizer.zero_grad()
    layer(torch.ones(4, 2)).mean().backward()
    optimizer.step()
    if step == 2:
        torch.save({"large": torch.ones(1 << 16), "slow": Slow()}, "c.pt")
time.sleep(3)
"""


def test_it_is_of_the_step_before_the_one_that_was_taken_meanwhile(here: Shell) -> None:
    """Seen while it was written, it was noted again at its end, with the step of that time."""
    (here.folder / "train.py").write_text(SCRIPT)
    words = ("script.accelerator=cpu", "preflight=off", "script.resume.when=c.pt")
    here.hpc("run", "train.py", *words)
    run = RunDir(Path(here.status("train")["run_dir"]))
    assert [(Path(it.path).name, it.step) for it in OwnSaves.of(run).saves] == [("c.pt", 3)]
