"""What is asked of Slurm is done once, also where its answer never arrives."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from hpc_train.errors import SlurmError
from hpc_train.plan.states import Action
from hpc_train.runs.bad_nodes import BadNode, remember
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.slurm.command import run
from hpc_train.slurm.control import is_answer_lost
from hpc_train.slurm.partitions import check_partition
from hpc_train.slurm.refusals import refusal_error
from tests.cluster import Cluster
from tests.faults.running import hpc_train, until

ROOT = Path(__file__).parents[2]
ALL_JOBS = ["squeue", "--noheader", "--states=all", "--format=%A"]

# Where `$1 $2` is asked for the first time, the program is killed as Slurm's SIGKILL would do it.
KILLED = """#!/bin/sh
case "$*" in
  *{asked}*) if mkdir {mark} 2>/dev/null; then {first}kill -KILL $$; fi ;;
esac
exec {program} "$@"
"""


def own_program(folder: Path, name: str, asked: str, *, heard: bool) -> str:
    """A folder for the PATH with a Slurm program that is killed after, or before, it was heard."""
    program = f"/usr/bin/{name}"
    first = f'{program} "$@" >/dev/null 2>&1; ' if heard else ""
    mark = shlex.quote(str(folder / "killed"))
    file = folder / "bin" / name
    file.parent.mkdir()
    file.write_text(KILLED.format(asked=asked, mark=mark, first=first, program=program))
    file.chmod(0o755)
    return str(file.parent)


def batch(run_dir: Path, action: Action, *, restarts: int, path: str = "") -> str:
    """A job that asks to go on `restarts` times, and ends well when it has."""
    words = [sys.executable, "-m", "tests.slurm.carry_on", str(run_dir), action.value]
    prefix = f"PATH={shlex.quote(path)}:$PATH " if path else ""
    return (
        "#!/bin/bash\ntrap : TERM\n"
        f"cd {shlex.quote(str(ROOT))}\n"
        f'[ "${{SLURM_RESTART_COUNT:-0}}" -ge {restarts} ] || {prefix}{shlex.join(words)}\n'
    )


def jobs(cluster: Cluster) -> list[str]:
    return cluster.command(ALL_JOBS).stdout.split()


def ended_well(cluster: Cluster, job: str, timeout_s: float = 400) -> None:
    until(lambda: cluster.state(job) == "COMPLETED", f"job {job} to complete", timeout_s)


@pytest.mark.slurm
def test_fifty_requeues_leave_one_job_for_each_run(slurm_cluster: Cluster, tmp_path: Path) -> None:
    before = set(jobs(slurm_cluster))
    runs = [RunDir(tmp_path / "runs" / "tiny" / str(number)) for number in range(10)]
    started = []
    for run_dir in runs:
        run_dir.path.mkdir(parents=True)
        run_dir.script.write_text("#!/bin/sh\nsleep 1\n")  # of a second job, were there one
        script = batch(run_dir.path, Action.REQUEUE, restarts=5)
        started.append(slurm_cluster.sbatch(["--ntasks=1"], script))
    for job in started:
        ended_well(slurm_cluster, job)
    assert set(jobs(slurm_cluster)) - before == set(started)
    assert {slurm_cluster.job(job)["Restarts"] for job in started} == {"5"}
    for run_dir in runs:
        notes = [e.get("text") for e in read_events(run_dir.events) if e.kind is EventKind.NOTE]
        assert notes == []


@pytest.mark.slurm
@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize(
    ("action", "program", "asked"),
    [(Action.REQUEUE, "scontrol", "requeue"), (Action.RESUBMIT, "sbatch", "--parsable")],
)
def test_a_lost_answer_gives_neither_two_jobs_nor_none(
    action: Action, program: str, asked: str, heard: bool, slurm_cluster: Cluster, tmp_path: Path
) -> None:
    before = set(jobs(slurm_cluster))
    run_dir = RunDir(tmp_path / "a run" / "one")
    run_dir.path.mkdir(parents=True)
    run_dir.script.write_text(f"#!/bin/sh\n#SBATCH --output={tmp_path}/fresh.out\nsleep 5\n")
    path = own_program(tmp_path, program, asked, heard=heard)
    job = slurm_cluster.sbatch([], batch(run_dir.path, action, restarts=1, path=path))
    kinds = [EventKind.WENT_ON]
    (went_on,) = until(
        lambda: [e for e in read_events(run_dir.events) if e.kind in kinds], "the answer", 60
    )
    assert (tmp_path / "killed").is_dir()
    ended_well(slurm_cluster, job)
    ended_well(slurm_cluster, went_on.get("job_id"))
    new = set(jobs(slurm_cluster)) - before
    if action is Action.REQUEUE:
        assert (went_on.get("job_id"), new) == (job, {job})
        assert slurm_cluster.job(job)["Restarts"] == "1"
    else:
        assert new == {job, went_on.get("job_id")}
        assert len(new) == 2


@pytest.mark.slurm
def test_a_submission_whose_answer_is_lost_is_the_job_that_slurm_took(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    before = set(jobs(slurm_cluster))
    path = own_program(tmp_path, "sbatch", "submission_file", heard=True)
    done = hpc_train(
        slurm_cluster,
        *("submit", "tests/faults/tiny.yaml", f"runs_dir={tmp_path / 'runs'}", "slurm.nodes=1"),
        *("slurm.gpus_per_node=1", "trainer.max_steps=2"),
        env={"PATH": f"{path}:/usr/bin:/bin", "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    (taken,) = set(jobs(slurm_cluster)) - before
    assert done.returncode == 0, done.stderr
    assert f"job {taken}" in done.stdout
    assert slurm_cluster.wait(taken, "COMPLETED", timeout_s=120) == "COMPLETED"


@pytest.mark.slurm
@pytest.mark.parametrize("sweep", [(), ("--sweep", "model.init_args.step_s=0.1,0.2")])
def test_a_question_that_is_answered_late_does_not_keep_a_job_from_being_submitted(
    slurm_cluster: Cluster, tmp_path: Path, sweep: tuple[str, ...]
) -> None:
    before = set(jobs(slurm_cluster))
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    now = time.time()
    bad = BadNode(node="node3", reason="a slow cable", run="another", time=now, until=now + 3600)
    assert not remember(state, slurm_cluster.spec.cluster_name, [bad])
    late = tmp_path / "bin"
    late.mkdir()
    for name in ("sinfo", "scontrol"):
        (late / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (late / name).chmod(0o755)
    words = ("submit", "tests/faults/tiny.yaml", f"runs_dir={tmp_path / 'runs'}", *sweep)
    path = f"{late}:/usr/bin:/bin"
    options = ("slurm.nodes=1", "slurm.begin=now+1hour")
    done = hpc_train(slurm_cluster, *words, *options, env={"PATH": path, **state})
    assert done.returncode == 0, done.stderr
    assert "sinfo gave no answer in 5 s: not checked" in done.stderr
    assert len(set(jobs(slurm_cluster)) - before) == 1


@pytest.mark.slurm
@pytest.mark.parametrize("sweep", [(), ("--sweep", "seed=1,2")])
@pytest.mark.parametrize(
    ("where", "left_out", "excluded"),
    [
        (("slurm.nodes=2", "slurm.nodelist=node[2-3]"), ["node1"], "node1"),
        (("slurm.nodes=1",), ["node1", "node3"], "node[1,3]"),
    ],
)
def test_a_node_that_is_remembered_as_bad_is_taken_where_the_nodelist_names_it(
    slurm_cluster: Cluster,
    tmp_path: Path,
    sweep: tuple[str, ...],
    where: tuple[str, ...],
    left_out: list[str],
    excluded: str,
) -> None:
    """And it is not told as left out; the others are left out as ever."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    now = time.time()
    bad = [BadNode(it, "a slow cable", "another", now, now + 3600) for it in ("node1", "node3")]
    assert not remember(state, slurm_cluster.spec.cluster_name, bad)
    words = ("submit", "tests/faults/tiny.yaml", f"runs_dir={tmp_path / 'runs'}", *sweep, *where)
    done = hpc_train(slurm_cluster, *words, "slurm.begin=now+1hour", "--json", env=state)
    assert done.returncode == 0, done.stderr
    (events,) = (tmp_path / "runs").rglob("events.jsonl")
    (told,) = [it for it in read_events(events) if it.kind is EventKind.SUBMITTED]
    assert told.get("left_out") == left_out
    assert slurm_cluster.job(json.loads(done.stdout)["job_id"])["ExcNodeList"] == excluded


def test_a_sigterm_for_all_of_a_batch_step_does_not_reach_slurms_programs() -> None:
    said = run(["sh", "-c", "kill -TERM $$; echo heard"])
    assert (said.returncode, said.stdout, said.wordless) == (0, "heard\n", False)


def test_a_program_that_is_killed_is_told_from_one_that_refuses() -> None:
    assert run(["sh", "-c", "kill -KILL $$"]).wordless
    assert not run(["sh", "-c", "echo sbatch: error: no >&2; exit 1"]).wordless
    assert not run(["true"]).wordless
    with pytest.raises(SlurmError, match="sleep gave no answer in 0 s") as caught:
        run(["sleep", "60"], timeout_s=0.1)
    assert is_answer_lost(str(caught.value))


def test_a_slurm_conf_that_is_empty_is_told_at_once() -> None:
    """A command of Slurm looks for that file for a minute."""
    with pytest.raises(SlurmError, match="SLURM_CONF is set and empty") as caught:
        run(["sh", "-c", "exit 0"], env={"PATH": "/bin", "SLURM_CONF": ""})
    assert "unset it" in str(caught.value.hint)


def test_a_slurm_conf_that_is_not_there_is_told_at_once_but_for_a_script_of_the_site(
    tmp_path: Path,
) -> None:
    """A script of that name may set the variable by itself."""
    environ = {"PATH": "/bin", "SLURM_CONF": "/no/such/slurm.conf"}
    with pytest.raises(
        SlurmError, match=r"SLURM_CONF is /no/such/slurm.conf, and there is"
    ) as caught:
        run(["true"], env=environ)
    assert "unset SLURM_CONF" in str(caught.value.hint)
    wrapper = tmp_path / "sbatch"
    wrapper.write_text("#!/bin/sh\necho heard\n")
    wrapper.chmod(0o755)
    assert run([str(wrapper)], env=environ).stdout == "heard\n"


def test_a_configuration_that_slurm_does_not_find_is_no_refusal_of_a_key() -> None:
    said = "s_p_parse_file: cannot stat file /etc/slurm/slurm.conf: No such file or directory"
    assert "let SLURM_CONF name" in str(refusal_error(f"sbatch: error: {said}\n").hint)


@pytest.mark.parametrize(
    ("options", "message", "fix"),
    [
        ({"ntasks-per-node": "12", "gres": "gpu:12"}, "no node .* .train gpu:4.", "--gpus 4 or"),
        (
            {"ntasks-per-node": "12", "gres": "gpu:12", "cpus-per-task": "3"},
            "gpus_per_node is 12, and no node",
            "--gpus 2 or fewer",
        ),
        ({"ntasks-per-node": "12"}, "each rank needs a CPU", "--gpus 8 or fewer"),
    ],
)
def test_the_number_of_gpus_that_is_named_fits_the_cpus_as_well(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str | None],
    message: str,
    fix: str,
) -> None:
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'train*|1:00:00|3|1-infinite|8|gpu:4|node[1-3]|c'\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(SlurmError, match=message) as caught:
        check_partition(options)
    assert fix in str(caught.value.hint)


@pytest.mark.parametrize(
    "words",
    [
        "slurm_load_jobs error: Insane message length",
        "Incompatible versions of client and server code",
        "Protocol authentication error",
    ],
)
def test_words_of_slurms_wire_are_told_with_what_to_do(words: str) -> None:
    error = refusal_error(f"sbatch: error: Batch job submission failed: {words}\n")
    assert words in str(error)
    assert error.hint.startswith(("what answers", "munge")), error


def test_a_controller_that_is_not_there_has_refused_nothing() -> None:
    words = "Unable to contact slurm controller (connect failure)"
    error = refusal_error(f"sbatch: error: Batch job submission failed: {words}\n")
    assert error.message == f"Slurm does not answer: {words}"
    assert error.hint.startswith("nothing was submitted; once `scontrol ping` says UP")


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", 1),
        ("slurm_requeue error: Zero Bytes were transmitted or received", 1),
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", 0),
        ("Unable to contact slurm controller (connect failure)", 0),
        ("", 0),
    ],
)
def test_only_a_request_that_has_left_may_have_been_carried_out(words: str, lost: int) -> None:
    assert is_answer_lost(words) == bool(lost)


@pytest.mark.slurm
def test_more_nodes_than_a_partition_has_are_told_with_a_shape_that_it_takes(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """Where the batch cannot be split over them either: no shape is named that is refused next."""
    words = ("submit", "tests/faults/tiny.yaml", f"runs_dir={tmp_path}", "global_batch_size=8")
    done = hpc_train(slurm_cluster, *words, "--nodes", "5", "--gpus", "1")
    assert done.returncode == 3
    assert "and slurm.nodes is 5, more than the" in done.stderr
    named = done.stderr.partition("nearest shapes: ")[2].split(" or ")
    assert named[0] == "--nodes 2 --gpus 1"
    for shape in named:
        again = hpc_train(slurm_cluster, *words, *shape.split(), "--test-only")
        assert again.returncode == 0, again.stderr
