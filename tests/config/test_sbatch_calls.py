"""A script that calls sbatch itself is refused where it trains nothing, else noted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpc_train.config.load import load
from hpc_train.config.scripts.inner_launchers import inner_launcher_notes
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.files import write
from tests.plan.configs import config

LIST = 'subprocess.run(["sbatch", "--gres=gpu:1", "job.sh", str(lr)], check=True)'
LAUNCH = f"import subprocess\nfor lr in (0.1, 0.01):\n    {LIST}\n"
JOB = "#!/bin/bash\n#SBATCH --nodes=2\nsrun python -u train.py --lr $1\n"
TRAINING = "import torch, os\nsgd = torch.optim.SGD(x, 0.1)\nsgd.step()\n"
ITSELF = "hpc-train submit train.py, with its arguments behind --"
TRANSLATED = "; `hpc-train translate job.sh` shows its job's options as hpc-train's"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, TRAINING, "train.py")
    write(tmp_path, JOB, "job.sh")
    return tmp_path


def refused(folder: Path, text: str, more: str = "") -> tuple[str, str] | None:
    write(folder, text, "launch.py")
    cfg = write(folder, f"script: {{path: launch.py{more}}}\n", "cfg.yaml")
    try:
        check(load(cfg), workdir=folder)
    except ConfigError as error:
        return error.message.partition("script.path: ")[2], error.hint or ""
    return None


def noted(folder: Path, text: str, *, gpus: int = 2, launcher: Any = "srun") -> list[str]:
    write(folder, text, "launch.py")
    made = config()
    script = replace(made.script, path="launch.py", launcher=launcher)
    slurm = replace(made.slurm, nodes=1, gpus_per_node=gpus)
    return [*inner_launcher_notes(replace(made, script=script, slurm=slurm), folder)]


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        (LAUNCH, 3, "sbatch job.sh"),
        ('import os\nos.system("sbatch job.sh")\n', 2, "sbatch job.sh"),
        ('import os\nos.system("cd x && A=1 sbatch --mem=1G job.sh 0.1")\n', 2, "sbatch job.sh"),
        (
            (
                "from subprocess import check_output as run\n"
                "def main():\n    run('/usr/bin/sbatch job.sh', shell=True)\n"
                "if __name__ == '__main__':\n    main()\n"
            ),
            3,
            "sbatch job.sh",
        ),
        ("import subprocess as s\ns.getoutput('sbatch job.sh')\n", 2, "sbatch job.sh"),
        (
            "import subprocess\nsubprocess.run(['bash', '-c', 'sbatch job.sh'])\n",
            2,
            "sbatch job.sh",
        ),
    ],
)
def test_a_script_that_does_no_more_is_refused(
    folder: Path, text: str, line: int, shown: str
) -> None:
    said = f"launch.py:{line} submits a job by itself ({shown}) and trains nothing: each rank would"
    assert refused(folder, text) == (f"{said} submit one", ITSELF + TRANSLATED)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            (
                "import subprocess\nt = '#!/bin/bash\\nsrun python train.py --lr 1\\n'\n"
                "subprocess.run(['sbatch'], input=t)\n"
            ),
            ITSELF,
        ),
        ("import os\nos.system('sbatch --wrap \"python train.py\"')\n", ITSELF),
        ("import os, sys\nos.system(f'sbatch {sys.argv[1]}')\n", ""),
        ("import os\nos.system('sbatch gone.sh')\n", ""),
    ],
)
def test_the_training_is_named_where_the_text_tells_it(folder: Path, text: str, fix: str) -> None:
    found = refused(folder, text)
    assert found is not None
    unknown = "submit the training script that this job runs, with its arguments behind --"
    assert found[1] == (fix or unknown)


@pytest.mark.parametrize(
    "text",
    [
        f"{TRAINING}{LAUNCH}",
        f"import train\n{LAUNCH}",
        f"import pytest\n{LAUNCH}",  # a package that is installed, of which nothing is known
        f"def f():\n    import train\n{LAUNCH}",
        f"import sys, subprocess\nif len(sys.argv) > 1:\n    {LIST}\n",
        f"import subprocess\ntry:\n    {LIST}\nexcept OSError:\n    pass\n",
        f"{LAUNCH}subprocess.run(['python', 'train.py'])\n",
        "import os\nos.system('squeue; echo sbatch job.sh')\n",
        "print('sbatch job.sh')\n",
    ],
)
def test_one_that_may_train_is_not_refused(folder: Path, text: str) -> None:
    assert refused(folder, text) is None
    assert refused(folder, LAUNCH, ", may_take_no_steps: true") is None


def test_modules_of_its_own_that_train_nothing_change_nothing(folder: Path) -> None:
    write(folder, "import numpy, pathlib\ndef job(): return 'job.sh'\n", "jobs.py")
    write(folder, "", "sub/__init__.py")
    assert refused(folder, f"import jobs, sub\n{LAUNCH}") is not None
    write(folder, "def job(net): net.backward()\n", "jobs.py")
    assert refused(folder, f"import jobs\n{LAUNCH}") is None


def test_a_condition_makes_a_note_of_it(folder: Path) -> None:
    text = f"import sys, subprocess\nif len(sys.argv) > 1:\n    {LIST}\n"
    (note,) = noted(folder, text, gpus=4)
    said = "launch.py:3 submits a job by itself (sbatch job.sh), and each of the 4 ranks would; "
    assert note == f"{said}{ITSELF}{TRANSLATED}"
    (note,) = noted(folder, text, gpus=1)
    assert note == f"launch.py:3 submits a job by itself (sbatch job.sh); {ITSELF}{TRANSLATED}"


def test_a_training_that_chains_a_job_in_each_rank_is_noted(folder: Path) -> None:
    text = f"{TRAINING}os.system('sbatch evaluate.sh')\n"
    said = "launch.py:4 submits a job by itself (sbatch evaluate.sh), and each of the 2"
    write_ = 'for another job put it under if os.environ["RANK"] == "0":; one that goes on with'
    (note,) = noted(folder, text)
    assert note == f"{said} ranks would; {write_} this training hpc-train submits itself"
    assert noted(folder, text, gpus=1) == []
    assert noted(folder, text, launcher="none") == []


@pytest.mark.parametrize(
    "test",
    ["rank == 0", "not rank", "os.environ['RANK'] == '0'", "'SLURM_JOB_ID' not in os.environ"],
)
def test_a_training_that_chains_one_job_is_not_noted(folder: Path, test: str) -> None:
    assert noted(folder, f"{TRAINING}if {test}:\n    os.system('sbatch evaluate.sh')\n") == []
