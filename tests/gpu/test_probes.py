"""What the preflight and the monitor read of GPUs, against nvidia-smi and NCCL's own log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hpc_train.preflight.collective import CollectiveResult
from hpc_train.preflight.inventory.gpus import load_nvml, read_gpus
from hpc_train.preflight.monitor import sample
from tests.gpu.conftest import ROOT

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nnodes=1"]


def smi(*fields: str) -> list[list[str]]:
    """A row of nvidia-smi a GPU, without units."""
    query = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    text = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]


def test_nvml_reads_what_nvidia_smi_says(needs_gpu, tell):
    nvml, why = load_nvml()
    assert why == "ok"
    gpus = read_gpus(nvml, {})
    rows = smi("index", "uuid", "name", "memory.total", "memory.used", "pci.bus_id")
    assert len(gpus) == len(rows)
    for gpu, (index, uuid, name, total, used, pci) in zip(gpus, rows, strict=True):
        assert (str(gpu.index), gpu.uuid, gpu.model) == (index, uuid, name)
        assert abs((gpu.memory_mib or 0) - int(total)) <= 1
        # nvmlDeviceGetMemoryInfo counts what the driver reserves as used; nvidia-smi does not.
        assert -16 <= (gpu.used_mib or 0) - int(used) <= 1500
        assert gpu.pci is not None
        assert pci.lower().endswith(gpu.pci[-len("00:00.0") :])
    tell(driver=smi("driver_version")[0][0], used=f"{gpus[0].used_mib} MiB")


def test_only_the_gpus_of_cuda_visible_devices_are_read(needs_gpu):
    nvml, _ = load_nvml()
    every = read_gpus(nvml, {})
    last = every[-1]
    assert read_gpus(nvml, {"CUDA_VISIBLE_DEVICES": str(last.index)}) == (last,)
    assert read_gpus(nvml, {"CUDA_VISIBLE_DEVICES": last.uuid}) == (last,)


def test_the_monitor_tells_use_memory_power_and_heat_as_nvidia_smi_does(needs_gpu, tell):
    nvml, _ = load_nvml()
    line = sample(Path("/"), None, nvml=nvml).line
    fields = ("memory.total", "power.draw", "temperature.gpu")
    for told, (total, power, heat) in zip(line["gpus"], smi(*fields), strict=True):
        assert told["memory_total_mib"] == pytest.approx(int(total), abs=1)
        assert told["temperature_c"] == pytest.approx(int(heat), abs=10)
        if re.fullmatch(r"[\d.]+", power):  # some cards do not tell
            assert told["power_w"] == pytest.approx(float(power), abs=150)
    tell(**{key: value for key, value in line["gpus"][0].items() if key != "index"})


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.gpus(2)), "all"])
def test_the_collective_of_the_preflight_and_nccls_log(tmp_path: Path, on_gpu, tell, ranks):
    count = (torch.cuda.device_count() or 2) if ranks == "all" else ranks
    words = [
        "-m",
        "hpc_train.training.collective_step",
        "--out",
        str(tmp_path),
        "--deadline-s",
        "120",
    ]
    env = {**os.environ, "SLURMD_NODENAME": "here"}
    argv = [*TORCHRUN, f"--nproc-per-node={count}", *words]
    options = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    done = subprocess.run(argv, cwd=ROOT, env=env, **options)
    assert done.returncode == 0, done.stderr
    result = CollectiveResult.read(tmp_path / "collective-here.json")
    assert result.ok
    assert result.backend == ("nccl" if on_gpu else "gloo")
    tell(ranks=count, small=f"{result.small_us:.0f} us")
    if not on_gpu:
        return
    logs = list(tmp_path.glob("nccl-*.log"))
    assert len(logs) == count, "each rank's NCCL has left a log"
    assert "NCCL" in logs[0].read_text()
    assert len(result.gemm) == count
    assert all(rate.tflops > 1 for rate in result.gemm)
    assert min(rate.tflops for rate in result.gemm) > 0.8 * max(r.tflops for r in result.gemm)
    tell(gemm=f"{min(rate.tflops for rate in result.gemm):.0f} TFLOP/s")
    if count > 1:
        assert {pair.transport for pair in result.transports} <= {"P2P", "SHM", "NVLS", "NET"}
        tell(busbw=f"{result.busbw_gbps:.0f} Gbit/s", over=result.transports[0].transport)


GLOO_PAIR = """
import os
import torch
from hpc_train.plan.world import World
from hpc_train.training.collective_step import _all_reduce_s
torch.distributed.init_process_group("gloo")
place = "cuda:0" if torch.cuda.is_available() else "cpu"
seconds = _all_reduce_s(torch.ones(2**20, device=place), 5, World.from_env(os.environ))
if os.environ["RANK"] == "0":
    print(f"{seconds * 1000:.2f}")
torch.distributed.destroy_process_group()
"""


def test_two_ranks_of_gloo_share_one_gpu(tmp_path: Path, tell):
    script = tmp_path / "pair.py"
    script.write_text(GLOO_PAIR)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "0"}
    argv = [*TORCHRUN, "--nproc-per-node=2", str(script)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    tell(all_reduce_of_4_MiB=f"{float(done.stdout.split()[-1]):.2f} ms")


def test_the_monitor_costs_little(tmp_path: Path, tell):
    """CPU time over half a minute, at its usual pace of a line every five seconds."""
    file = tmp_path / "node.jsonl"
    argv = [sys.executable, "-m", "hpc_train.preflight.monitor", "--path", str(file)]
    child = subprocess.Popen([*argv, "--interval", "5"], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        before = _cpu_s(child.pid)
        time.sleep(30)
        share = (_cpu_s(child.pid) - before) / 30
    finally:
        child.terminate()
        child.wait()
    assert share < 0.01
    assert json.loads(file.read_text().splitlines()[-1])["time"]
    tell(share_of_a_core=f"{share:.2%}")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
