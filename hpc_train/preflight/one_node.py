"""Of ranks on one node without GPUs: whether the interface that gloo is told to take is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from hpc_train.preflight.choose.user_env import GLOO, gloo_on_one_node
from hpc_train.preflight.inventory.interfaces import read_interfaces
from hpc_train.preflight.inventory.sysfs import Reader
from hpc_train.preflight.options import Policy
from hpc_train.preflight.verdict import Skipped, Verdict, skipped_verdict, with_findings

_PLAIN = "one node without GPUs: nothing to check"


def verdict_of_one(
    nodes: Iterable[str], environ: Mapping[str, str], *, is_looked_at: bool, root: str = "/"
) -> Verdict:
    """A go that says that nothing was checked, or a no where the user's variable can't work.

    Args:
        nodes: Of this one machine, which may stand for several.
        environ: Of the ranks.
        is_looked_at: Whether the ranks use gloo, and this process is on their node.
        root: Of /sys and /proc.
    """
    verdict = skipped_verdict(tuple(nodes), _PLAIN)
    value = environ.get(GLOO) if is_looked_at else ""
    findings = list(gloo_on_one_node(read_interfaces(Reader(Path(root))), value)) if value else []
    if not findings:
        return verdict
    rest = Skipped("everything else", _PLAIN)
    return with_findings(replace(verdict, skipped=(rest,)), findings, Policy())
