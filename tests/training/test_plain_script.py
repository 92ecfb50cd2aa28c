"""Scripts without a Trainer, as their authors wrote them: seen, stopped together, refused early."""

from __future__ import annotations

import dataclasses
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from hpc_train.plan.plan import ScriptPlan
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.ranks import ExitRecord, read_beginning, read_exits, read_notes
from hpc_train.runs.script_saves import OwnSaves
from tests.training.test_script_fits import SCRIPTS, Scripted, same

DDP = "plain_ddp"


def plain(path: Path, *args: str, script: str = DDP, **more: Any) -> Scripted:
    """One that writes into its run's own folder, and resumes by its own checkpoint."""
    run = Scripted(path, script, "--out", str(path), *args)
    own = {"resume_when": "ckpt.pt", "resume_args": ["--resume", "{newest}"]}
    run.script = dataclasses.replace(run.script, **{**own, **more})
    return run


def records(run: Scripted, attempt: int = 0) -> list[ExitRecord]:
    return sorted(read_exits(run.dir.attempt(attempt)), key=lambda record: record.rank)


def weights(run: Scripted) -> Any:
    return torch.load(run.path / "final.pt")["model"]


def test_one_signalled_rank_stops_all_at_one_step_and_the_next_attempt_goes_on_from_there(
    tmp_path: Path,
) -> None:
    quiet, run = plain(tmp_path / "quiet"), plain(tmp_path / "run", "--slow", "0.5")
    assert quiet.go(2) == [0, 0], quiet.said()
    assert [record.kind for record in records(quiet)] == ["left", "left"]
    assert newest_step(quiet.dir) == 10, "its own checkpoint, each fifth step"
    ran = json.loads(quiet.dir.attempt(0).environment.read_text())
    assert ran["torch"]["version"] == torch.__version__
    assert "torch" in ran["packages"]
    assert "both write" not in quiet.said(), "rank 0 alone saves"
    assert run.go(2, "stop@step=3:rank=1") == [75, 75], run.said()
    first, second = records(run)
    assert first.kind == second.kind == "saved"
    assert first.step == second.step
    told = [line for rank in (0, 1) for line in run.log(0, rank).splitlines() if "told at" in line]
    assert told[0] == told[1], "the script's own handler was called at the same step"
    saved = newest_step(run.dir)
    assert saved == first.step < 12
    assert f"the script's newest checkpoint is of step {saved}" in run.said()
    assert run.go(2) == [0, 0], run.said(1)
    assert f"starts at {saved}" in run.said(1)
    began = read_beginning(run.dir.attempt(1))
    assert began is not None
    assert began.step == saved
    assert [record.step for record in records(run, 1)] == [12, 12]
    assert same(weights(run), weights(quiet))


TOLD = """
import signal, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
model = DDP(torch.nn.Linear(2, 1))
optimizer, step = torch.optim.SGD(model.parameters(), lr=0.1), 0
HANDLER
try:
    while step < 1000:
        time.sleep(0.02)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        step += 1
except BaseException as error:
    print("told by", type(error).__name__, "at", step, flush=True)
    raise
"""


@pytest.mark.parametrize(
    ("on_stop", "handler", "said"),
    [
        ("KeyboardInterrupt", "", "told by KeyboardInterrupt at"),
        ("exit", "", "told by SystemExit at"),
        ("SIGUSR1", "signal.signal(signal.SIGUSR1, lambda *_: 1 / 0)", "told by ZeroDivisionError"),
        ("SIGTERM", "", ""),
    ],
)
def test_a_stop_comes_as_the_script_wants_it_at_the_same_step_of_all(
    tmp_path: Path, on_stop: Any, handler: str, said: str
) -> None:
    run = Scripted(tmp_path, DDP)
    (tmp_path / "told.py").write_text(TOLD.replace("HANDLER", handler), encoding="utf-8")
    run.script = ScriptPlan("told.py", [], on_stop=on_stop)
    assert run.go(3, "stop@step=5:rank=2") == [75, 75, 75], run.said()
    assert len({record.step for record in records(run)}) == 1
    for rank in range(3):
        at = records(run)[rank].step
        assert not said or f"{said.removesuffix(' at')} at {at}" in run.log(0, rank)
    assert newest_step(run.dir) == 0


SAVES = TOLD.replace(
    "HANDLER", "SAVE = lambda: dist.get_rank() or torch.save(1, 'mine.pt')"
).replace("step += 1", "step += 1; SAVE()")


def test_a_stop_names_what_the_script_saved_where_script_resume_names_nothing(
    tmp_path: Path,
) -> None:
    run = Scripted(tmp_path, DDP)
    (tmp_path / "saves.py").write_text(SAVES, encoding="utf-8")
    run.script = ScriptPlan("saves.py", [])
    assert run.go(2, "stop@step=5:rank=1") == [75, 75], run.said()
    unnamed = OwnSaves.of(run.dir).unnamed
    assert Path(unnamed).name == "mine.pt"
    said = f"the script saved {unnamed}: to go on from it script.resume.when={unnamed}"
    assert said in run.log(0, 0)


IGNORES = TOLD.replace("HANDLER", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")


def test_a_script_that_does_not_leave_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    run = Scripted(tmp_path, DDP)
    (tmp_path / "deaf.py").write_text(IGNORES.replace("1000", "100_000"), encoding="utf-8")
    run.script = ScriptPlan("deaf.py", [], stop_grace_s=1.0)
    assert run.go(2, "stop@step=2") == [75, 75]
    assert "did not leave within 1 s of its stop" in run.said()


START = (
    "import os, subprocess, sys, torch, torch.distributed as dist, torch.multiprocessing as mp\n"
)
STEP = """
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
weight.sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (STEP, "has made no process group, so that 2 ranks would each train by themselves"),
        (STEP, "bad.py:7) and has made no process group"),
        ("mp.spawn(print, nprocs=4)", "the script starts 4 processes"),
        ("subprocess.run(['torchrun', 'x.py'])", "the script starts torchrun, and this is one of"),
        (
            "subprocess.run([sys.executable, '-m', 'torch.distributed.launch', 'x.py'])",
            "two launchers at once",
        ),
        ("os.system('cd . && torchrun --nproc_per_node=2 x.py')", "fix: submit x.py itself, with"),
        ("os.system('srun python x.py --lr 1')", "the script starts srun, and this is one of"),
        (
            "dist.init_process_group('gloo', rank=0, world_size=1, init_method='tcp://[::1]:1')",
            "makes a process group of 1, and this run has 2 ranks",
        ),
    ],
)
def test_what_cannot_go_well_is_refused_at_once_and_the_script_cannot_catch_it(
    tmp_path: Path, lines: str, said: str
) -> None:
    run = Scripted(tmp_path, DDP)
    caught = "".join(f"    {line}\n" for line in lines.splitlines())
    text = f"{START}try:\n{caught}except Exception as error:\n    print('caught', error)\n"
    (tmp_path / "bad.py").write_text(text, encoding="utf-8")
    run.script = ScriptPlan("bad.py", [])
    assert run.go(2) == [3, 3], run.said()
    assert said in run.said()
    assert "fix: " in run.said()
    assert "caught" not in run.said()


ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
parser.add_argument("--lr")
print(parser.parse_args())
"""


def test_a_script_of_the_old_launcher_gets_its_local_rank_and_what_takes_no_step_is_told(
    tmp_path: Path,
) -> None:
    run = Scripted(tmp_path, DDP)
    (tmp_path / "old.py").write_text(ARGPARSE, encoding="utf-8")
    run.script = ScriptPlan("old.py", ["--lr", "3"])
    assert run.go(2) == [0, 0], run.said()
    assert "Namespace(local_rank=1, lr='3')" in run.log(0, 1)
    assert [(record.kind, record.step) for record in records(run)] == [("left", None)] * 2


def test_a_session_that_is_started_as_a_script_stops_and_goes_on_exactly(tmp_path: Path) -> None:
    quiet, run = (Scripted(tmp_path / name, DDP) for name in ("quiet", "run"))
    for each in (quiet, run):
        path = str(SCRIPTS.parents[1] / "hpc_train" / "examples" / "raw_ddp.py")
        each.script = ScriptPlan(path, [str(each.path), "--epochs", "2"])
    assert quiet.go(2) == [0, 0], quiet.said()
    assert run.go(2, "stop@step=9:rank=1") == [75, 75], run.said()
    assert run.go(2) == [0, 0], run.said(1)
    lines = [
        [line for line in said.splitlines() if "right" in line]
        for said in (quiet.said(), run.said(0) + run.said(1))
    ]
    assert lines[0] == lines[1]
    assert newest_step(run.dir) == newest_step(quiet.dir) > 9


EACH_SAVES = (
    "import torch.distributed.checkpoint\n"
    + STEP.replace(
        "weight.sum()", "dist.init_process_group('gloo')\nrank = dist.get_rank()\nweight.sum()"
    )
    + """
torch.save(weight, f"own-{rank}.pt")
torch.distributed.checkpoint.save({"weight": weight}, checkpoint_id="shards")
if rank == 0:
    torch.save(weight, "alone.pt")
for _ in range(3):
    dist.barrier()
    for each in range(2):
        if rank == each:
            with open("ckpt.pt", "wb") as file:
                torch.save(weight, file)
dist.barrier()
"""
)


def test_ranks_that_write_one_checkpoint_are_told_once_with_the_file(tmp_path: Path) -> None:
    run = Scripted(tmp_path, DDP)
    (tmp_path / "each.py").write_text(START + EACH_SAVES, encoding="utf-8")
    run.script = ScriptPlan("each.py", [])
    assert run.go(2) == [0, 0], run.said()
    both = run.said() + run.log(0, 1)
    (told,) = (line for line in both.splitlines() if "WARNING" in line)
    assert told.startswith(("WARNING: ranks 0 and 1 both write", "WARNING: ranks 1 and 0 both"))
    assert f" write {tmp_path}/ckpt.pt: let one rank save, or put RANK into the name" in told


def test_a_fixed_port_that_is_taken_is_named_with_what_to_do(tmp_path: Path) -> None:
    run = Scripted(tmp_path, DDP)
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        port = listener.getsockname()[1]
        how = f"init_method='tcp://127.0.0.1:{port}'"
        lines = f"dist.init_process_group('gloo', rank=0, world_size=1, {how})\n"
        (tmp_path / "fixed.py").write_text(START + lines, encoding="utf-8")
        run.script = ScriptPlan("fixed.py", [])
        assert run.go(1) == [3], run.said()
    (record,) = records(run)
    assert f"port {port} is taken on" in record.error
    assert "let it read MASTER_PORT" in record.error
    assert "Traceback" not in run.said()


@pytest.mark.parametrize("package", ["lightning.fabric", "lightning_fabric"])
def test_a_fabric_for_one_device_gets_the_ranks_of_the_run_stops_with_all_and_goes_on(
    tmp_path: Path, package: str
) -> None:
    words = ("--out", str(tmp_path), "--package", package, "--slow", "1.0")
    run = Scripted(tmp_path, "fabric_loop", *words)
    run.script = dataclasses.replace(run.script, resume_when="ckpt.pt")
    assert run.go(2, "stop@step=3:rank=1") == [75, 75], run.said()
    first, second = records(run)
    assert (first.kind, first.step) == ("saved", second.step)
    assert 3 <= first.step < 12
    asked = "the script's Fabric asked for accelerator=cpu, devices=1, strategy=ddp"
    assert f"{asked}; it gets 1 node x 2 on cpu, strategy ddp; it goes on by" in run.said()
    assert "2 ranks, 12 batches, from 0" in run.said()
    assert run.go(2) == [0, 0], run.said(1)
    assert f"2 ranks, 12 batches, from {first.step}" in run.said(1)
    assert [record.step for record in records(run, 1)] == [12, 12]


APART = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
dist.barrier()
model = WRAP(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(1, 2)).sum().backward()
    AVERAGE
    optimizer.step()
"""
BY_HAND = "[dist.all_reduce(it.grad) for it in model.parameters()]"


@pytest.mark.parametrize(
    ("wrap", "average", "noted"), [("", "", True), ("DDP", "", False), ("", BY_HAND, False)]
)
def test_ranks_that_exchange_nothing_are_noted_once(
    tmp_path: Path, wrap: str, average: str, noted: bool
) -> None:
    run = Scripted(tmp_path, DDP)
    text = APART.replace("WRAP", wrap).replace("AVERAGE", average or "pass")
    (tmp_path / "apart.py").write_text(text, encoding="utf-8")
    run.script = ScriptPlan("apart.py", [])
    assert run.go(2) == [0, 0], run.said()
    notes = [it for it in read_notes(run.dir.attempt(0)) if "exchanged nothing" in it]
    assert len(notes) == noted
    assert not noted or "second optimizer step (apart.py:11): each trains" in notes[0]
