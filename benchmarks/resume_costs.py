"""What exactly-once training costs: each step, each save, each start, beside Lightning alone.

    python -m benchmarks resume_costs

Everything is measured in pairs within one process (two, for the steps), in turn, so that a busy
machine slows both sides alike.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import BenchError
from benchmarks.places import REPOSITORY, Places
from benchmarks.rows import Row

STEP_AT_MOST = 1.01
STALL_AT_MOST = 0.2
VERIFY_AT_MOST = 1.0
STATE_BYTES = 500_000_000
PAIRS = int(os.environ.get("HPC_TRAIN_BENCH_PAIRS", "5"))
STEPS = 300
WARM_UP = 50
GLOBAL_BATCH = 64


def rows(places: Places) -> Iterator[Row]:
    """One process per part, so that none warms up another's memory."""
    step = _child(places, "steps")
    ratio = median(ours / bare for ours, bare in step)
    yield Row(
        what="step, 2 ranks, everything on : bare Trainer",
        ours=f"{1000 * median(ours for ours, _ in step):.2f} ms",
        peer=f"{1000 * median(bare for _, bare in step):.2f} ms",
        ratio=f"{ratio:.3f}",
        target=f"<= {STEP_AT_MOST}",
        ok=ratio <= STEP_AT_MOST,
    )
    saves = _child(places, "saves")
    ratio = median(ours / bare for ours, bare in saves)
    yield Row(
        what="stall of a save of 500 MB : Trainer.save_checkpoint",
        ours=f"{1000 * median(ours for ours, _ in saves):.0f} ms",
        peer=f"{1000 * median(bare for _, bare in saves):.0f} ms",
        ratio=f"{ratio:.3f}",
        target=f"<= {STALL_AT_MOST}",
        ok=ratio <= STALL_AT_MOST,
    )
    reads = _child(places, "starts")
    ratio = median(added / once for added, once in reads)
    yield Row(
        what="verifying 500 MB adds to a start : reading it once",
        ours=f"{1000 * median(added for added, _ in reads):.0f} ms",
        peer=f"{1000 * median(once for _, once in reads):.0f} ms",
        ratio=f"{ratio:.3f}",
        target=f"<= {VERIFY_AT_MOST}",
        ok=ratio <= VERIFY_AT_MOST,
    )


def _child(places: Places, part: str) -> list[tuple[float, float]]:
    argv = [places.python, "-W", "ignore", "-m", "benchmarks.resume_costs", part]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{part}: {done.stderr[-2000:]}")
    pairs: list[tuple[float, float]] = json.loads(done.stdout.splitlines()[-1])
    return pairs


# -- steps ------------------------------------------------------------------------------------


def steps() -> list[tuple[float, float]]:
    """Median step of two ranks, everything on and bare, in turn."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=_rank, args=(rank, port, folder)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        pairs: list[tuple[float, float]] = json.loads(Path(folder, "pairs.json").read_text())
    return pairs


def _rank(rank: int, port: str, folder: str) -> None:
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        NODE_RANK="0",
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=port,
        PYTHONWARNINGS="ignore",
    )
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    pairs = []
    for number in range(PAIRS + 1):
        both = (
            _steps_of(rank, Path(folder, f"ours-{number}"), exact=True),
            _steps_of(rank, Path(folder, f"bare-{number}"), exact=False),
        )
        pairs.append(both)
    if rank == 0:
        Path(folder, "pairs.json").write_text(json.dumps(pairs[1:]), "utf-8")


def _steps_of(rank: int, folder: Path, *, exact: bool) -> float:
    """Seconds a step, over the whole stretch, so that what happens now and then counts as well."""
    import pytorch_lightning as pl
    import torch
    from pytorch_lightning.plugins.environments import LightningEnvironment
    from torch.utils.data import DataLoader, TensorDataset

    from benchmarks.resume_net import WIDTH, BatchStarts, Net

    clock = BatchStarts()
    arguments: dict[str, Any] = {
        "accelerator": "cpu",
        "devices": 2,
        "strategy": "ddp",
        "plugins": [LightningEnvironment()],
        "logger": False,
        "max_steps": STEPS,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "callbacks": [clock],
    }
    data = TensorDataset(torch.randn(GLOBAL_BATCH * STEPS, WIDTH))
    loader = DataLoader(data, batch_size=GLOBAL_BATCH // 2, shuffle=True)
    torch.manual_seed(0)
    if exact:
        trainer = pl.Trainer(**arguments, use_distributed_sampler=False)
        _fit_exactly(rank, folder, trainer, Net(), loader)
    else:
        pl.Trainer(**arguments).fit(Net(), loader)
    return (clock.times[-1] - clock.times[WARM_UP]) / (len(clock.times) - 1 - WARM_UP)


def _fit_exactly(rank: int, folder: Path, trainer: Any, model: Any, loader: Any) -> None:
    from hpc_train.runs.layout import RunDir
    from hpc_train.training.heartbeat import HeartbeatThread
    from hpc_train.training.rank_config import RankConfig
    from hpc_train.training.resume.fit_with_resume import fit_with_resume
    from hpc_train.training.resume.resume_state import ResumeState
    from hpc_train.training.resume.stop import StopFlag
    from tests.training.training import DEFAULTS, make_plan

    folder.mkdir(parents=True, exist_ok=True)
    spec = {**DEFAULTS, "global_batch": GLOBAL_BATCH, "checkpoint": {"every_n_minutes": 10}}
    stop, run = StopFlag(folder / "stop").install(), RunDir(folder)
    heartbeat = HeartbeatThread(run.attempt(0), rank=rank, node="here", every_s=0.2, stop=stop)
    heartbeat.start()
    config = RankConfig.of_plan(make_plan(spec, 2), run, attempt=0, rank=rank, world_size=2)
    state = ResumeState(config, heartbeat, stop)
    state.load()
    fit_with_resume(state, trainer, model=model, train_dataloaders=loader)
    heartbeat.end()


# -- saves ------------------------------------------------------------------------------------


def _model_and_trainer(folder: Path) -> tuple[Any, Any]:
    import pytorch_lightning as pl
    import torch

    width = int((STATE_BYTES / 3 / 4 / 16) ** 0.5)  # 16 layers, with Adam's two moments each

    class Net(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            layers = [torch.nn.Linear(width, width, bias=False) for _ in range(16)]
            self.net = torch.nn.Sequential(*layers)

        def training_step(self, batch: Any) -> Any:
            return self.net(batch).square().mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

        def train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(torch.randn(64, width), batch_size=8)

    trainer_arguments = {
        "accelerator": "cpu",
        "devices": 1,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "max_steps": 3,
        "default_root_dir": folder,
    }
    return Net(), trainer_arguments


def saves() -> list[tuple[float, float]]:
    """How long the training waits for a save of the same state, ours and Lightning's."""
    import pytorch_lightning as pl

    from hpc_train.runs.layout import RunDir
    from hpc_train.training.heartbeat import HeartbeatThread
    from hpc_train.training.rank_config import RankConfig
    from hpc_train.training.resume.lightning_adapter import LightningAdapter
    from hpc_train.training.resume.resume_state import ResumeState
    from hpc_train.training.resume.stop import StopFlag
    from tests.training.training import DEFAULTS, make_plan

    pairs: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(dir=REPOSITORY) as text:
        folder = Path(text)
        model, arguments = _model_and_trainer(folder)

        class Measure(pl.Callback):
            def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
                if trainer.global_step == 3:
                    pairs.extend(_save_pairs(trainer, training, saver, folder))

        run = RunDir(folder)
        kept = {"keep_last": 1, "every_n_minutes": 10.0}
        plan = make_plan({**DEFAULTS, "checkpoint": kept}, 1)
        rank = RankConfig.of_plan(plan, run, attempt=0, rank=0, world_size=1)
        stop = StopFlag()
        heartbeat = HeartbeatThread(run.attempt(0), rank=0, node="here", every_s=1.0, stop=stop)
        state = ResumeState(rank, heartbeat, stop)
        saver = state.controller.saver
        training = LightningAdapter(state)  # only its snapshots are asked for
        trainer = pl.Trainer(**arguments, callbacks=[Measure()])
        training._trainer = trainer
        trainer.fit(model)
    return pairs


def _save_pairs(trainer: Any, training: Any, saver: Any, folder: Path) -> list[tuple[float, float]]:
    from dataclasses import replace

    snapshot = training.snapshot()
    saver.prepare(snapshot)  # as at the first step of a training
    saver.finish()
    pairs = []
    for number in range(PAIRS + 1):
        began = time.perf_counter()
        saver.start(replace(training.snapshot(), step=number + 1))
        ours = time.perf_counter() - began
        saver.finish()
        began = time.perf_counter()
        trainer.save_checkpoint(folder / "lightning.ckpt")
        pairs.append((ours, time.perf_counter() - began))
        _settle()
    return pairs[1:]


def _settle() -> None:
    os.sync()


# -- starts -----------------------------------------------------------------------------------


def starts() -> list[tuple[float, float]]:
    """What verifying adds to loading a file that is on the disk, and reading that file once.

    A start without verification reads from the disk; with it, verifying reads from the disk and
    loading from memory.
    """
    import torch

    from hpc_train.training.resume.manifest import hash_file

    def load() -> None:
        torch.load(path, weights_only=True)

    def verify_and_load() -> None:
        hash_file(path)
        load()

    with tempfile.TemporaryDirectory(dir=REPOSITORY) as text:
        path = Path(text, "model.ckpt")
        tensors = {str(number): torch.randn(STATE_BYTES // 4 // 50) for number in range(50)}
        torch.save(tensors, path)
        del tensors
        os.sync()
        pairs = []
        for _ in range(PAIRS + 1):
            verified = _cold(path, verify_and_load)
            loaded = _cold(path, load)
            pairs.append((verified - loaded, _cold(path, lambda: _read(path))))
    return pairs[1:]


def _cold(path: Path, action: Callable[[], None]) -> float:
    """Seconds that `action` takes while none of the file is in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _read(path: Path) -> None:
    buffer = bytearray(8 << 20)
    with path.open("rb", buffering=0) as stream:
        while stream.readinto(buffer):
            pass


if __name__ == "__main__":
    parts = {"steps": steps, "saves": saves, "starts": starts}
    print(json.dumps(parts[sys.argv[1]]()))
