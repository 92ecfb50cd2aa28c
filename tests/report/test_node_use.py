"""The nodes of a run: who differs, what is read of files of any size."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.report import node_use
from hpc_train.report.node_use import late_nodes, read_nodes
from hpc_train.runs.ranks import Heartbeat
from tests.report.made import gpu_line, make_run


def outliers(folder: Path, uses: list[float]) -> dict[str, tuple[str, ...]]:
    made = make_run(folder)
    for number, use in enumerate(uses):
        made.watch(f"n{number}", [gpu_line(5 * n, use) for n in range(20)])
    return {node.node: node.outliers for node in read_nodes(made.run) if node.outliers}


@pytest.mark.parametrize(
    ("uses", "odd"),
    [
        ([90, 91, 60, 90, 92], {"n2"}),
        ([90, 90, 90, 90], set()),
        ([90, 88, 92, 85], set()),  # within what is usual
        ([90, 60], set()),  # of two nobody can tell
        ([60], set()),
        ([30, 90, 90, 90, 90, 95], {"n0"}),
    ],
)
def test_the_node_that_is_unlike_the_others_is_marked(
    tmp_path: Path, uses: list[float], odd: set[str]
) -> None:
    found = outliers(tmp_path, uses)
    assert set(found) == odd
    assert all(names == ("gpu_percent",) for names in found.values())


def test_means_and_peaks_are_of_the_lines_of_a_node(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    lines = [gpu_line(5 * n, use) for n, use in enumerate((10.0, 20.0, 60.0))]
    lines[1]["memory_used_mib"] = 102_400
    made.watch("n1", lines)
    (node,) = read_nodes(made.run)
    assert (node.node, node.samples, node.cpus) == ("n1", 3, 64)
    assert node.values["gpu_percent"] == 30
    assert node.values["memory_gib"] == 100
    assert node.values["power_w"] == 2000
    assert node.values["network_mib_s"] == 12
    assert node.gpu_memory_gib == 80


@pytest.mark.slow
def test_a_long_file_is_read_at_even_distances_and_says_the_same(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    count = 20_000
    made.watch("n1", [gpu_line(5 * n, 100 * n / count) for n in range(count)])
    (node,) = read_nodes(made.run)
    assert node.samples == node_use.SAMPLES
    assert node.values["gpu_percent"] == pytest.approx(50, abs=1)


def test_torn_lines_words_and_nodes_that_tell_nothing_are_passed_over(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    made.watch("n1", [])
    made.watch("n2", [gpu_line(0), {"time": 1, "gpus": "none", "cpu_percent": "x"}])
    with (made.run.monitor / "n2.jsonl").open("ab") as stream:
        stream.write(b'[1]\n{"gpus": [3, "x"]}\n{"cpu_perc\xff')
    (made.run.monitor / "n3.jsonl").mkdir()
    (node,) = read_nodes(made.run)
    assert (node.node, node.samples, node.values["cpu_percent"]) == ("n2", 2, 25)


def beat(rank: int, own_s: float | None, *, phase: str = "train") -> Heartbeat:
    """Of two ranks a node, whose steps take 0.4 s."""
    told = {"time": 1.0, "moved": 1.0, "phase": phase, "step": 90, "step_time_s": 0.4}
    return Heartbeat(rank=rank, node=f"n{rank // 2}", pid=1, own_s=own_s, **told)


@pytest.mark.parametrize(
    ("own_s", "late"),
    [
        ([0.2, 0.2, 0.2, 0.3, 0.2, 0.2], ["n1"]),  # one rank is enough
        ([0.3, 0.3, 0.2, 0.2, 0.2, 0.2], ["n0"]),
        ([0.2, 0.2, 0.3, 0.3], ["n1"]),  # of two nodes, the other one waits
        ([0.3, 0.2, 0.2, 0.3, 0.2, 0.2, 0.2, 0.2], ["n0", "n1"]),
        ([0.2, 0.2, 0.25, 0.25, 0.2, 0.2], []),  # an eighth of a step
        ([0.1, 0.1, 0.2, 0.2, 0.2, 0.2], []),  # one that is faster holds nobody up
        ([0.2, 0.3], []),
        ([0.2, 0.2, 0.3, None], []),
        ([], []),
    ],
)
def test_a_node_is_late_whose_ranks_let_the_others_wait(
    own_s: list[float | None], late: list[str]
) -> None:
    beats = [beat(rank, it) for rank, it in enumerate(own_s)]
    assert sorted(late_nodes(beats)) == late
    assert late_nodes([*beats, beat(len(beats), 0.2, phase="save")]) == {}
