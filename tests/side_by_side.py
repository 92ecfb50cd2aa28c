"""Several pytest workers at once: what stays together on one of them, and what starts first.

Most tests wait for something, so more workers than cores keep the cores busy. Each worker raises
the clusters that it needs, see `tests/cluster/registry.py`.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

__all__ = ["SideBySide", "in_order"]

# What takes long, the longest first, so that no worker is left alone with it at the end. A folder
# or a file means each of its tests by itself; the others stay together by file and come after.
FIRST = (
    "tests/training/test_private_",  # seconds, and what an upgrade of a library breaks first
    "tests/e2e/test_slurm.py::test_twelve_ranks",
    "tests/faults/test_nodes.py",
    "tests/faults/test_exactly_once.py",
    "tests/preflight_on_slurm/test_many_nodes.py",
    "tests/training/test_buckets.py::test_interruptions",
    "tests/faults/",
    "tests/e2e/",
    "tests/ssh/",
    "tests/slurm/test_answers.py::test_fifty",
    "tests/preflight_on_slurm/",
    "tests/training/test_exactly_once.py",
    "tests/training/test_session.py",
    "tests/training/test_faults_of_saves.py",
    "tests/training/test_rank.py",
    "tests/training/test_rank_ends.py",
    "tests/preflight/test_probe.py",
    "tests/preflight/test_trials.py",
    "tests/test_mutants.py",
    "tests/cluster/",
    "tests/slurm/",
    "tests/plan/test_on_slurm.py",
    "tests/training/",
)
# Files whose tests share a cluster of their own, or a training.
TOGETHER = (
    "tests/training/test_evaluation.py",
    "tests/faults/test_nodes.py",
    "tests/preflight_on_slurm/",
    "tests/cluster/",
)


def in_order(nodeid: str) -> int:
    """Sorts tests by when they shall start; the order of equal ones stays."""
    return next((i for i, prefix in enumerate(FIRST) if nodeid.startswith(prefix)), len(FIRST))


def _work_unit(nodeid: str) -> str:
    if nodeid.startswith(FIRST) and not nodeid.startswith(TOGETHER):
        return nodeid
    return nodeid.partition("::")[0]


class SideBySide(LoadScopeScheduling):
    """Hands the pieces of work out in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return _work_unit(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        # A worker starts a test when it knows the one that follows; more would wait in vain
        # behind a long one.
        if (
            node.shutting_down
            or not self.workqueue
            or self._pending_of(self.assigned_work[node]) < 2
        ):
            super()._reschedule(node)
