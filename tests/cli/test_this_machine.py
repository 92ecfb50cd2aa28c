"""A submission that stays on this machine, where a cluster may have been meant."""

from __future__ import annotations

import pytest

from tests.cli.conftest import DIGITS

NO_CLUSTER = "sbatch is here and no cluster behind it (SLURM_CONF is not set)"


@pytest.mark.parametrize(
    ("words", "told", "untold"),
    [
        ((), [NO_CLUSTER], "not used"),
        (("--partition", "gpu"), [NO_CLUSTER, "slurm.partition is not used"], "x.x"),
        (("--cluster", "local"), [], "note: sbatch is here"),
        (
            ("--cluster", "local", "--account", "a", "slurm.qos=q"),
            ["slurm.account, slurm.qos are not used: it trains on this machine"],
            NO_CLUSTER,
        ),
    ],
)
def test_slurms_commands_without_a_cluster_are_told(hpc, taken, monkeypatch, words, told, untold):
    monkeypatch.delenv("SLURM_CONF")
    monkeypatch.setattr("hpc_train.backends.submit.USUAL_CONFIGS", ())
    said = hpc("submit", DIGITS, "--dry-run", "--nodes", "1", "--gpus", "1", *words)
    assert said.code == 0, said
    assert all(text in said.err for text in told), said.err
    assert untold not in said.err


def test_where_slurm_is_asked_or_absent_nothing_is_noted(hpc, taken, without_slurm):
    assert "sbatch is here" not in hpc("submit", DIGITS, "--dry-run").err
