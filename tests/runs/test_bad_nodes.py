"""Bad nodes are remembered per cluster, for a while, and forgotten when somebody says so."""

from __future__ import annotations

from pathlib import Path

from hpc_train.runs.bad_nodes import BadNode, clusters, forget, read_bad_nodes, remember


def test_a_node_is_remembered_for_its_cluster_and_its_time(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    assert remember(environ, "big", [BadNode("n1", "slow", "run", 100.0, 200.0)]) == ""
    assert [bad.node for bad in read_bad_nodes(environ, "big", 150.0)] == ["n1"]
    assert read_bad_nodes(environ, "big", 201.0) == []
    assert read_bad_nodes(environ, "small", 150.0) == []
    assert clusters(environ) == ["big"]


def test_the_newest_verdict_on_a_node_counts_and_can_be_taken_back(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    remember(environ, "c", [BadNode("n1", "old", "a", 1.0, 50.0)])
    remember(
        environ, "c", [BadNode("n1", "new", "b", 2.0, 90.0), BadNode("n2", "x", "b", 2.0, 90.0)]
    )
    assert [bad.reason for bad in read_bad_nodes(environ, "c", 10.0)] == ["new", "x"]
    forget(environ, "c", ["n1"], 10.0)
    assert [bad.node for bad in read_bad_nodes(environ, "c", 10.0)] == ["n2"]


def test_a_torn_line_costs_only_itself_and_a_full_home_is_only_told(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    remember(environ, "c", [BadNode("n1", "x", "a", 1.0, 50.0)])
    with (tmp_path / "hpc-train" / "nodes" / "c.jsonl").open("a") as stream:
        stream.write('{"node": "n2", "rea')
    assert [bad.node for bad in read_bad_nodes(environ, "c", 10.0)] == ["n1"]
    (tmp_path / "file").write_text("")
    trouble = remember({"XDG_STATE_HOME": str(tmp_path / "file")}, "c", [])
    assert "file" in trouble
