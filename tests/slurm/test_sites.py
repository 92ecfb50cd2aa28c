"""Sites that are set up otherwise: each trains one small run on two nodes to its end."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.runs.events import read_events
from hpc_train.runs.history import attempts_in
from tests.cluster.cluster import Cluster
from tests.e2e.conftest import DIGITS, Shell

pytestmark = pytest.mark.slurm
WORDS = ["--nodes", "2", "--gpus", "1", str(DIGITS), "trainer.max_epochs=2"]
LUA = """
function slurm_job_submit(job, partitions, uid)
  {act}
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
"""
SITES: dict[str, dict[str, Any]] = {
    # Slurm itself starts no step with GPUs there: `srun hostname` in a job with --gres=gpu:1 is
    # refused by 22.05 and 24.11 ("Invalid generic resource (gres) specification").
    "select/linear": {"select_type": "linear", "gpus_per_node": 0},
    "no slurmdbd": {"accounting": False},
    "MaxArraySize=4": {"more": ("MaxArraySize=4",)},
    "use_interactive_step": {"more": ("LaunchParameters=use_interactive_step",)},
    "two names a node": {"host_prefix": "ib-"},
    "a plugin changes the partition": {"submit_lua": LUA.format(act='job.partition = "urgent"')},
}


def hpc(cluster: Cluster, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    shell = Shell(folder, {**cluster.env(), "XDG_STATE_HOME": str(folder / "state")})
    return shell.hpc(*words, code=None, timeout_s=300)


@pytest.mark.parametrize("site", SITES)
def test_a_run_is_completed_at_a_site_with(
    make_cluster: Callable[..., Cluster], tmp_path: Path, site: str
) -> None:
    cluster = make_cluster(nodes="node[1-2]", **SITES[site])
    without_gpus = ["trainer.accelerator=cpu"] if site == "select/linear" else []
    done = hpc(cluster, tmp_path, "submit", *WORDS, *without_gpus, "--wait", "--json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert status["state"] == "completed"
    assert status["attempts"][0]["nodes"] == ["node1", "node2"]
    if site == "a plugin changes the partition":
        assert cluster.job(status["job_id"])["Partition"] == "urgent"


def test_a_run_is_completed_where_the_login_nodes_tmp_is_its_own(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """TMPDIR comes along with the job, and names a folder that no node has."""
    own = tmp_path / "login"
    own.mkdir()
    alone = 'mount -t tmpfs tmpfs "$0" && mkdir -p "$0/a/b" && TMPDIR="$0/a/b" exec "$@"'
    hpc_train = [sys.executable, "-m", "hpc_train.cli"]
    shell = Shell(tmp_path, {**slurm_cluster.env(), "XDG_STATE_HOME": str(tmp_path / "state")})
    done = shell.run(
        *("unshare", "--mount", "sh", "-c", alone, own, *hpc_train),
        *("submit", *WORDS, "--wait", "--json"),
        code=None,
        timeout_s=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "completed"
    assert not list(own.iterdir()), "seen on the login node alone"


def test_a_shell_that_salloc_starts_as_a_step_trains_on_all_nodes(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    options = (
        'InteractiveStepOptions="--interactive --preserve-env /bin/bash"'  # without a terminal
    )
    step = ("LaunchParameters=use_interactive_step", options)
    cluster = make_cluster(nodes="node[1-2]", more=step)
    train = shlex.join([sys.executable, "-m", "hpc_train.cli", "run", *WORDS])
    typed = f"cd {tmp_path}\nexport XDG_STATE_HOME=$PWD/state\necho in $SLURM_STEP_ID,\n{train}\n"
    salloc = ["salloc", "--nodes=2", "--ntasks-per-node=1", "--gres=gpu:1"]
    done = cluster.command(salloc, stdin=typed, timeout_s=200)
    assert "in ," not in done.stdout, "a step"
    (events,) = tmp_path.glob("runs/*/2*/events.jsonl")
    (attempt,) = attempts_in(read_events(events))
    assert (attempt.outcome, attempt.nodes) == ("completed", ("node1", "node2")), done.stdout


def test_a_sweep_that_is_longer_than_the_sites_arrays_is_refused_with_the_limit(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(nodes="node[1-2]", **SITES["MaxArraySize=4"])
    words = ["submit", *WORDS, "--sweep", "seed=1,2,3,4,5"]
    done = hpc(cluster, tmp_path, *words)
    assert done.returncode not in (0, 1), done
    assert "MaxArraySize" in done.stderr
    assert "4" in done.stderr
    assert not list(tmp_path.glob("runs/*/*")), "nothing was made"


def test_a_plugins_refusal_is_told_in_its_own_words(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    words = "ask for a project first: --account=NAME"
    act = f'slurm.log_user("{words}") if true then return slurm.ERROR end'
    cluster = make_cluster(nodes="node[1-2]", submit_lua=LUA.format(act=act))
    done = hpc(cluster, tmp_path, "submit", *WORDS)
    assert done.returncode == 4, done
    assert words in done.stderr
    assert "Traceback" not in done.stderr
