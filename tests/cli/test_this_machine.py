"""A submission that stays on this machine, where a cluster may have been meant."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train import api
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


@pytest.mark.parametrize("conf", [True, False])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), ""),
        (("--partition", "gpu"), "slurm.partition is not used: "),
        (("--cluster", "local"), "x.x"),
    ],
)
def test_slurms_commands_that_are_not_in_the_path_are_told(
    hpc, without_slurm, monkeypatch, conf, words, told
):
    monkeypatch.setattr("hpc_train.backends.submit.USUAL_CONFIGS", ())
    if conf:
        monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    said = hpc("submit", DIGITS, "--dry-run", "--nodes", "1", "--gpus", "1", *words)
    assert said.code == 0, said
    line = f"note: {told}sbatch is not in PATH, and it trains on this machine"
    assert (line in said.err) == (told != "x.x" and bool(conf or told)), said.err
    assert ("module load slurm" in said.err) == (conf and told != "x.x")


def test_a_partition_of_the_file_is_told_where_there_is_no_sbatch(hpc, without_slurm):
    Path("a.yaml").write_text(Path(DIGITS).read_text().replace("  # partition", "  partition"))
    for more, told in ((), True), (("--cluster", "local"), False):
        said = hpc("submit", "a.yaml", "--dry-run", "--nodes", "1", "--gpus", "1", *more)
        assert ("slurm.partition is not used: sbatch is not in PATH" in said.err) == told, said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--nodes", "2"), ", which stands for the 2 nodes; where `module load slurm` or the like"),
        (("--nodes", "3", "--gpus", "1"), ", which stands for the 3 nodes; where `module load"),
        (("slurm.nodes=2", "--partition", "gpu"), ", which stands for the 2 nodes; where `mod"),
        (("--nodes", "1"), ""),
        (("--nodes", "2", "--cluster", "local"), ""),
    ],
)
def test_several_nodes_that_are_this_machine_are_told(
    hpc, without_slurm, monkeypatch, words: tuple[str, ...], told: str
) -> None:
    """The module that brings sbatch sets SLURM_CONF as well."""
    monkeypatch.setattr("hpc_train.backends.submit.USUAL_CONFIGS", ())
    said = hpc("submit", DIGITS, "--dry-run", "--gpus", "1", *words)
    assert said.code == 0, said
    assert ("trains on this machine" in said.err, told in said.err) == (bool(told), True)


def test_several_nodes_without_a_cluster_are_told_as_this_machine(hpc, taken, monkeypatch):
    monkeypatch.delenv("SLURM_CONF")
    monkeypatch.setattr("hpc_train.backends.submit.USUAL_CONFIGS", ())
    said = hpc("submit", DIGITS, "--dry-run", "--nodes", "2", "--gpus", "1")
    here = "it trains on this machine, which stands for the 2 nodes"
    fix = "export SLURM_CONF=/path/to/slurm.conf, or load the site's slurm module, and submit again"
    assert f"{NO_CLUSTER}: {here}; for the cluster: {fix}\n" in said.err


def test_a_training_that_stays_here_says_it_before_anything_else(hpc, taken, monkeypatch) -> None:
    """It was the last line, below the commands that one types next."""
    monkeypatch.delenv("SLURM_CONF")
    monkeypatch.setattr("hpc_train.backends.submit.USUAL_CONFIGS", ())
    monkeypatch.setattr("hpc_train.backends.start_run.submit_local", lambda *_: "4711")
    told = "hpc_train.cli.submit_command._tell"
    monkeypatch.setattr(told, lambda *_, **__: print("submitted", file=sys.stderr))
    said = hpc("submit", DIGITS, "--nodes", "1", "--gpus", "1")
    assert said.code == 0, said
    first, second = said.err.splitlines()[:2]
    assert first.startswith(f"note: {NO_CLUSTER}")
    assert second == "submitted"


def test_where_slurm_is_asked_or_absent_nothing_is_noted(hpc, taken, without_slurm):
    assert "sbatch is here" not in hpc("submit", DIGITS, "--dry-run").err


NO_JOB = "note: this is no job of Slurm's, and trains on this machine; for the cluster: hpc-train"


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ((), ""),
        (("--nodes", "3", "--gpus", "1", "name=a b"), " --nodes 3 --gpus 1 'name=a b'"),
        (("--nodes", "1"), " --nodes 1"),
    ],
)
def test_a_training_on_a_login_node_says_how_the_cluster_gets_it(
    hpc, taken, make_run, monkeypatch, words, again
):
    run = make_run(1, ended=True)
    taken.has("scontrol", "exit 0")
    monkeypatch.setattr(api, "run_here", lambda *_: (api.Run(run), 0))
    said = hpc("run", DIGITS, *words)
    assert said.err.count(f"{NO_JOB} submit {DIGITS}{again}\n") == 1, said.err


def test_where_no_cluster_is_or_in_a_job_of_it_nothing_is_said_of_one(
    hpc, taken, make_run, monkeypatch
):
    run = make_run(1, ended=True)
    monkeypatch.setattr(api, "run_here", lambda *_: (api.Run(run), 0))
    assert "no job of Slurm's" not in hpc("run", DIGITS).err  # scontrol ping says no
    taken.has("scontrol", "exit 0")
    with monkeypatch.context() as inside:
        inside.setenv("SLURM_JOB_ID", "7")
        assert "no job of Slurm's" not in hpc("run", DIGITS).err
    monkeypatch.setenv("PATH", "/nowhere")
    assert "no job of Slurm's" not in hpc("run", DIGITS).err


def test_doctor_warns_where_slurms_commands_find_no_cluster(taken, monkeypatch) -> None:
    """It passed, and a submission trained on the login node."""
    from hpc_train.doctor.examine_slurm import check_slurm

    for program in ("sbatch", "scontrol"):
        taken.has(program, "echo no cluster >&2; exit 1")
    monkeypatch.delenv("SLURM_CONF")
    monkeypatch.setattr("hpc_train.backends.submit.USUAL_CONFIGS", ())
    (finding,) = check_slurm({})
    assert finding.level == "warn"
    assert finding.fix.startswith("for the cluster: export SLURM_CONF=/path/to/slurm.conf")


def test_a_rendered_script_says_that_it_keeps_the_values_of_now(hpc, tmp_path: Path) -> None:
    said = hpc("render", DIGITS, "-o", str(tmp_path / "job.sbatch"))
    assert f"it keeps the values that {DIGITS} has now: render it again after a change" in said.err
