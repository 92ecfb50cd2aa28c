"""Random nights: a run meets twelve faults of all kinds, and ends as if there had been none."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.cluster.faults import change_partition
from tests.faults.nights import FAULTS, begin_attempt, wait_next
from tests.faults.running import report_adds_up, submit
from tests.ledger import compare, read_ledger

pytestmark = [pytest.mark.slurm, pytest.mark.soak, pytest.mark.timeout(3600)]

STEPS = 400
# An MLP with dropout: from three ranks on its last bit tells in which order gradients were added.
WORK = ("model.init_args.ledger=true", "model.init_args.hidden=16")
MISHAPS = 12


@pytest.mark.parametrize(
    ("seed", "nodes", "ranks", "mode", "accounting"),
    [
        (1, 3, 1, "REQUEUE", True),
        (2, 4, 1, "REQUEUE", False),
        (3, 3, 1, "CANCEL", False),
        (4, 4, 1, "CANCEL", True),
        (5, 2, 2, "REQUEUE", True),
        (6, 1, 3, "CANCEL", True),
    ],
)
def test_a_night_of_mixed_faults_ends_bit_equal(
    seed: int,
    nodes: int,
    ranks: int,
    mode: str,
    accounting: bool,
    make_cluster: Callable[..., Cluster],
    tmp_path: Path,
) -> None:
    cluster = make_cluster(nodes=f"node[1-{nodes + 1}]", accounting=accounting)
    change_partition(cluster, PreemptMode=mode)
    shape = (f"slurm.nodes={nodes}", f"slurm.gpus_per_node={ranks}", "global_batch_size=12")
    work = (*shape, *WORK, f"trainer.max_steps={STEPS}")
    reference = submit(cluster, tmp_path, *work, "name=reference", "model.init_args.step_s=0")
    assert reference.wait_end(180) == "completed"
    cluster.wait(reference.job_id, "COMPLETED")

    training = submit(cluster, tmp_path, *work, "checkpoint.every_n_steps=5", "watchdog.floor_s=6")
    rng = random.Random(seed)
    # The ranks of one node need no cable: they train on.
    kinds = [name for name in FAULTS if nodes > 1 or name != "cable cut"]
    deck = rng.sample(kinds, len(kinds)) + rng.choices(kinds, k=MISHAPS - len(kinds))
    met: dict[int, str] = {}
    for name in deck:
        number = begin_attempt(training, rng)
        print(f"attempt {number}: {name}", flush=True)
        FAULTS[name].do(training, rng)
        wait_next(training, number)
        met[number] = name
    assert training.wait_end(180) == "completed", training.story()

    for attempt in training.status()["attempts"]:
        name = met.get(attempt["attempt"])
        if name:
            assert attempt["outcome"] in FAULTS[name].outcomes, (name, attempt)
    report_adds_up(training, [it["outcome"] for it in training.status()["attempts"]])
    result = compare(
        read_ledger(reference.run.path / "ledger"), read_ledger(training.run.path / "ledger")
    )
    assert result.problems == []
    assert result.steps == STEPS
