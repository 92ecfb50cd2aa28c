# ruff: noqa: N802 (made functions bear the names of NVML)
from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hpc_train.preflight.monitor import run, sample

from .made_sysfs import ib_node


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def root(tmp_path):
    made = ib_node(1).write(tmp_path / "n")
    write(made, "proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n")
    write(made, "proc/loadavg", "1.50 1.0 0.5 1/100 7")
    write(made, "proc/diskstats", "8 0 sda 1 0 0 0 1 0 0 0 0 0 0\n8 1 sda1 1 0 0 0 1 0 0 0 0 0 0\n")
    (made / "sys/block/sda").mkdir(parents=True)
    return made


def test_rates_are_over_the_time_since_the_sample_before(root):
    first = sample(root, None, lambda: 100.0, monotonic=lambda: 10.0)
    assert "interfaces" not in first.line
    assert first.line["load"] == 1.5
    assert first.line["cpus"] == 1
    assert first.line["memory_used_mib"] == (263734272 - 200000000) // 1024
    write(root, "proc/stat", "cpu  150 0 100 850 0 0 0 0 0 0\n")
    write(root, "sys/class/net/eth0/statistics/rx_bytes", str(10 << 20))
    write(root, "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", str(5 << 18))
    write(root, "sys/class/infiniband/mlx5_1/ports/1/counters/symbol_error", "7")
    write(
        root, "proc/diskstats", "8 0 sda 1 0 20480 0 1 0 4096 0 0 0 0\n8 1 sda1 1 0 9 0 1 0 9 0\n"
    )
    line = sample(root, first, lambda: 105.0, monotonic=lambda: 15.0).line
    assert line["time"] == 105.0
    assert line["cpu_percent"] == 50.0
    assert line["interfaces"]["eth0"]["rx_mib_s"] == 2.0
    assert line["links"]["mlx5_0:1"]["tx_mib_s"] == 1.0
    assert line["links"]["mlx5_1:1"]["errors"] == 7
    assert line["disk_read_mib_s"] == 2.0
    assert line["disk_write_mib_s"] == 0.4
    assert "lo" not in line["interfaces"]


def test_a_counter_that_was_reset_has_no_rate(root):
    write(root, "sys/class/net/eth0/statistics/rx_bytes", "1000")
    first = sample(root, None, monotonic=lambda: 1.0)
    write(root, "sys/class/net/eth0/statistics/rx_bytes", "10")
    line = sample(root, first, monotonic=lambda: 2.0).line
    assert "rx_mib_s" not in line["interfaces"]["eth0"]


class FakeNvml:
    class NVMLError(Exception):
        pass

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1

    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUtilizationRates(self, gpu):
        return SimpleNamespace(gpu=97)

    def nvmlDeviceGetMemoryInfo(self, gpu):
        return SimpleNamespace(used=3 << 30, total=80 << 30)

    def nvmlDeviceGetPowerUsage(self, gpu):
        return 698_700

    def nvmlDeviceGetTemperature(self, gpu, kind):
        return 71

    def nvmlDeviceGetClockInfo(self, gpu, kind):
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu):
        return 0x4 | 0x40 | 0x1


def test_gpus_tell_use_power_temperature_memory_and_why_they_are_slow(root):
    line = sample(root, None, nvml=FakeNvml()).line
    assert line["gpus"] == [
        {
            "index": 0,
            "use_percent": 97,
            "memory_mib": 3072,
            "memory_total_mib": 81920,
            "power_w": 699,
            "temperature_c": 71,
            "throttle": ["sw_power_cap", "hw_thermal"],
        }
    ]


def test_a_node_that_has_nothing_gives_a_line_with_the_time_alone(tmp_path):
    assert sample(tmp_path, None, lambda: 5.0).line == {"time": 5.0}


def lines_of(path: Path, count: int) -> None:
    """Wait until there are so many."""
    end = time.monotonic() + 60
    while not path.exists() or path.read_text().count("\n") < count:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_loop_appends_one_line_an_interval_and_survives_a_folder_that_goes_away(tmp_path):
    path = tmp_path / "monitor" / "node1.jsonl"
    path.parent.mkdir()
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(path, 0.05, stop))
    thread.start()
    try:
        lines_of(path, 2)
        path.parent.rename(tmp_path / "away")
        time.sleep(0.2)
        (tmp_path / "away").rename(path.parent)
        before = len(path.read_text().splitlines())
        lines_of(path, before + 1)
    finally:
        stop.set()
        thread.join()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert "cpu_percent" in lines[-1]
    assert lines[-1]["disk_free_mib"] > 0


def test_the_command_ends_at_sigterm_with_its_lines_written(tmp_path):
    path = tmp_path / "node.jsonl"
    command = ["-m", "hpc_train.preflight.monitor", "--path", str(path), "--interval", "0.1"]
    process = subprocess.Popen([sys.executable, *command])
    try:
        lines_of(path, 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_a_sample_of_a_large_node_costs_under_half_a_percent_of_a_cpu(tmp_path):
    made = ib_node(1, hcas=10).write(tmp_path / "n")
    write(made, "proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n" + "intr " + "0 " * 20_000)
    previous = sample(made, None, nvml=FakeNvml())
    count = 50
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(count):
        previous = sample(made, previous, nvml=FakeNvml())
        json.dumps(previous.line)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count
    assert cpu_s < 0.005 * 5.0, f"{cpu_s * 1e3:.1f} ms a sample every 5 s"
