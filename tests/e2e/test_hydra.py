"""An app of Hydra itself on Slurm, held against a quiet run.

Hydra lies in a folder of its own, see tests/hydra.txt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hpc_train.config.scripts.hydra_overrides import refused_override
from tests.e2e.conftest import ROOT, Shell

HYDRA = Path(sys.prefix, "hydra")
OPTIONS = ("script.accelerator=cpu", "preflight=off", "checkpoint.every_n_steps=4")

pytestmark = pytest.mark.skipif(not HYDRA.is_dir(), reason=f"make test installs Hydra into {HYDRA}")


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("nodes", "args"),
    [(2, ("model.lr=0.02", "hydra.job.chdir=true")), (3, ("trainer.max_epochs=8",))],
)
def test_an_app_whose_rank_is_killed_twice_has_one_folder_and_the_weights_of_a_quiet_run(
    site: Shell, nodes: int, args: tuple[str, ...]
) -> None:
    shutil.copytree(ROOT / "tests/scripts/hydra_app", site.folder, dirs_exist_ok=True)
    site.environment["PYTHONPATH"] = str(HYDRA)
    words = ("--nodes", nodes, "--gpus", 1, "--wait", "train.py", *OPTIONS)
    site.hpc("submit", *words, "--name", "quiet", "--", *args, "hydra.run.dir=quiet")
    faults = f"kill@step=7:rank={nodes - 1}:attempt=0,kill@step=20:rank=0:attempt=1"
    site.environment["HPC_TRAIN_FAULTS"] = faults
    site.hpc("submit", *words, "--name", "often", "--", *args)
    attempts = site.status("often")["attempts"]
    assert [it["outcome"] for it in attempts] == ["node_failure", "node_failure", "completed"]
    assert attempts[2]["first_step"] > 0
    (folder,) = site.folder.glob("outputs/*/*")  # the clock of the first attempt, on each rank
    often, quiet = (torch.load(it / "final.pt") for it in (folder, site.folder / "quiet"))
    assert all(torch.equal(often[name], quiet[name]) for name in quiet)
    overrides = (folder / ".hydra" / "overrides.yaml").read_text()
    assert [arg for arg in args if f"- {arg}\n" in overrides] == [
        arg for arg in args if not arg.startswith("hydra.")
    ]


@pytest.mark.parametrize(
    ("words", "is_taken"),
    [
        (["model.lr=0.02", "trainer.max_epochs=8", "seed=1"], True),
        (["+model.new=1", "++trainer.new=1", "~seed"], True),
        (["model=small", "hydra.run.dir=quiet"], True),
        (["model.lrr=0.02"], False),
        (["trainer.max_epoch=8"], False),
        (["lr=0.02"], False),
        (["model=smal"], False),
    ],
)
def test_overrides_are_refused_before_the_queue_where_hydra_refuses_them(
    words: list[str], is_taken: bool
) -> None:
    app = ROOT / "tests/scripts/hydra_app"
    ran = subprocess.run(
        [sys.executable, str(app / "train.py"), "--cfg", "job", *words],
        env={**os.environ, "PYTHONPATH": str(HYDRA)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode == 0) is is_taken, ran.stderr
    said, fix = refused_override(app / "conf", "train", words)
    assert (not said) is is_taken
    assert is_taken or fix.startswith("write ")
