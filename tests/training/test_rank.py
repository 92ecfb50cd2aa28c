"""Ranks as processes: they meet, train, and say why not."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from hpc_train.plan import env_names
from hpc_train.plan.plan import ObjectSpec
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_exits
from tests.training.launched import free_port, make_plan, rank_environ, run_ranks


def test_four_ranks_on_two_nodes_learn_the_digits(tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path,
        nodes=2,
        ranks_per_node=2,
        model=ObjectSpec("hpc_train.examples.digits.DigitsClassifier", {}),
        trainer={"max_epochs": 8},
        loggers=["csv", "tensorboard"],
    )
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [0, 0, 0, 0], ended.log(0)
    run = RunDir(tmp_path / "run")
    final = json.loads((run.metrics / "final.json").read_text())
    assert final["val_acc"] >= 0.95
    assert final["epoch"] == 8
    assert list((run.metrics / "tensorboard").glob("events.out.tfevents.*"))
    assert {(item.kind, item.cause) for item in read_exits(ended.attempt)} == {("finished", "")}
    assert "training from step 0 on 4 ranks" in ended.log(0)
    assert f"step {final['step']}/{final['step']}  epoch 8" in ended.log(0)
    assert "samples/s" not in ended.log(1)
    assert "Traceback" not in "".join(ended.log(rank) for rank in range(4))


def test_ranks_that_slurm_started_otherwise_than_planned_say_so_before_importing_torch(
    tmp_path: Path,
) -> None:
    plan = make_plan(tmp_path, nodes=3, ranks_per_node=4)
    run = RunDir(tmp_path)
    run.plan.write_text(plan.to_json())
    base = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    environ = {
        **base,
        env_names.RUN_DIR: str(tmp_path),
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": "6",
        "SLURM_STEP_NUM_NODES": "3",
        "SLURM_STEP_TASKS_PER_NODE": "2(x3)",
        "SLURM_STEP_NODELIST": "node[1-3]",
        "SLURM_PROCID": "5",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "2",
    }
    code = (
        "import sys\nfrom hpc_train.training.rank import main\n"
        "code = main()\nprint('torch' in sys.modules)\nsys.exit(code)"
    )
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert time.monotonic() - start < 60
    assert done.returncode == 3
    assert "error: 12 ranks were planned (3 nodes x 4), but 6 started (3 x 2, by slurm)" in (
        done.stderr
    )
    assert "fix: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == "False\n"
    (record,) = read_exits(run.attempt(0))
    assert (record.rank, record.code, record.kind) == (5, 3, "check")


def test_a_model_checkpoint_without_a_folder_ends_before_the_first_step(tmp_path: Path) -> None:
    arguments = {"dirpath": "/proc/models"}
    spec = {"class_path": "pytorch_lightning.callbacks.ModelCheckpoint", "init_args": arguments}
    plan = make_plan(tmp_path, trainer={"callbacks": [spec]})
    ended = run_ranks(plan, tmp_path / "run")
    key = "trainer.callbacks.0.init_args.dirpath"
    assert f"error: {key}: /proc/models cannot be made (/proc holds" in ended.log(0)
    assert "fix: name a folder that you may write into" in ended.log(0)
    assert "training from step" not in ended.log(0)
    assert [it.rank for it in read_exits(ended.attempt) if "cannot be made" in it.error] == [0]


def test_ranks_that_never_come_are_named_within_the_deadline(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, nodes=2, ranks_per_node=2, start_timeout_s=15)
    start = time.monotonic()
    ended = run_ranks(plan, tmp_path / "run", leave_out=[2, 3])
    assert time.monotonic() - start < 150
    assert ended.codes == [76, 76, None, None]
    for rank in (0, 1):
        assert "error: ranks 2-3 never came (node 1) within 15 s" in ended.log(rank)
        assert "Traceback" not in ended.log(rank)
    assert {record.kind for record in read_exits(ended.attempt)} == {"network"}


def test_ranks_with_different_plans_refuse_to_train(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    run, other = RunDir(tmp_path / "run"), RunDir(tmp_path / "other")
    processes, port = [], free_port()
    for rank, where, seed in ((0, run, 1), (1, other, 2)):
        where.path.mkdir()
        training = dataclasses.replace(plan.training, seed=seed)
        where.plan.write_text(dataclasses.replace(plan, training=training).to_json())
        environ = rank_environ(plan, where, rank, port)
        processes.append(
            subprocess.Popen([sys.executable, "-m", "hpc_train.training"], env=environ)
        )
    assert [process.wait(200) for process in processes] == [3, 3]
    for rank, where in ((0, run), (1, other)):
        assert "plans differ: " in where.attempt(0).rank_log(rank).read_text()


def test_torchruns_own_store_serves_the_ranks(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    run.plan.write_text(plan.to_json())
    environ = {**os.environ, env_names.RUN_DIR: str(run.path), env_names.ATTEMPT: "0"}
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *torchrun, "-m", "hpc_train.training"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "training from step 0 on 2 ranks" in done.stdout
    assert {record.code for record in read_exits(run.attempt(0))} == {0}


def test_gpus_that_are_asked_for_and_not_there_are_an_error_and_no_cpu_training(
    tmp_path: Path,
) -> None:
    plan = make_plan(tmp_path, ranks_per_node=1, gpus_per_node=1, trainer={"accelerator": "gpu"})
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [3]
    assert "error: the config asks for GPUs and torch sees none" in ended.log(0)
