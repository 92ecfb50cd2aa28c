"""A script that starts ranks by a launcher of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.config.scripts.inner_launchers import inner_launcher_notes
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


LIST = "cmd = ['torchrun', f'--nproc_per_node={n}', 'go.py']"


@pytest.mark.parametrize(
    "text",
    [
        f"{LIST} + sys.argv[1:]\nsubprocess.run(cmd, check=True)",
        f"{LIST}\nsubprocess.run(args=cmd)",
        f"{LIST}\nline = ' '.join(cmd)\nos.system(line)",
        f"{LIST}\nsubprocess.Popen(list(map(str, cmd)))",
        f"{LIST}\nsubprocess.run(shlex.join([*cmd, '--lr', '1']), shell=True)",
        "cmd = [sys.executable, '-m']\ncmd += ['torchrun', 'go.py']\nsubprocess.call(cmd)",
        "cmd = ['torchrun']\ncmd.append('-r1')\ncmd.extend(['go.py'])\nsubprocess.run(cmd)",
        "cmd = 'torchrun '\ncmd += 'go.py'\nos.system(cmd)",
        "subprocess.run(shlex.split('torchrun --nproc_per_node=2 go.py'))",
        "cmd = 'torchrun --nproc_per_node=%d go.py' % n\nsubprocess.run(cmd.split())",
        "os.system('torchrun --nproc_per_node={} go.py'.format(n))",
        "SCRIPT = 'go.py'\nos.system(f'torchrun {SCRIPT}')",
        "import subprocess as sp\nsp.run(['torchrun', 'go.py'])",
        f"if one:\n    cmd = ['python', 'a.py']\nelse:\n    {LIST}\nsubprocess.run(cmd)",
        f"def launch(n=2):\n    {LIST}\n    subprocess.run(cmd)\nlaunch()",
        f"{LIST}\ndef launch():\n    subprocess.run(cmd)\nlaunch()",
    ],
)
def test_a_name_for_the_command_is_seen_through(tmp_path: Path, text: str) -> None:
    (note,) = notes_on(tmp_path, text)
    line = 1 + len(text.splitlines()) - ("launch()" in text.splitlines()[-1])
    assert note.startswith(f"old.py:{line} starts torchrun, and hpc-train starts the ranks already")
    assert "submit go.py itself, with its arguments behind --" in note


@pytest.mark.parametrize(
    "text",
    [
        f"{LIST}\ndef smi(cmd):\n    subprocess.run(cmd)\nsmi(['nvidia-smi'])",
        f"{LIST}\ndef smi():\n    cmd = ['nvidia-smi']\n    subprocess.run(cmd)",
        f"{LIST}\nprint(cmd)",
        "cmd = ['git']\ncmd += ['log', 'torchrun', 'go.py']\nsubprocess.run(cmd)",
        f"if 'LOCAL_RANK' not in os.environ:\n    {LIST}\n    subprocess.run(cmd)",
        "cmd = make('torchrun')\nsubprocess.run(cmd)",
        "cmd = cmd + ['torchrun']\nsubprocess.run(cmd)",
    ],
)
def test_another_command_of_that_name_is_nobodys_business(tmp_path: Path, text: str) -> None:
    assert notes_on(tmp_path, text) == []


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
