"""A script that starts ranks by a launcher of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.config.inner_launchers import inner_launcher_notes
from tests.plan.configs import config


def notes_on(folder: Path, text: str, launcher: str = "srun") -> list[str]:
    (folder / "old.py").write_text(f"import os, subprocess, sys\n{text}\n")
    made = config()
    script = replace(made.script, path="old.py", launcher=launcher)
    return [*inner_launcher_notes(replace(made, script=script), folder)]


@pytest.mark.parametrize(
    ("text", "launcher", "script"),
    [
        ("os.system('srun python train.py --lr 0.1')", "srun", "train.py"),
        ("os.system('cd src; A=1 srun -n2 python -u train.py')", "srun", "train.py"),
        ("os.system(f'torchrun --nproc_per_node={n} go.py')", "torchrun", "go.py"),
        ("subprocess.run(['torchrun', 'go.py'])", "torchrun", "go.py"),
        (
            "subprocess.check_call([sys.executable, '-m', 'torch.distributed.run', 'go.py'])",
            "torch.distributed.run",
            "go.py",
        ),
        ("subprocess.Popen('accelerate launch go.py', shell=True)", "accelerate", "go.py"),
    ],
)
def test_it_is_noted_with_its_line_and_the_script_to_submit(
    tmp_path: Path, text: str, launcher: str, script: str
) -> None:
    (note,) = notes_on(tmp_path, text)
    assert note.startswith(f"old.py:2 starts {launcher}, and hpc-train starts the ranks already: ")
    assert f"submit {script} itself, with its arguments behind --" in note
    assert notes_on(tmp_path, text, "none") == [], "one process a node, which is to start them"


@pytest.mark.parametrize(
    "text",
    [
        "os.system('srun hostname')",
        "os.system('srun --overlap python smi.py')",
        "os.system('python prepare.py')",
        "subprocess.run(['nvidia-smi'])",
        "subprocess.run(command)",
        "print('srun python train.py')",
        "os.system('')",
    ],
)
def test_other_programs_are_nobodys_business(tmp_path: Path, text: str) -> None:
    assert notes_on(tmp_path, text) == []
