"""`hpc-train translate`: what it prints loads as a config."""

from __future__ import annotations

import json
import shlex

import pytest
import yaml

from tests.cli.conftest import DIGITS

OLD = "Trainer(gpus=4, num_nodes=2, accelerator='dp', precision=16, max_epochs=3)"


def test_the_config_that_is_printed_is_taken(hpc, tmp_path) -> None:
    said = hpc("translate", OLD)
    assert (said.code, said.err) == (0, "")
    printed, _, command = said.out.partition("# the command\n")
    assert command == "# hpc-train submit --nodes 2 --gpus 4 config.yaml\n"
    fragment = yaml.safe_load(printed)
    assert fragment["slurm"] == {"nodes": 2, "gpus_per_node": 4}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"base": DIGITS, **fragment}))
    assert hpc("config", "show", "config.yaml").code == 0


def test_what_is_redirected_is_a_config(hpc, tmp_path) -> None:
    (tmp_path / "train.py").write_text("print('here')\n")
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py --lr 1\n"
    )
    (tmp_path / "my.yaml").write_text(hpc("translate", "job.sh").out)
    assert hpc("config", "show", "my.yaml").code == 0


def test_the_command_of_a_terminal_can_be_copied(hpc, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    said = hpc("translate", OLD)
    assert said.out.endswith("\nhpc-train submit --nodes 2 --gpus 4 config.yaml\n")


def test_a_directive_that_sbatch_no_longer_reads_is_told(hpc, tmp_path) -> None:
    head = "#!/bin/bash\n#SBATCH --time=10\n\n# a comment\n#SBATCH --nodes=2\n"
    (tmp_path / "job.sh").write_text(f"{head}cd here\n#SBATCH --mem=4G\nsrun python train.py\n")
    said = hpc("translate", "job.sh").out
    assert said.count("sbatch ignores it") == 1
    assert "# #SBATCH --mem=4G: sbatch ignores it, below the first command" in said
    (tmp_path / "job.sh").write_text(f"{head}srun python train.py\n")
    assert "ignores" not in hpc("translate", "job.sh").out


def test_of_a_script_of_pythons_the_lines_of_sbatch_are_read_and_no_code(hpc, tmp_path) -> None:
    code = "import torch\nfor it in range(3):\n    print(it)\n"
    (tmp_path / "train.py").write_text(f"#SBATCH --nodes=2\n#SBATCH --time=1:00:00\n{code}")
    for words in ("train.py", "sbatch train.py"):
        said = hpc("translate", words)
        assert (said.code, said.err) == (0, "")
        assert yaml.safe_load(said.out) == {
            "slurm": {"nodes": 2, "time": "1:00:00"},
            "script": {"path": "train.py", "args": []},
        }
    (tmp_path / "train.py").write_text(code)
    assert hpc("translate", "train.py").out.endswith("hpc-train submit train.py\n")


def test_a_word_without_equivalent_is_three(hpc) -> None:
    said = hpc("translate", "Trainer(gpus=2, auto_lr_find=True)")
    assert said.code == 3
    assert "hpc-train submit --gpus 2" in said.out
    assert said.err.startswith("no equivalent: auto_lr_find=True: find the rate once")
    said = hpc("translate", "horovodrun -np 4 python train.py")
    assert (said.code, said.out) == (3, ""), "nothing is left that could be typed"


def test_json_holds_all_of_it(hpc) -> None:
    said = hpc("translate", "--json", "--keep-nccl", "NCCL_IB_HCA=mlx5 torchrun --role x train.py")
    document = json.loads(said.out)
    assert document["config"]["env"] == {"variables": {"NCCL_IB_HCA": "mlx5"}}
    assert document["refused"] == []
    assert {"word": "--role x", "text": document["said"][1]["text"]} in document["said"]


@pytest.mark.parametrize("text", ["", 'python "x'])
def test_nothing_to_translate_is_a_usage_error(hpc, text) -> None:
    said = hpc("translate", text)
    assert said.code == 2
    assert "fix:" in said.err


def test_a_batch_script_is_read_and_submit_names_the_command_for_it(hpc, tmp_path) -> None:
    job = tmp_path / "job.sbatch"
    job.write_text("#!/bin/bash\n#SBATCH -t 60\nsource ~/.bashrc\nsrun python train.py --lr 1\n")
    assert "fix: hpc-train translate job.sbatch makes" in hpc("submit", "job.sbatch").err
    said = hpc("translate", "--json", "job.sbatch")
    assert (said.code, json.loads(said.out)["config"]) == (
        0,
        {
            "slurm": {"time": "60"},
            "env": {"setup": ["source ~/.bashrc"]},
            "script": {"path": "train.py", "args": ["--lr", "1"]},
        },
    )
    assert hpc("translate", "--json", "sbatch", "job.sbatch").out == said.out


@pytest.mark.parametrize("head", ["#SBATCH --gres=gpu:1", "#SBATCH --time=1:00:00"])
@pytest.mark.parametrize(
    ("line", "points"),
    [
        ("--seed $SLURM_ARRAY_TASK_ID --epochs 2", ["seed=1", "seed=2", "seed=3"]),
        ("--lr=${LRS[$SLURM_ARRAY_TASK_ID]}", ["lr=01", "lr=a b", "lr=0.001"]),
    ],
)
def test_the_sweep_that_is_printed_for_an_array_is_taken(
    hpc, tmp_path, head: str, line: str, points: list[str]
) -> None:
    options = "".join(f'P.add_argument("--{name}")\n' for name in ("seed", "epochs", "lr"))
    code = f"import argparse\nP = argparse.ArgumentParser()\n{options}print(P.parse_args())\n"
    (tmp_path / "train.py").write_text(code)
    job = f'#!/bin/bash\n{head}\n#SBATCH --array=1-3%2\nLRS=(0 01 "a b" 1e-3)\n'
    (tmp_path / "job.sh").write_text(f"{job}srun python train.py {line}\n")
    said = hpc("translate", "job.sh")
    assert (said.code, said.err) == (0, "")
    (tmp_path / "config.yaml").write_text(said.out)
    command = said.out.rpartition("\n# hpc-train ")[2]
    assert "--at-most 2" in command
    submit, *words = shlex.split(command)
    checked = hpc(submit, "--dry-run", *words)
    assert checked.code == 0, checked.err
    told = [it.split(None, 2)[2] for it in checked.out.splitlines() if it.startswith("point ")]
    assert told == points


def test_an_array_whose_values_are_not_known_is_three(hpc) -> None:
    said = hpc("translate", "#SBATCH --array=1-5\nsrun python train.py a/$SLURM_ARRAY_TASK_ID")
    assert said.code == 3
    assert said.err == (
        "no equivalent: --array=1-5: --sweep KEY=VALUES makes a job array, a run a point: write"
        " {KEY} among the script's arguments, where the value belongs\n"
    )


@pytest.mark.parametrize("more", [[], ["--sweep", "seed=0,1"]])
def test_a_rendered_script_is_told_to_be_one(hpc, more) -> None:
    """Its heredoc was read as commands: 24 lines that had no equivalent."""
    assert hpc("render", DIGITS, *more, "-o", "my job.sbatch").code == 0
    fix = "  fix: it is a rendered training: sbatch 'my job.sbatch'\n"
    for words in (["my job.sbatch"], ["sbatch 'my job.sbatch'"]):
        said = hpc("translate", *words)
        made = "error: my job.sbatch was made by hpc-train, and is translated already\n"
        assert (said.code, said.out, said.err) == (2, "", f"{made}{fix}")
    assert hpc("submit", "my job.sbatch").err.endswith(fix)


ACCELERATES = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
machine_rank: 0
mixed_precision: bf16
num_machines: 2
num_processes: 8
use_cpu: false
"""


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        ("--config_file acc.yaml", (2, 4)),
        ("--config-file=acc.yaml", (2, 4)),
        ("--config_file acc.yaml --num_machines 1 --num_processes 2", (1, 2)),
    ],
)
def test_a_config_of_accelerate_that_is_there_is_read(
    hpc, tmp_path, words: str, shape: tuple[int, int]
) -> None:
    (tmp_path / "acc.yaml").write_text(ACCELERATES)
    (tmp_path / "train.py").write_text("import torch\n")
    said = hpc("translate", f"accelerate launch {words} train.py --lr 0.1")
    assert (said.code, said.err) == (0, "")
    made = yaml.safe_load(said.out)
    assert made["slurm"] == {"nodes": shape[0], "gpus_per_node": shape[1]}
    assert made["env"] == {"variables": {"ACCELERATE_MIXED_PRECISION": "bf16"}}
    assert made["script"] == {"path": "train.py", "args": ["--lr", "0.1"]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "is not there, or no config of accelerate: give its values as options"),
        ("lr: 1\n", "is not there, or no config of accelerate: give its values as"),
        (
            f"{ACCELERATES}fsdp_config: {{fsdp_version: 2}}\n",
            "write Accelerator(fsdp_plugin=...) in train.py, with what acc.yaml has",
        ),
    ],
)
def test_what_it_has_for_the_script_is_told(hpc, tmp_path, text: str | None, told: str) -> None:
    if text is not None:
        (tmp_path / "acc.yaml").write_text(text)
    said = hpc("translate", "accelerate launch --config_file acc.yaml train.py")
    assert said.code == 3
    assert f"--config_file acc.yaml: {told}" in said.err
