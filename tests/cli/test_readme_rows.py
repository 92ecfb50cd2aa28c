"""The README's "I have a ..." table: each row's command is understood as it stands there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Slurm
from tests.cli.test_resume import CONFIG, NETS
from tests.runs.test_snapshot import git

TABLE = (ROOT / "README.md").read_text(encoding="utf-8").partition("| what | one command |")[2]
ROWS = re.findall(r"^\| (.+?) \| .*?`(.+?)`[^|]*\|$", TABLE.partition("\n\n")[0], re.M)
KINDS = ("LightningModule", "Lightning script", "LightningCLI", "Hydra", "torchrun", "Hugging Face",
         "raw loop", "notebook", "no scheduler", "sweep", "container")  # fmt: skip


@pytest.fixture
def project(hpc, slurm: Slurm, tmp_path: Path) -> Path:
    """A folder in which somebody has all of it."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    (tmp_path / "hpc_train" / "examples").mkdir(parents=True)
    shutil.copy(ROOT / "hpc_train/examples/raw_ddp.py", tmp_path / "hpc_train/examples")
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "train.sif").write_text("")
    (tmp_path / "nets.py").write_text(NETS.replace("LightningModule): ...", LR))
    (tmp_path / "CFG").with_suffix(".yaml").write_text(CONFIG)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    for name in ("srun", "scontrol", "sinfo"):
        slurm.has(name, "exit 1")
    slurm.has("sbatch", "echo Submitted batch job 7")
    slurm.has("ssh", "echo ssh: Could not resolve hostname >&2; exit 255")
    return tmp_path


LR = "LightningModule):\n    def __init__(self, lr=1): ..."


def test_every_kind_has_its_row() -> None:
    rows = " / ".join(kind for kind, _ in ROWS)
    assert [kind for kind in KINDS if kind not in rows] == []


@pytest.mark.parametrize(("kind", "command"), ROWS, ids=[kind for kind, _ in ROWS])
def test_the_command_of_a_row_is_understood(hpc, project: Path, kind: str, command: str) -> None:
    if not command.startswith("hpc-train"):
        from hpc_train import load, submit

        words = {"hpc_train": type("hpc_train", (), {"load": load, "submit": submit})}
        run = eval(command, words)
        assert run.status().job_id == "7"
        return
    words = shlex.split(command.replace(" CFG", " CFG.yaml"))[1:]
    if words[0] == "launch":
        said = hpc(*words)
        assert (said.code, "error: host a: no such host" in said.err) == (3, True), said
        return
    place = words.index("--") if "--" in words else len(words)
    said = hpc(*words[:place], "--dry-run", *words[place:])
    assert said.code == 0, said
    assert not (project / "runs").exists()
