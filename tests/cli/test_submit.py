"""`hpc-train submit`: what it says of a job that Slurm has taken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.backends import twins
from hpc_train.doctor import examine_folder
from hpc_train.plan.states import RunState
from hpc_train.runs.events import EventKind
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus
from tests.cli.conftest import DIGITS, Slurm, tell


@pytest.mark.parametrize(
    ("squeue", "warning"),
    [
        (
            ["7|PENDING|PartitionDown|N/A"],
            "warning: the job does not start: slurm.partition is",
        ),
        (["7|PENDING|Priority|N/A"], ""),
        (["7|RUNNING|None|N/A"], ""),
        ([], ""),  # it does not know the job yet
    ],
)
def test_a_job_that_will_never_start_is_told_at_once(hpc, taken, squeue, warning):
    taken.says(*squeue)
    said = hpc("submit", DIGITS)
    assert said.code == 0
    assert said.out.startswith("submitted  job 7\n")
    assert said.err.startswith(warning)
    assert bool(said.err) == bool(warning)
    assert taken.asked() == 1


def test_a_queue_that_cannot_be_asked_costs_the_warning_and_not_the_submission(hpc, taken):
    taken.has("squeue", "echo slurm_load_jobs error: Unable to contact >&2; exit 1")
    said = hpc("submit", DIGITS)
    assert (said.code, said.err) == (0, "")


# What a refusal leaves, and what is told of a config that is not wrong


@pytest.mark.parametrize(
    ("there", "runs_dir"),
    [
        ([], "runs"),
        ([], "deep/er/runs"),
        (["runs"], "runs"),
        (["runs/digits"], "runs"),
        (["deep"], "deep/er/runs"),
    ],
)
@pytest.mark.parametrize("why", ["sbatch", "partition"])
def test_a_submission_that_slurm_refuses_leaves_no_folder(
    hpc, taken, tmp_path: Path, why: str, there: list[str], runs_dir: str
) -> None:
    if why == "sbatch":
        taken.has("sbatch", "echo sbatch: error: Invalid partition name specified >&2; exit 1")
    else:
        taken.has("sinfo", "echo 'train*|infinite|1|1-infinite|8|gpu:4|n[1-3]|N/A'")
    for folder in there:
        (tmp_path / folder).mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    said = hpc("submit", DIGITS, f"runs_dir={runs_dir}")
    assert said.code == 4, said
    after = [path for path in sorted(tmp_path.rglob("*")) if "bin" not in path.parts]
    assert after == [path for path in before if "bin" not in path.parts]


@pytest.mark.parametrize("words", [[], ["--sweep", "seed=1,2"]])
def test_a_controller_that_is_down_is_told_without_asking_sbatch(
    hpc, taken, tmp_path: Path, words: list[str]
) -> None:
    """What else is asked of it would wait for it, and sbatch for the longest."""
    is_ping = '[ "$1" = ping ] || exec sleep 600'
    taken.has("scontrol", f"{is_ping}\necho 'Slurmctld(primary) at head is DOWN'\nexit 1")
    taken.has("sinfo", "exec sleep 600")
    taken.has("sbatch", f"touch {tmp_path}/asked; exec sleep 600")
    said = hpc("submit", DIGITS, *words)
    assert (said.code, said.out) == (4, "")
    assert "Slurm does not answer: Slurmctld(primary) at head is DOWN" in said.err
    assert "nothing was submitted" in said.err
    assert not (tmp_path / "asked").exists()
    assert not (tmp_path / "runs").exists()


def test_a_job_that_slurm_may_have_taken_is_told_as_that(hpc, taken) -> None:
    words = "Batch job submission failed: Socket timed out on send/recv operation"
    taken.has("sbatch", f"echo 'sbatch: error: {words}' >&2; exit 1")
    taken.has("squeue", "echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1")
    said = hpc("submit", DIGITS)
    assert said.code == 4
    assert "Slurm does not answer, and may have taken the job all the same" in said.err
    assert "squeue --me --name=digits" in said.err


@pytest.mark.parametrize("words", [[], ["--sweep", "seed=1,2"]])
def test_what_slurm_can_be_asked_is_asked_before_a_folder_is_made(
    hpc, taken, tmp_path: Path, words: list[str]
) -> None:
    seen = taken.folder / "seen"
    taken.has("scontrol", "echo MaxArraySize = 1001")
    taken.has(
        "sinfo",
        f"ls {tmp_path} >> {seen}; echo 'train*|infinite|1|1-infinite|8|gpu:4|n[1-3]|N/A'",
    )
    assert hpc("submit", DIGITS, *words).code == 4
    assert "runs" not in seen.read_text().split()
    taken.has("sinfo", f"echo >> {seen}; echo 'train*|infinite|3|1-infinite|8|gpu:4|n[1-3]|N/A'")
    seen.write_text("")
    assert hpc("submit", DIGITS, *words).code == 0
    assert seen.read_text() == "\n", "asked once"


def test_a_runs_dir_that_cannot_be_filled_is_left_as_it_was(hpc, taken, tmp_path: Path) -> None:
    (tmp_path / "a" / "digits").mkdir(parents=True)
    (tmp_path / "a" / "digits").chmod(0o500)
    (tmp_path / "file").touch()
    said = hpc("submit", DIGITS, "runs_dir=file/runs")
    assert said.code == 3
    assert "runs_dir: cannot write" in said.err
    assert (tmp_path / "file").is_file()


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["--name", "größe"], "hpc-train list and status, is 'gr-e'"),
        (["--name", "x" * 300], f"is '{'x' * 64}'"),
        (["--name", ".."], "is 'run'"),
        (["name=a b"], "is 'a-b'"),
        (["--name", "a.b_c-1"], ""),
        (["--time", "4:00"], 'slurm.time "4:00" is 4 min to Slurm (M:S); hours are written "4:00:'),
        (["slurm.time=90:30"], 'slurm.time "90:30" is 90 min 30 s to Slurm'),
        (["--time", "2:00:00"], ""),
        (["--time", "1-2:00"], ""),
        (["slurm.signal_lead_s=600"], ""),
        (["--time", "0:10:00", "slurm.signal_lead_s=600"], "saves 300 s before its limit"),
        (["--time", "30"], ""),
        (["--time", "24"], 'slurm.time "24" is 24 min to Slurm; hours: "24:00:00"'),
        (["slurm.time=72"], 'slurm.time "72" is 72 min to Slurm; hours: "72:00:00"'),
        (["--time", "0:01:00"], "leaves a job 0 s or little more: it stops and saves 30 s before"),
        (["--time", "0:03:00"], "leaves a job 30 s or little more"),
        (["--time", "0:03:00"], "(slurm.signal_lead_s is 120, and half of the time is the most)"),
        (["--time", "0:03:00"], "Slurm may add 60 s; then another goes on."),
        (["--time", "0:03:00", "requeue.enabled=false"], "; no other follows: hpc-train resume"),
        (["--time", "0:03:00", "slurm.signal_lead_s=170"], "90 s before its limit (slurm.signal_"),
        (["--time", "0:03:00", "slurm.signal_lead_s=80"], "limit (slurm.signal_lead_s), to which"),
        (["--time", "0:03:00", "slurm.signal_lead_s=30"], ""),
        (["--time", "0:04:00"], ""),
        (["trainer.max_epochs=null"], "for 1000 epochs; write trainer.max_epochs=N"),
        (["trainer.max_epochs=-1"], ""),
        (["trainer.max_epochs=null", "trainer.max_steps=9"], ""),
        (["trainer.max_epochs=null", "trainer.max_time=00:01:00:00"], ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [["submit", "--dry-run"], ["submit"], ["render"]])
def test_what_is_not_wrong_and_should_be_known_is_one_line(
    hpc, taken, command: list[str], words: list[str], note: str
) -> None:
    said = hpc(*command, DIGITS, *words)
    assert said.code == 0, said
    notes = [line for line in said.err.splitlines() if line.startswith("note: ")]
    assert len(notes) == bool(note)
    assert not notes or note in notes[0]


def test_a_class_on_the_command_line_says_which_arguments_are_left_out(hpc) -> None:
    said = hpc("render", DIGITS, "model.class_path=hpc_train.examples.chargpt.CharGPT")
    (note,) = said.err.splitlines()
    assert note.startswith("note: command line: model.class_path names another class")
    assert "left out: model.init_args.lr, model.init_args.width; give again" in note


# --- an environment that cannot be had


def made(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("runs/*/*"))


@pytest.mark.parametrize(
    ("wanted", "message", "fix"),
    [
        ("env.venv=/nope", "env.venv is /nope, and there is no /nope/bin/activate", "bin/activate"),
        ("env.venv=empty", "env.venv is empty, and there is no ", "python3 -m venv "),
        ("env.venv=bare", "env.venv is bare, which has no hpc-train", "bare/bin/python install"),
        ("env.passthrough=[UNSET_A]", "env.passthrough: UNSET_A is not set here", "export UNSET_A"),
        ("env.passthrough=[HOME, UNSET_B]", "env.passthrough: UNSET_B is not set", "export"),
        (
            "env.conda=nope",
            "env.conda is nope, which fails here: EnvironmentNameNotFound: nope",
            "`conda env list` shows",
        ),
        (
            "env.modules=[gcc, cuda/12.9]",
            "env.modules is gcc, cuda/12.9, which fails here: ERROR: cannot locate 'cuda/12.9'",
            "`module avail` shows",
        ),
    ],
)
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_an_environment_that_is_not_there_is_refused_and_nothing_is_made(
    hpc, taken: Slurm, tmp_path: Path, options: list[str], wanted: str, message: str, fix: str
) -> None:
    tools(taken)
    (tmp_path / "empty").mkdir()
    venv(tmp_path / "bare", has_us=False)
    said = hpc("submit", *options, DIGITS, wanted)
    assert said.code == 3
    first, second = said.err.splitlines()
    assert first.startswith(f"error: command line: {message}")
    assert fix in second
    assert made(tmp_path) == []


@pytest.mark.parametrize(
    "wanted",
    [
        ["env.venv=/nope/not/on/this/host"],  # a node may have it
        ["env.venv=good"],
        ["env.venv=bare", "env.setup=[export PYTHONPATH=/nodes/only]"],
        ["env.passthrough=[HOME]"],
        ["env.passthrough=[UNSET]", "env.variables={UNSET: x}"],
        ["env.passthrough=[UNSET]", "env.setup=[export UNSET=1]"],
        ["env.conda=there"],
        ["env.modules=[gcc]"],
        ["env.modules=[gcc]", "env.conda=there"],
    ],
)
def test_an_environment_that_is_there_or_that_only_a_node_can_have_is_taken(
    hpc, taken: Slurm, tmp_path: Path, wanted: list[str]
) -> None:
    tools(taken)
    venv(tmp_path / "bare", has_us=False)
    venv(tmp_path / "good", has_us=True)
    said = hpc("submit", DIGITS, *wanted)
    assert (said.code, said.err) == (0, "")
    assert len(made(tmp_path)) == 1


@pytest.mark.parametrize("has_pip", [True, False], ids=["of venv", "of uv"])
def test_what_installs_it_in_an_environment_can_be_typed(hpc, taken, tmp_path, has_pip) -> None:
    venv(tmp_path / "bare", has_us=False)
    if has_pip:
        (tmp_path / "bare" / "bin" / "pip").touch()
    command = hpc("submit", DIGITS, "env.venv=bare").err.partition("fix: ")[2].split(" install ")[0]
    own = f"{tmp_path}/bare/bin/pip"
    other = f"{sys.executable} -m pip --python {tmp_path}/bare/bin/python"
    assert command == (own if has_pip else other)


@pytest.mark.parametrize("wanted", ["env.conda=nope", "env.modules=[cuda/12.9]"])
def test_without_the_tool_here_the_job_itself_has_to_tell(hpc, taken, tmp_path, wanted) -> None:
    assert hpc("submit", DIGITS, wanted).code == 0
    assert len(made(tmp_path)) == 1


def test_a_rendered_script_is_for_another_host_and_asks_nothing_of_this_one(hpc, taken) -> None:
    assert hpc("render", DIGITS, "env.venv=/nope", "env.passthrough=[UNSET]").code == 0


def tools(slurm: Slurm) -> None:
    """A `conda` and a `module` that know one environment and one module."""
    slurm.has(
        "conda",
        """case "$*" in
  "shell.bash hook") ;;
  "activate there") ;;
  *) printf "\\nEnvironmentNameNotFound: $2\\nYou can list all with conda info\\n" >&2; exit 1 ;;
esac""",
    )
    slurm.has("module", '[ "$2" = gcc ] || { echo "ERROR: cannot locate \'$2\'" >&2; exit 1; }')


def venv(folder: Path, *, has_us: bool) -> None:
    """As little of one as the check looks at; its Python is isolated where it has no hpc-train."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/activate").touch()
    isolated = "" if has_us else "-I -S"
    python = folder / "bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {isolated} "$@"\n')
    python.chmod(0o755)


@pytest.mark.parametrize("kind", ["tmpfs", "nfs4", "overlay"])
def test_a_folder_of_runs_in_memory_is_noted_where_slurm_takes_the_job(
    hpc, taken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"x / ext4 rw 0 0\nx {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr(examine_folder, "MOUNTS", mounts)
    told = "is on tmpfs, which other nodes do not see: set runs_dir to a folder on the shared"
    for more in ([], ["--sweep", "seed=1,2"], ["--dry-run"]):
        said = hpc("submit", DIGITS, *more)
        assert (said.code, told in said.err) == (0, kind == "tmpfs"), said
    assert told not in hpc("submit", DIGITS, "--dry-run", "--cluster", "local").err


# What is already there


@pytest.mark.parametrize("changed", ["", "seed=7", "name=other"])
@pytest.mark.parametrize(("state", "note"), [("PENDING", True), ("RUNNING", True), ("", False)])
def test_a_training_that_is_there_already_is_named(
    hpc, taken, state: str, note: bool, changed: str
) -> None:
    """A second Enter, or a submission that one forgot: both would train the same."""
    words = [changed] if changed else []
    taken.says("7|PENDING|Priority|N/A")
    assert "trains the same" not in hpc("submit", DIGITS).err
    first = next(Path.cwd().glob("runs/*/*")).name
    taken.has("sbatch", "echo Submitted batch job 8")
    if state:
        taken.says(f"7|{state}|None|N/A", "8|PENDING|Priority|N/A")
    else:
        taken.says("8|PENDING|Priority|N/A")
        end = '{"time": 9e9, "event": "run_ended", "state": "cancelled", "reason": "me"}'
        with next(Path.cwd().glob("runs/*/*/events.jsonl")).open("a") as history:
            history.write(f"{end}\n")
    said = hpc("submit", DIGITS, *words)
    told = (
        f"{first} trains the same and is {state.lower()} as job 7: where one is enough, hpc-train"
    )
    assert (told in said.err) == (note and not changed), said


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_training_that_is_being_cancelled_is_not_named(hpc, taken, state: str) -> None:
    """Its ranks save first: who cancelled it and submits again would cancel the new one."""
    hpc("submit", DIGITS)
    (first,) = Path.cwd().glob("runs/*/*")
    tell(RunDir(first), 9e9, EventKind.CANCEL_REQUESTED, by="me")
    taken.has("sbatch", "echo Submitted batch job 8")
    taken.says(f"7|{state}|None|N/A", "8|PENDING|Priority|N/A")
    assert "trains the same" not in hpc("submit", DIGITS).err
    assert "as well" not in hpc("status", "digits").out


@pytest.mark.parametrize("checkpoint", [True, False])
@pytest.mark.parametrize("state", ["cancelled", "failed", "completed"])
def test_a_training_that_was_stopped_and_can_go_on_is_named(
    hpc, taken, state: str, checkpoint: bool
) -> None:
    """Who submits it again the next day would begin at step 0."""
    hpc("submit", DIGITS)
    (first,) = Path.cwd().glob("runs/*/*")
    if checkpoint:
        manifest = first / "checkpoints/step-000000047/manifest.json"
        manifest.parent.mkdir(parents=True)
        manifest.write_text("{}")
    tell(RunDir(first), 9e9, EventKind.RUN_ENDED, state=state, reason="me")
    taken.has("sbatch", "echo Submitted batch job 8")
    told = f"{first.name} trained the same, has a checkpoint of step 47 and is {state}: hpc-train"
    before = hpc("submit", DIGITS, "--dry-run")
    said = hpc("submit", DIGITS)
    assert (told in said.err) == (checkpoint and state != "completed"), said
    assert (told in before.err) == (told in said.err), before
    assert "trained the same" not in hpc("submit", DIGITS, "seed=7").err


def test_a_training_that_is_being_submitted_is_named_without_a_job(
    hpc, taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two in the same second the first has no number yet."""
    words = {"run_dir": "", "backend": "slurm", "job_id": ""}
    first = RunStatus(run="one", name="digits", state=RunState.PENDING, **words)
    monkeypatch.setattr(twins, "twins_of", lambda run: twins.Twins([first]))
    told = "note: one trains the same and is pending: where one is enough, hpc-train cancel"
    assert told in hpc("submit", DIGITS).err


def test_a_submission_inside_of_a_job_names_what_takes_its_nodes(hpc, taken, monkeypatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "73")
    taken.says("7|PENDING|Priority|N/A")
    said = hpc("submit", DIGITS, "--cluster", "slurm")
    own = "this is job 73, and the training is another one"
    assert f"{own}: hpc-train run CFG trains on the nodes of 73" in said.err


def test_after_a_job_that_is_no_run_names_the_key_for_it(hpc, taken) -> None:
    said = hpc("submit", DIGITS, "--after", "33")
    assert said.code == 5
    assert "--after 33: 33 is no job of a run" in said.err
    assert "slurm.dependency=afterok:33" in said.err
