"""The file for the node exporter: Prometheus's own parser, and promtool where that is there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hpc_train.preflight.monitor import run
from hpc_train.preflight.prometheus_text import PrometheusFile, exposition
from tests.report.made import gpu_line

LABELS = {"name": "digits", "run": "20261122-1"}


def read(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Family -> labels -> value; the parser refuses what is none, promtool bad names."""
    if promtool := shutil.which("promtool"):
        check = [promtool, "check", "metrics"]
        checked = subprocess.run(check, input=text, capture_output=True, text=True, timeout=60)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    return {
        family.name: {tuple(sorted(s.labels.items())): s.value for s in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_a_sample_is_told_in_base_units_each_metric_once() -> None:
    line = {**gpu_line(5, 40.0), "links": {"mlx5_0:1": {"tx_mib_s": 2.0, "errors": 3}}}
    found = read(exposition(line, LABELS))
    node = tuple(sorted(LABELS.items()))
    assert found["hpc_train_cpu_ratio"] == {node: 0.25}
    assert found["hpc_train_memory_used_bytes"] == {node: 20_480 * 2**20}
    assert found["hpc_train_sample_time_seconds"] == {node: line["time"]}
    gpus = found["hpc_train_gpu_use_ratio"]
    assert sorted(dict(labels)["gpu"] for labels in gpus) == ["0", "1", "2", "3"]
    assert set(gpus.values()) == {0.4}
    ports = found["hpc_train_network_transmit_bytes_per_second"]
    assert {dict(labels)["port"]: value for labels, value in ports.items()} == {
        "eth0": 2 * 2**20,
        "mlx5_0:1": 2 * 2**20,
    }
    text = exposition(line, LABELS)
    assert text.count("# TYPE ") == len(set(text.split("# TYPE ")[1:])) == len(found)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a,b={}", "ü", "<script>", ""])
def test_labels_of_any_letters_come_back_as_they_were(name: str) -> None:
    found = read(exposition({"load": 1.5}, {"name": name}))
    assert found == {"hpc_train_load1": {(("name", name),): 1.5}}


@pytest.mark.parametrize("line", [{}, {"time": None, "gpus": [], "load": "x"}])
def test_a_sample_that_tells_nothing_is_an_empty_file(line: dict[str, object]) -> None:
    assert exposition(line, LABELS) == ""


def started(tmp_path: Path, folder: Path) -> subprocess.Popen[str]:
    path = tmp_path / "runs" / "digits" / "20261122-1" / "monitor" / "n1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    module = ["-m", "hpc_train.preflight.monitor", "--path", str(path), "--interval", "0.1"]
    command = [sys.executable, *module, "--prometheus", str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, umask=0o077)


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return path.read_text()


def test_the_monitor_keeps_the_file_while_it_runs_and_takes_it_away(tmp_path: Path) -> None:
    folder = tmp_path / "collector"
    folder.mkdir()
    left, others = folder / "hpc-train-old.prom", folder / "other.prom"
    for file in (left, others):
        file.write_text("")
        os.utime(file, (1e9, 1e9))
    fresh = folder / "hpc-train-of-another-run.prom"
    fresh.write_text("")
    process = started(tmp_path, folder)
    file = folder / "hpc-train-20261122-1.prom"
    found = read(wait_for(file))
    assert dict(next(iter(found["hpc_train_load1"]))) == {"name": "digits", "run": "20261122-1"}
    assert file.stat().st_mode & 0o777 == 0o644  # the node exporter is another user
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[1] == ""
    assert sorted(path.name for path in folder.iterdir()) == [fresh.name, others.name]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    file = PrometheusFile(tmp_path / "x.prom", LABELS)
    line = gpu_line(5)
    whole = exposition(line, LABELS)
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            file.write(line)

    writer = threading.Thread(target=write)
    writer.start()
    wait_for(file.path)
    try:
        assert {file.path.read_text() for _ in range(500)} == {whole}
    finally:
        over.set()
        writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["x.prom"]


@pytest.mark.parametrize("folder", ["absent", "a-file"])
def test_a_folder_that_cannot_be_written_costs_one_line_and_no_sample(
    tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-file").write_text("")
    file = PrometheusFile.of_run(tmp_path / folder, "r", "n")
    stop = threading.Event()
    samples = tmp_path / "n1.jsonl"
    loop = threading.Thread(target=lambda: run(samples, 0.02, stop, prometheus=file))
    loop.start()
    deadline = time.monotonic() + 60
    while not samples.exists() or samples.read_text().count("\n") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    stop.set()
    loop.join()
    said = capsys.readouterr().err
    assert said.count("preflight.prometheus_dir") == 1
