"""Trainings on the GPU by the product's own commands: exact after stops, saved, refused."""

from __future__ import annotations

import re
import subprocess
import sys
from statistics import median

import pytest
import torch

from hpc_train.training.devices import Device, lightning_accelerator
from tests.gpu.conftest import Bench, Trained
from tests.gpu.training import STEPS

SHAPES = [1, pytest.param(2, marks=pytest.mark.gpus(2))]  # the second with NCCL between them
IN_ALL = 2 * STEPS
# The last with a GradScaler, whose state has to go on as well.
TYPES = {"32-true": "float32", "bf16-mixed": "bfloat16", "16-mixed": "float16"}


def assert_bit_equal(whole: Trained, stopped: Trained, ranks: int) -> int:
    """Every step of every rank; returns how many there are."""
    for rank in range(ranks):
        expected, found = whole.hashes(rank), stopped.hashes(rank)
        assert sorted(found) == sorted(expected) == list(range(1, IN_ALL + 1))
        differ = [step for step in expected if expected[step] != found[step]]
        assert not differ, f"rank {rank}: the first of {len(differ)} steps is {differ[0]}"
    return IN_ALL * ranks


@pytest.mark.parametrize("ranks", SHAPES)
@pytest.mark.parametrize("precision", TYPES)
def test_a_run_stopped_twice_is_bit_equal_to_one_that_was_not(
    bench: Bench, on_gpu, tell, ranks, precision
):
    if precision == "16-mixed" and not on_gpu:
        pytest.skip("Lightning has it on a GPU only")
    trainer = {"precision": precision}
    whole = bench.completed(bench.submit(ranks, trainer=trainer))
    stopped = bench.interrupted(ranks, trainer=trainer)
    assert f"dtype torch.{TYPES[precision]}\n" in whole.log
    tell(steps=assert_bit_equal(whole, stopped, ranks), stops=len(stopped.status["attempts"]) - 1)


@pytest.mark.parametrize("ranks", SHAPES)
def test_a_compiled_model_goes_on_after_stops(bench: Bench, tell, ranks):
    model = {"compiled": True}
    whole = bench.completed(bench.submit(ranks, model))
    stopped = bench.interrupted(ranks, at=(6,), model=model)
    tell(steps=assert_bit_equal(whole, stopped, ranks))


@pytest.mark.gpus(2)
def test_parameters_in_shards_go_on_after_stops(bench: Bench, tell):
    options = {"data_parallel_size": 2, "tensor_parallel_size": 1}
    name = "pytorch_lightning.strategies.ModelParallelStrategy"
    keys = {"trainer": {"strategy": {"class_path": name, "init_args": options}}}
    model = {"sharded": True}
    whole = bench.completed(bench.submit(2, model, **keys))
    stopped = bench.interrupted(2, at=(6,), model=model, **keys)
    tell(steps=assert_bit_equal(whole, stopped, 2))


@pytest.mark.parametrize("ranks", SHAPES)
def test_lightnings_fsdp_goes_on_after_a_stop(bench: Bench, needs_gpu, tell, ranks):
    stopped = bench.interrupted(ranks, at=(6,), trainer={"strategy": "fsdp"})
    assert sorted(stopped.hashes()) == list(range(1, IN_ALL + 1))
    tell(steps=IN_ALL)


def test_the_model_is_on_the_gpu_and_its_batches_were_pinned(bench: Bench, on_gpu):
    trained = bench.completed(bench.submit())
    device = "cuda" if on_gpu else "cpu"
    assert f"device {device}" in trained.log
    assert f"before the transfer: pinned {on_gpu}" in trained.log
    assert {line["device"].partition(":")[0] for line in trained.lines()} == {device}


def test_an_asynchronous_save_hardly_stalls_the_training(bench: Bench, on_gpu, tell):
    width = 20_000 if on_gpu else 500  # 41 million parameters: 0.5 GB with AdamW's moments
    model = {"width": width, "hashed": False, "step_s": 0.3}
    stalls, memory = {}, {}
    for kept in (True, False):
        keys = {"every_n_minutes": None, "every_n_steps": 8, "asynchronous": kept}
        trained = bench.completed(bench.submit(1, model, checkpoint=keys))
        stalls[kept] = _stall_s(trained, every=8)
        memory[kept] = max(line["memory_mib"] for line in trained.lines())
    tell(
        stall_asynchronous=f"{stalls[True] * 1000:.0f} ms", at_once=f"{stalls[False] * 1000:.0f} ms"
    )
    state_mib = width * 2058 * 3 * 4 / 2**20
    tell(state=f"{state_mib:.0f} MiB", more_host_memory=f"{memory[True] - memory[False]} MiB")
    if on_gpu:
        assert stalls[True] <= 0.2 * stalls[False]
        assert memory[True] - memory[False] <= 2.5 * state_mib, "two copies at most"


def _stall_s(trained: Trained, every: int) -> float:
    """How much longer a save makes the two steps around it, but for the first save."""
    times = {line["step"]: line["time"] for line in trained.lines()}
    usual = median(times[step] - times[step - 1] for step in times if step % every in (3, 4, 5))
    saved = [step for step in times if step % every == 0 and step > every and step + 1 in times]
    return median(times[step + 1] - times[step - 1] for step in saved) - 2 * usual


def test_a_gpu_out_of_memory_is_explained_and_not_tried_again(bench: Bench, needs_gpu):
    ended = bench.ended(bench.submit(1, {"fill_at": 3}))
    (attempt,) = ended.status["attempts"]
    assert ended.status["state"] == "failed"
    assert attempt["outcome"] == "out_of_memory"
    assert re.search(r"GPU|CUDA", ended.status["reason"]), ended.status["reason"]
    assert ended.status["reason"].count("\n") == 0


def test_a_gpu_that_another_process_fills_is_told(bench: Bench, needs_gpu, tell):
    fill = (
        "import sys, time, torch\n"
        "free, _ = torch.cuda.mem_get_info()\n"
        "kept = torch.empty(int(free - 1.5e9), dtype=torch.uint8, device='cuda')\n"
        "torch.cuda.synchronize(); print('full', flush=True); time.sleep(600)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", fill], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "full\n"
        said = bench.hpc("preflight", "--json", code=None).stdout
        assert "gpu_busy" in said
        ended = bench.ended(bench.submit(1, {"width": 60_000}))
        assert ended.status["attempts"][-1]["outcome"] == "out_of_memory"
        tell(said=ended.status["reason"][:80].replace("|", " "))
    finally:
        other.kill()
        other.communicate()


def test_two_ranks_on_one_gpu_are_refused(bench: Bench, needs_gpu):
    bench.environment["CUDA_VISIBLE_DEVICES"] = "0"
    ended = bench.ended(bench.submit(2))
    assert ended.status["state"] == "failed"
    assert "2 ranks on this machine and 1 GPU" in ended.status["reason"], ended.status["reason"]


def test_more_ranks_than_gpus_are_on_the_cpu_where_the_accelerator_is_auto(bench: Bench, needs_gpu):
    count = torch.cuda.device_count()
    trained = bench.completed(bench.submit(2 * count, trainer={"accelerator": "auto"}))
    assert {line["device"] for line in trained.lines()} == {"cpu"}
    said = f"{2 * count} ranks on this machine and {count} GPU"
    assert said in trained.status["attempts"][0]["notes"][0]


def _names(kind: str) -> list[tuple[str, str]]:
    """(what CUDA_VISIBLE_DEVICES is set to, the UUID that has to be used)."""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    gpus = re.findall(r"^GPU \d+:.*\(UUID: (GPU-[\w-]+)\)", listed, re.MULTILINE)
    migs = re.findall(r"^\s+MIG .*\(UUID: (MIG-[\w/-]+)\)", listed, re.MULTILINE)
    if kind == "MIG name":
        return [(mig, mig) for mig in migs]
    return [(str(n) if kind == "index" else uuid, uuid) for n, uuid in enumerate(gpus)]


@pytest.mark.parametrize("kind", ["index", "UUID", "MIG name"])
def test_cuda_visible_devices_is_obeyed_by(bench: Bench, needs_gpu, tell, kind):
    names = _names(kind)
    if not names:
        pytest.skip("there are none here")
    written, uuid = names[-1]
    # PCI_BUS_ID: counted as nvidia-smi does.
    bench.environment |= {"CUDA_VISIBLE_DEVICES": written, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    trained = bench.completed(bench.submit(1, {"hashed": False}))
    used = {line["uuid"] for line in trained.lines()}
    # torch writes the UUID without "GPU-"; of a MIG instance it tells the instance's own.
    assert len(used) == 1
    if kind != "MIG name":
        assert uuid.removeprefix("GPU-") in used.pop()
    tell(set_to=written)


def test_a_rank_that_sees_its_own_gpu_alone_trains_on_it(needs_gpu):
    import pytorch_lightning as pl
    from pytorch_lightning.accelerators import CUDAAccelerator
    from pytorch_lightning.demos.boring_classes import BoringModel

    own = Device(kind="cuda", index=0, own_only=True)
    accelerator = lightning_accelerator(own, CUDAAccelerator)
    # As in DDPStrategy.root_device and num_processes with four ranks a node.
    assert (
        accelerator.get_parallel_devices(accelerator.parse_devices(4))
        == [torch.device("cuda", 0)] * 4
    )
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    model = BoringModel()
    trainer = pl.Trainer(accelerator=accelerator, devices=1, max_steps=2, **options)
    trainer.fit(model)
    assert trainer.strategy.root_device == torch.device("cuda", 0)
