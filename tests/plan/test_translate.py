"""What tutorials teach, as a config and a submit line; what has no equivalent says why."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from hpc_train.config.meant_words.removed_arguments import (
    OLD_STRATEGIES,
    REMOVED_ARGUMENTS,
    RENAMED_ARGUMENTS,
    UNUSED_ARGUMENTS,
)
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.errors import UsageError
from hpc_train.plan.launcher_options import TORCHRUN
from hpc_train.plan.translate import translate
from hpc_train.plan.translation import Translation

KNOWN = ("max_epochs", "precision", "strategy", "accelerator", "gradient_clip_val", "callbacks")


def made(text: str, **options: bool) -> Translation:
    return translate(text, KNOWN, **options)


def shape(translation: Translation) -> tuple[int | None, int | None]:
    config = translation.config
    return config.get("slurm.nodes"), config.get("slurm.gpus_per_node")


def told(translation: Translation, word: str) -> str:
    (what,) = [text for said, text in translation.said if said.startswith(word)]
    return what


# Trainer arguments


@pytest.mark.parametrize(
    ("call", "config", "devices"),
    [
        ("Trainer(gpus=4)", {"slurm.gpus_per_node": 4}, ""),
        ("gpus=4", {"slurm.gpus_per_node": 4}, ""),
        ("trainer = pl.Trainer(gpus='4', num_nodes=3)", {"slurm.gpus_per_node": 4, "nodes": 3}, ""),
        ("Trainer(gpus=[0,2])", {"slurm.gpus_per_node": 2}, "0,2"),
        ("gpus='0,2'", {"slurm.gpus_per_node": 2}, "0,2"),
        ("devices=[3]", {"slurm.gpus_per_node": 1}, "3"),
        ("Trainer(gpus=[0,2], num_nodes=2)", {"slurm.gpus_per_node": 2, "nodes": 2}, ""),
        ("Trainer(gpus=1)", {"slurm.gpus_per_node": 1}, ""),
        ("gpus=-1", {}, ""),
        ("gpus=0", {"trainer.accelerator": "cpu"}, ""),
        ("precision=16", {"trainer.precision": "16-mixed"}, ""),
        ("precision='bf16'", {"trainer.precision": "bf16-mixed"}, ""),
        ("accelerator=ddp", {"trainer.strategy": "ddp"}, ""),
        ("accelerator='gpu'", {"trainer.accelerator": "gpu"}, ""),
        ("distributed_backend=dp", {"trainer.strategy": "ddp"}, ""),
        ("strategy=ddp_sharded precision=16", {"trainer.strategy": "fsdp", "precision": 1}, ""),
        ("strategy='deepspeed'", {"trainer.strategy": "deepspeed"}, ""),
        (
            "plugins=DDPPlugin(find_unused_parameters=False)",
            {"trainer.strategy": "ddp_find_unused_parameters_false"},
            "",
        ),
        ("weights_summary=None", {"trainer.enable_model_summary": False}, ""),
        ("max_epochs=3, gradient_clip_val=0.5", {"trainer.max_epochs": 3}, ""),
    ],
)
def test_trainer_arguments_have_an_equivalent(call: str, config: dict, devices: str) -> None:
    found = made(call)
    named = {key: value for key, value in config.items() if "." in key}
    assert found.config.items() >= named.items()
    assert shape(found)[0] == config.get("nodes")
    assert found.devices == devices
    assert found.refused == []


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("auto_lr_find=True", "tuner.Tuner"),
        ("resume_from_checkpoint='x.ckpt'", "hpc-train resume RUN"),
        ("amp_backend='apex'", "no Apex"),
        ("accelerator='tpu'", "GPUs and CPUs"),
        ("strategy='colossalai'", "fsdp"),
        ("max_epoch=3", "did you mean 'max_epochs'"),
        ("callbacks=[Mine(3)]", "class_path"),
        ("strategy=DDPStrategy(bucket_cap_mb=50)", "class_path"),
        ("gpus=my_gpus", "no number of GPUs"),
        ("accelerator=ddp strategy=fsdp", "contradicts trainer.strategy: ddp"),
    ],
)
def test_what_the_trainer_has_no_equivalent_for_says_what_to_do(call: str, why: str) -> None:
    ((word, reason),) = made(call).refused
    assert word.startswith(call.rpartition(" ")[2].partition("=")[0])
    assert why in reason


@pytest.mark.parametrize("name", sorted(OLD_STRATEGIES))
def test_every_old_strategy_is_one_of_today_or_refused(name: str) -> None:
    today, why = OLD_STRATEGIES[name]
    found = made(f"strategy={name}")
    assert found.config.get("trainer.strategy", "") == today
    assert bool(found.refused) == (not today)
    assert why


def test_no_argument_of_the_tables_is_one_of_the_installed_trainer() -> None:
    old = {*REMOVED_ARGUMENTS, *RENAMED_ARGUMENTS, *UNUSED_ARGUMENTS}
    today = set(trainer_parameters(sys.path))
    assert len(today) > 30
    assert old & today == set()
    assert {name for name, _ in RENAMED_ARGUMENTS.values()} <= today


# Launchers


@pytest.mark.parametrize(
    ("command", "nodes", "gpus"),
    [
        ("torchrun --nproc_per_node=4 --nnodes=2 train.py", 2, 4),
        ("torchrun --nproc-per-node 4 train.py", None, 4),
        ("torchrun --standalone train.py", None, None),
        ("torchrun --nnodes=1:4 --nproc_per_node=8 train.py", 4, 8),
        ("python -m torch.distributed.launch --nproc_per_node=4 --nnodes=2 train.py", 2, 4),
        ("python3.11 -u -m torch.distributed.run --nproc_per_node=2 train.py", None, 2),
        ("accelerate launch --num_processes 8 --num_machines 2 train.py", 2, 4),
        ("accelerate launch --num_processes=3 train.py", None, 3),
        ("deepspeed --num_gpus=4 --num_nodes 2 train.py", 2, 4),
        ("srun -N 2 --ntasks-per-node=4 python train.py", 2, 4),
        ("srun -n8 --nodes=2 python train.py", 2, 4),
        ("srun --gres=gpu:a100:4 --nodes=1 torchrun --nproc_per_node=4 train.py", 1, 4),
        ("python train.py", None, None),
        ("CUDA_VISIBLE_DEVICES=0,2 python train.py", None, 2),
        ("./train.py", None, None),
    ],
)
def test_a_launcher_says_the_shape(command: str, nodes: int | None, gpus: int | None) -> None:
    found = made(command)
    assert shape(found) == (nodes, gpus)
    assert found.refused == []
    assert found.script[0].endswith("train.py")


def test_arguments_of_the_script_come_through_unharmed() -> None:
    own = ["--lr", "0.1", "a b", "--nproc_per_node=9", "$(rm -rf x)", "ü", "-m", "it's", "a;b"]
    found = made(f"torchrun --nproc_per_node=2 train.py {shlex.join(own)}")
    assert found.script == ["train.py", *own]
    line = shlex.split(found.submit_line())
    assert line == ["hpc-train", "submit", "--gpus", "2", "train.py", "--", *own]
    assert shape(found) == (None, 2)


def test_a_script_with_more_than_a_shape_stands_in_the_config() -> None:
    found = made("sbatch --qos=high\nsrun python train.py --lr 1")
    assert found.submit_line() == "hpc-train submit config.yaml"
    nested = found.nested()
    assert nested["script"] == {"path": "train.py", "args": ["--lr", "1"]}
    assert nested["slurm"] == {"qos": "high"}


def test_a_script_on_cpus_says_so_where_a_script_can() -> None:
    found = made("accelerate launch --cpu --num_processes 2 train.py")
    assert found.nested()["script"]["accelerator"] == "cpu"
    assert "trainer" not in found.nested()


@pytest.mark.parametrize(
    ("command", "word", "why"),
    [
        ("torchrun --nproc_per_node=2 -m pkg.train", "-m", "runpy"),
        ("python -m pkg.train", "-m pkg.train", "runpy"),
        ("torchrun --nproc_per_nod=2 train.py", "--nproc_per_nod", "--nproc-per-node"),
        ("torchrun --no_python ./a.out", "--no_python", ".py"),
        ("accelerate launch --config_file x.yaml train.py", "--config_file", "not there"),
        ("accelerate launch --use_fsdp train.py", "--use_fsdp", "Accelerator"),
        ("mpirun -np 8 ./simulate", "mpirun", "starts no training that is known"),
        ("mpirun -np 3 -N 2 python train.py", "3 ranks, 2 a node", "divide"),
        ("horovodrun -np 8 python train.py", "horovodrun", "torch.distributed"),
        ("make train", "make", "env.setup"),
        ("torchrun --nproc_per_node=2", "the script", "not named"),
        ("python train.py < words.txt", "< words.txt", "name the file as an argument"),
        ("python a.py && python b.py", "b.py", "second script"),
        ("srun --nodes=3 -n8 python train.py", "8 on 3 nodes", "divide"),
        ("srun --nodes=3 torchrun --nnodes=2 train.py", "--nnodes 2", "contradicts 3"),
        ("sbatch job.sh", "job.sh", "hpc-train translate job.sh"),
        ("scripts/job.sh", "scripts/job.sh", "not read: hpc-train translate scripts/job.sh"),
        ("bash 'my job.sh' 4", "my job.sh", "hpc-train translate 'my job.sh'"),
        ("srun python train.py $1", "$1", "write its value"),
        ("for i in 1 2; do", "for i in 1 2", "--sweep i=1,2"),
        ("sbatch --array=1-9 --wrap 'python t.py'", "--array=1-9", "--sweep"),
        ("sbatch --patition=gpu", "--patition", "--partition"),
    ],
)
def test_what_a_launcher_cannot_have_here_is_refused_with_the_reason(command, word, why) -> None:
    reasons = dict(made(command).refused)
    assert any(word in said and why in reason for said, reason in reasons.items()), reasons


@pytest.mark.torch
def test_every_option_of_torchrun_has_its_row() -> None:
    from torch.distributed.run import get_args_parser

    actions = get_args_parser()._actions
    options = {
        max(action.option_strings, key=len).lstrip("-").replace("_", "-"): action.nargs == 0
        for action in actions
        if action.option_strings and action.dest != "help"
    }
    assert options.keys() <= TORCHRUN.keys()
    assert {name: TORCHRUN[name].is_switch for name in options} == options


# Variables and Slurm


def test_what_the_preflight_chooses_is_left_out_or_kept_on_demand() -> None:
    text = "NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=eth0 NCCL_DEBUG=INFO MASTER_ADDR=a python t.py"
    found = made(text)
    assert found.config == {"env.variables.NCCL_DEBUG": "INFO"}
    assert "the preflight chooses" in told(found, "NCCL_IB_DISABLE=1")
    assert "where to meet" in told(found, "MASTER_ADDR=a")
    kept = made(text, keep_nccl=True).nested()["env"]["variables"]
    assert kept == {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "INFO"}


def test_the_value_of_a_secret_is_never_written() -> None:
    found = made("WANDB_API_KEY=s3cret HF_TOKEN=hush python train.py")
    assert found.config == {"env.passthrough": ["WANDB_API_KEY", "HF_TOKEN"]}
    assert not any(word in str(found) for word in ("s3cret", "hush"))


def test_a_batch_script_is_read_line_by_line() -> None:
    script = """#!/bin/bash
#SBATCH --job-name=big   # a comment
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:a100:4
#SBATCH --cpus-per-task=8
#SBATCH --time=1-00:00:00
#SBATCH --mem=0
#SBATCH -A proj -p gpu
#SBATCH --signal=SIGUSR1@90
#SBATCH --output=log-%j
#SBATCH --hint=nomultithread

module load cuda/12.4 nccl
source $HOME/venv/bin/activate
export MASTER_ADDR=$(hostname)
export NCCL_DEBUG=INFO
srun python train.py \\
    --lr 0.1
"""
    found = made(script)
    assert found.refused == []
    assert found.script == ["train.py", "--lr", "0.1"]
    assert found.nested() == {
        "name": "big",
        "script": {"path": "train.py", "args": ["--lr", "0.1"]},
        "slurm": {
            "gpu_type": "a100",
            "cpus_per_gpu": 8,
            "time": "1-00:00:00",
            "mem": "0",
            "account": "proj",
            "partition": "gpu",
            "signal_lead_s": 90,
            "extra": {"hint": "nomultithread"},
            "nodes": 2,
            "gpus_per_node": 4,
        },
        "env": {
            "modules": ["cuda/12.4", "nccl"],
            "venv": "~/venv",
            "variables": {"NCCL_DEBUG": "INFO"},
        },
    }
    assert "hpc-train logs RUN" in told(found, "--output=log-%j")


@pytest.mark.parametrize(
    ("lines", "env"),
    [
        ("source ~/.bashrc", {"setup": ["source ~/.bashrc"]}),
        (". /opt/site.sh", {"setup": [". /opt/site.sh"]}),
        ("source activate torch", {"conda": "torch"}),
        ("conda activate torch && echo ready", {"conda": "torch"}),
        (". envs/t/bin/activate", {"venv": "envs/t"}),
        ("ml cuda/12.4 nccl", {"modules": ["cuda/12.4", "nccl"]}),
        # what follows a line of env.setup may need it
        (
            "source ~/.bashrc\nconda activate torch",
            {"setup": ["source ~/.bashrc", "conda activate torch"]},
        ),
        (
            "module use /sw\nmodule load cuda\nsource venv/bin/activate",
            {"setup": ["module use /sw", "module load cuda", "source venv/bin/activate"]},
        ),
        ("ulimit -n 9999\nmodule load cuda", {"setup": ["ulimit -n 9999"], "modules": ["cuda"]}),
        (
            "V=$SCRATCH/v\nsource $V/bin/activate",
            {"setup": ["V=$SCRATCH/v", "source $V/bin/activate"]},
        ),
        ("V=/sw/v\nsource ${V}/bin/activate", {"venv": "/sw/v"}),
        ("export OUT=$SCRATCH/out", {"setup": ["export OUT=$SCRATCH/out"]}),
        ("conda run -n torch true", {"conda": "torch"}),
        ("mkdir -p out\nmodule load cuda", {"setup": ["mkdir -p out"], "modules": ["cuda"]}),
        (
            "D=/scratch/me\nmkdir -p $D && tar xf data.tar -C $D",
            {"setup": ["mkdir -p /scratch/me", "tar xf data.tar -C /scratch/me"]},
        ),
        ("cp a.npy $SLURM_TMPDIR/", {"setup": ["cp a.npy $SLURM_TMPDIR/"]}),
    ],
)
def test_lines_that_make_the_shell_ready_keep_their_order(lines: str, env: dict) -> None:
    assert made(f"{lines}\nsrun python train.py").nested()["env"] == env


def test_what_stands_behind_the_training_is_not_done_before_it() -> None:
    translated = made("mkdir -p out\npython train.py\ncp out/best.pt /archive/")
    assert translated.nested()["env"] == {"setup": ["mkdir -p out"]}
    ((line, why),) = translated.refused
    assert line == "cp out/best.pt /archive/"
    assert why.startswith("stands behind the training")


def test_files_made_ready_in_another_folder_are_for_the_user() -> None:
    translated = made("cd data\ntar xf x.tar\ncd ..\npython train.py")
    assert translated.refused == [
        ("tar", "starts no training that is known: put it into env.setup")
    ]
    translated = made("mkdir out/$SLURM_ARRAY_TASK_ID\npython train.py")
    assert translated.refused[0][1].startswith("the runs of a sweep share their environment")


def test_the_script_of_a_torchrun_tutorial_needs_none_of_its_addresses() -> None:
    script = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
set -euo pipefail
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
export MASTER_PORT=$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))
echo Node IP: $head_node_ip
cd $SLURM_SUBMIT_DIR
LR=0.1
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 1 \\
  --rdzv_endpoint $head_node_ip:29500 train.py 50 --lr $LR
"""
    found = made(script)
    assert found.refused == []
    assert found.nested() == {
        "slurm": {"nodes": 4, "gpus_per_node": 1},
        "script": {"path": "train.py", "args": ["50", "--lr", "0.1"]},
    }


@pytest.mark.parametrize("text", ["", "   ", "# only a comment", 'python "train.py'])
def test_nothing_to_translate_is_told(text: str) -> None:
    with pytest.raises(UsageError):
        made(text)


# The page


def rows_of_the_page() -> list[tuple[str, str]]:
    text = (Path(__file__).parents[2] / "docs" / "tutorials.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(.*?)` \| (.*?) \| .*\|$", text, re.MULTILINE)


@pytest.mark.parametrize(("command", "here"), rows_of_the_page())
def test_the_page_says_what_the_command_does(command: str, here: str) -> None:
    found = translate(command, trainer_parameters(sys.path))
    if here == "refused":
        assert len(found.refused) == 1
        return
    keys = dict(item.split(": ", 1) for item in re.findall("`(.*?)`", here))
    assert {key: yaml.safe_load(f"{{v: {value}}}")["v"] for key, value in keys.items()} == {
        key: yaml.safe_load(f"{{v: {value}}}")["v"] if key == "slurm.time" else value
        for key, value in found.config.items()
    }
    assert found.refused == []


def test_the_page_has_the_kinds_of_words_that_tutorials_use() -> None:
    assert len(rows_of_the_page()) > 30
