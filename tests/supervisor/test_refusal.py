"""What a preflight's no says of the nodes: whether others could change it, and who is blamed."""

from __future__ import annotations

import pytest

from hpc_train.plan.states import Outcome
from hpc_train.preflight.checks.findings import ALL_NODES, Finding, Level
from hpc_train.preflight.verdict import Verdict
from hpc_train.supervisor.refusal import judge_refusal


def refusal(*said: tuple[str, str, Level]) -> Verdict:
    findings = tuple(Finding(node, "part", check, level, "words") for node, check, level in said)
    named = {
        level: tuple(item.node for item in findings if item.level == level and item.node != "*")
        for level in ("fail", "warn")
    }
    return Verdict(
        verdict="no-go",
        findings=tuple(sorted(findings, key=lambda item: item.level != "fail")),
        bad_nodes=named["fail"],
        degraded_nodes=named["warn"],
    )


TCP: tuple[str, str, Level] = (ALL_NODES, "transport", "warn")


@pytest.mark.parametrize(
    ("said", "refused", "blamed"),
    [
        ([TCP], "site", ()),
        ([TCP, ("n2", "bandwidth", "warn")], "site", ()),  # without n2 it is TCP as well
        ([TCP, ("n2", "latency", "warn"), ("n3", "loss", "warn")], "site", ()),
        ([("n2", "bandwidth", "warn")], "nodes", ("n2",)),
        ([TCP, ("n3", "hca_set", "warn")], "nodes", ("n3",)),  # it may be why all use TCP
        ([TCP, ("n3", "hca_set", "warn"), ("n2", "loss", "warn")], "nodes", ("n3", "n2")),
        ([TCP, ("n2", "bandwidth", "fail")], "nodes", ("n2",)),
        ([(ALL_NODES, "bandwidth", "fail")], "untold", ()),
        ([], "untold", ()),
    ],
)
def test_other_nodes_are_tried_only_where_they_could_change_the_answer(
    said: list[tuple[str, str, Level]], refused: str, blamed: tuple[str, ...]
) -> None:
    ending = judge_refusal(refusal(*said))
    assert (ending.refused, ending.blamed) == (refused, blamed)
    assert (ending.outcome is Outcome.NODE_FAILURE) == bool(blamed)
