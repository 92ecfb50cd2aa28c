"""What the end of a run that failed proposes to type."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.cli.following import follow_run, print_end
from hpc_train.plan.states import MOVED, RunState
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import ExitRecord, write_exit
from hpc_train.runs.scheduler_view import SchedulerView
from hpc_train.runs.status import run_status
from tests.cli.test_mistakes_of_first_days import end, project, run
from tests.cli.test_resume_notes import CONFIG, NETS

__all__ = ["project", "run"]

SCRIPT = """\
from pytorch_lightning import Trainer
if __name__ == "__main__":
    Trainer().fit(None)
"""


def test_a_batch_larger_than_the_set_is_for_a_new_run(hpc, capfd, run: RunDir) -> None:
    """`resume` was proposed, which takes no other batch."""
    reason = "the train set has 256 samples (submit again with global_batch_size=256 or less)"
    end(run, "failed", reason)
    assert follow_run(api.Run(run), show=False) == 10
    said = capfd.readouterr().out
    assert "go on      hpc-train submit cfg.yaml global_batch_size=256" in said
    assert "hpc-train resume" not in said


def test_what_fails_again_as_it_is_is_not_told_to_go_on_as_it_is(hpc, capfd, run: RunDir) -> None:
    data = {"attempt": 0, "outcome": "user_error", "reason": "rank 0 on n1 failed: ValueError: x"}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "failed", data["reason"])
    assert follow_run(api.Run(run), show=False) == 10
    said = capfd.readouterr().out
    assert f"go on      hpc-train resume {run.run_id}, once that is mended; with model, dat" in said
    (run.path / "snapshot.json").write_text("{}")
    assert follow_run(api.Run(run), show=False) == 10
    assert f"hpc-train resume {run.run_id} --new-snapshot, once" in capfd.readouterr().out


def test_a_folder_that_the_nodes_do_not_see_is_for_a_new_run(hpc, capfd, run: RunDir) -> None:
    """`resume` was proposed, which keeps the folder."""
    view = SchedulerView(RunState.FAILED, "JobLaunchFailure")
    sent = Event(1.0, EventKind.SUBMITTED, {"job_id": "7", "backend": "slurm"})
    print_end(run_status(run, [sent], view, beat=None, metrics={}, now=1000.0))
    said = capfd.readouterr().out
    assert "go on      hpc-train submit cfg.yaml runs_dir=FOLDER" in said
    assert "hpc-train resume" not in said


@pytest.fixture
def submit(hpc, taken, tmp_path: Path):
    """`submit("cfg.yaml", ...)` gives the run of it, in a project with a config and a script."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "my cfg.yaml").write_text(CONFIG)
    (tmp_path / "train.py").write_text(SCRIPT)

    def call(*words: str) -> RunDir:
        said = hpc("submit", *words[:1], "--json", *words[1:])
        assert said.code == 0, said
        return RunDir(Path(json.loads(said.out)["run_dir"]))

    return call


def went_wrong(run: RunDir, reason: str, step: int = 0) -> None:
    """Its first attempt, by an error of the user's."""
    data = {
        "attempt": 0,
        "outcome": "user_error",
        "reason": reason,
        "last_step": step,
        "rank": 0,
        "node": "n1",
    }
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    error = reason.partition(" failed: ")[2]
    write_exit(run.attempt(0), ExitRecord(rank=0, node="n1", time=time.time(), code=1, error=error))
    end(run, "failed", reason)


def ran_out_of_gpu_memory(run: RunDir) -> None:
    reason = "rank 0 on n1 ran out of GPU memory at step 3 (nets.py:35)"
    data = {"attempt": 0, "outcome": "out_of_memory", "reason": reason, "last_step": 3}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "failed", reason)


def go_on(capfd, run: RunDir, code: int = 10) -> str:
    assert follow_run(api.Run(run), show=False) == code
    [line] = [it for it in capfd.readouterr().out.splitlines() if it.startswith("go on ")]
    return line.removeprefix("go on ").strip()


def test_what_was_typed_behind_the_config_is_kept(submit, capfd) -> None:
    """The fix alone trained on other ranks, with other values."""
    run = submit("my cfg.yaml", "--gpus", "2", "model.init_args.lr=1", "name=a b", "seed=1")
    end(run, "failed", "the train set is small (submit again with global_batch_size=4 or less)")
    typed = "'my cfg.yaml' --gpus 2 model.init_args.lr=1 'name=a b' seed=1 global_batch_size=4"
    assert go_on(capfd, run) == f"hpc-train submit {typed}"


def test_the_shape_of_the_submission_is_kept_where_the_config_is_to_be_changed(
    submit, capfd, monkeypatch, tmp_path: Path
) -> None:
    """`hpc-train submit c8.yaml` was proposed, which trains with one rank."""
    run = submit("my cfg.yaml", "--nodes", "2", "--gpus", "4", "--cluster", "slurm")
    went_wrong(run, "rank 0 on n1 failed: ValueError: x")
    line = "hpc-train submit 'my cfg.yaml' --cluster slurm --nodes 2 --gpus 4"
    assert go_on(capfd, run).endswith(f"changed in the config: {line}")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")  # where it may be typed as well
    assert f"hpc-train submit '{tmp_path}/my cfg.yaml' --cluster" in go_on(capfd, run)


def test_of_a_test_no_training_is_proposed(submit, capfd) -> None:
    run = submit("my cfg.yaml")
    began = {"attempt": 0, "verb": "test"}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, began))
    data = {"attempt": 0, "outcome": "user_error", "reason": "ValueError: x"}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "failed", "ValueError: x")
    assert go_on(capfd, run) == f"hpc-train resume {run.run_id}, once that is mended"


def test_a_hang_that_came_twice_is_mended_first(submit, capfd) -> None:
    run = submit("my cfg.yaml", "--gpus", "2")
    reason = "nothing moved for 61 s; the ranks wait for each other at different lines"
    for number in range(2):
        data = {"attempt": number, "outcome": "hang", "reason": reason, "last_step": 15}
        append_event(run.events, Event(1.0, EventKind.ATTEMPT_STARTED, {"attempt": number}))
        append_event(run.events, Event(2.0, EventKind.ATTEMPT_ENDED, data))
    end(run, "failed", reason)
    assert go_on(capfd, run) == f"hpc-train resume {run.run_id}"
    twice = "the same error came twice at step 15, so it is the training's own: it hung at a.py:3"
    end(run, "failed", twice)
    assert follow_run(api.Run(run), show=False) == 10
    said = "".join(capfd.readouterr())
    assert f"go on      hpc-train resume {run.run_id}, once that is mended; with" in said
    assert said.count("the ranks wait for each other") == 1, "where each was is told once"


def test_a_run_whose_folder_was_moved_as_it_trained_goes_on_as_it_is(submit, capfd, hpc) -> None:
    """It was told to mend what was no mistake of the training, and that no training had begun."""
    run = submit("my cfg.yaml")
    reason = f"{MOVED}, from /runs/a/1 to {run.path}; nothing was saved"
    went_wrong(run, reason, step=3)
    assert go_on(capfd, run) == f"hpc-train resume {run.run_id}"
    found = json.loads(hpc("diagnose", run.run_id, "--json").out)
    assert (found["name"], found["cause"]) == ("moved_folder", reason)
    assert found["fix"] == f"hpc-train resume {run.run_id} goes on where it is now"


def test_a_scripts_arguments_are_kept(submit, capfd) -> None:
    run = submit("train.py", "--nodes", "2", "--gpus", "4", "--", "--lr", "0.1", "--api-key", "abc")
    went_wrong(run, "rank 0 on n1 failed: ValueError: x")
    line = "hpc-train submit train.py --nodes 2 --gpus 4 -- --lr 0.1 --api-key VALUE"
    assert go_on(capfd, run).endswith(f"once that is mended; with other arguments: {line}")
    assert "abc" not in run.environment.read_text()


def test_a_resume_proposes_the_words_of_the_submission(submit, hpc, tmp_path: Path) -> None:
    run = submit("my cfg.yaml", "--gpus", "2", "seed=1")
    end(run, "cancelled", "somebody cancelled it")
    (tmp_path / "my cfg.yaml").write_text(CONFIG.replace("0.05", "0.5"))
    said = hpc("resume", run.run_id, "--dry-run")
    assert "with the new: hpc-train submit 'my cfg.yaml' --gpus 2 seed=1\n" in said.err


def test_an_environment_that_failed_is_mended_in_the_config(submit, capfd, tmp_path: Path) -> None:
    """`resume` was proposed, which keeps the lines that failed."""
    (tmp_path / "env.yaml").write_text(f"{CONFIG}env: {{setup: [soruce x.sh]}}\n")
    view = SchedulerView(RunState.FAILED, "NonZeroExitCode", last_words=("soruce: not found",))
    for typed, line in {
        "env.yaml": "with env mended: hpc-train submit env.yaml --gpus 2; hpc-train"
        " resume {} keeps the env of its submission but for env.KEY=VALUE behind it",
        "my cfg.yaml": "hpc-train resume {}",
    }.items():
        run = submit(typed, "--gpus", "2")
        sent = Event(1.0, EventKind.SUBMITTED, {"job_id": "7", "backend": "slurm"})
        print_end(run_status(run, [sent], view, beat=None, metrics={}, now=1000.0))
        assert f"go on      {line.format(run.run_id)}\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("typed", "words", "without"),
    [
        (
            "env.conda=birds",
            "hpc-train: error: env.conda: no conda",
            "env.conda=null",
        ),
        ("env.modules=[cuda]", "error: env.modules: module load", "'env.modules=[]'"),
        ("env.setup=[soruce x]", "soruce: not found", "'env.setup=[]'"),
    ],
)
def test_an_environment_that_was_typed_is_left_out_by_resume(
    submit, capfd, typed: str, words: str, without: str
) -> None:
    """The submission with the same key was proposed, which fails once more."""
    run = submit("my cfg.yaml", typed, "env.variables.A=1")
    sent = Event(1.0, EventKind.SUBMITTED, {"job_id": "7", "backend": "slurm"})
    view = SchedulerView(RunState.FAILED, "NonZeroExitCode", last_words=(words,))
    print_end(run_status(run, [sent], view, beat=None, metrics={}, now=1000.0))
    key = typed.partition("=")[0]
    line = f"go on      without {key}: hpc-train resume {run.run_id} {without}; with another: "
    assert line in capfd.readouterr().out


INTERVAL = (
    "rank 0 on n1 failed: ValueError: `val_check_interval` (1000) must be less than or equal to the"
    " number of the training batches (16). If you want to disable validation set"
    " `limit_val_batches` to 0.0 instead. If you want to validate based on the total training"
    " batches, set `check_val_every_n_epoch=None`."
)
FAILED = "rank 0 on n1 failed: "


@pytest.mark.parametrize(
    ("typed", "reason", "changed"),
    [
        # By the fix that diagnose has for it.
        ((), INTERVAL, "trainer.val_check_interval=16"),
        (("seed=1",), INTERVAL, "seed=1 trainer.val_check_interval=16"),
        (("trainer.val_check_interval=1000", "seed=1"), INTERVAL,
         "seed=1 trainer.val_check_interval=16"),
        # By the one in the reason itself.
        ((), f"{FAILED}a sample (write micro_batch_size: 2)", "micro_batch_size=2"),
        (("micro_batch_size=1",), f"{FAILED}x (write micro_batch_size: 2)", "micro_batch_size=2"),
        ((), f"{FAILED}x (trainer.max_epochs=3 or more; or seed=2)", "trainer.max_epochs=3"),
        ((), f"{FAILED}x (submit again with model.init_args.lr=1 seed=2)",
         "model.init_args.lr=1 seed=2"),
        (("seed=3", "name=x"), f"{FAILED}x (submit again with model.init_args.lr=1 seed=2; or y)",
         "name=x model.init_args.lr=1 seed=2"),
    ],
)  # fmt: skip
def test_a_fix_that_is_typed_is_in_the_command(
    submit, capfd, hpc, typed: tuple[str, ...], reason: str, changed: str
) -> None:
    """The command that had just failed was proposed."""
    run = submit("my cfg.yaml", *typed)
    went_wrong(run, reason)
    line = f"hpc-train submit 'my cfg.yaml' {changed}"
    assert go_on(capfd, run) == line
    assert f"  go on      {line}\n" in hpc("status", run.run_id).out


@pytest.mark.parametrize(
    ("typed", "reason", "step"),
    [
        ((), INTERVAL, 7),  # a resume keeps its steps
        ((), f"{FAILED}ValueError: seed=2", 0),
        ((), f"{FAILED}x (a number, as in seed=2)", 0),
        ((), f"{FAILED}x (write trainer.max_epochs=N)", 0),
        ((), f"{FAILED}x (write name: value pairs)", 0),
        ((), f"{FAILED}x (write data: what there is)", 0),
        ((), f"{FAILED}x (write width=3)", 0),  # of the user's code
        (("seed=2",), f"{FAILED}x (write seed=2)", 0),  # as it was
    ],
)
def test_what_is_no_value_to_type_leaves_the_command_as_it_was(
    submit, capfd, typed: tuple[str, ...], reason: str, step: int
) -> None:
    run = submit("my cfg.yaml", *typed)
    went_wrong(run, reason, step)
    line = " ".join(["hpc-train submit 'my cfg.yaml'", *typed])
    said = go_on(capfd, run)
    assert said.startswith(f"hpc-train resume {run.run_id}, once that is mended; with model, data")
    assert said.endswith(f"changed in the config: {line}")


def test_a_script_is_given_no_key_of_a_config(submit, capfd) -> None:
    """It makes its Trainer itself."""
    for reason, line in {
        INTERVAL: "once that is mended; with other arguments: hpc-train submit train.py",
        f"{FAILED}x (write env.variables.A=1)": "hpc-train submit train.py env.variables.A=1",
    }.items():
        run = submit("train.py")
        went_wrong(run, reason)
        assert go_on(capfd, run).endswith(line)


def test_a_full_gpu_is_gone_on_with_in_smaller_parts_of_the_batch(hpc, submit, capfd) -> None:
    """`resume` alone runs out of memory once more."""
    run = submit("my cfg.yaml", "global_batch_size=12")
    ran_out_of_gpu_memory(run)
    smaller = f"resume {run.run_id} micro_batch_size=3"
    half = "half as many samples at once, in the same global batch"
    assert go_on(capfd, run) == f"hpc-train {smaller}: {half}"
    said = hpc(*smaller.split(), "--dry-run", "--json")
    assert said.code == 0, said
    batch = json.loads(said.out)["plan"]["batch"]
    assert batch == {"global_batch_size": 12, "micro_batch_size": 3, "accumulate": 2}


def test_one_sample_and_a_script_have_no_smaller_part(submit, capfd) -> None:
    one = submit("my cfg.yaml", "micro_batch_size=1")
    ran_out_of_gpu_memory(one)
    assert go_on(capfd, one) == f"hpc-train resume {one.run_id}"
    script = submit("train.py")
    ran_out_of_gpu_memory(script)
    assert go_on(capfd, script) == f"hpc-train resume {script.run_id}"


@pytest.mark.parametrize(
    ("mem", "reason", "more"),
    [
        ("1G", "its job had 4366 MiB of memory on that node, of 1024 MiB", "6G"),
        ("16G", "its job had 17000 MiB of memory on that node, of 16384 MiB", "32G"),
        ("512M", "the node ran out of host memory, and its kernel killed the process", "1G"),
        ("", "its job had 4366 MiB of memory on that node, of 1024 MiB", ""),
    ],
)
def test_a_job_whose_memory_was_used_up_is_gone_on_with_more(
    hpc, submit, capfd, mem: str, reason: str, more: str
) -> None:
    run = submit("my cfg.yaml", *([f"slurm.mem={mem}"] if mem else []))
    whole = f"rank 0 on n1 was killed: {reason}; slurm.mem gives it more"
    data = {"attempt": 0, "outcome": "out_of_memory", "reason": whole, "last_step": 9}
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_STARTED, {"attempt": 0}))
    append_event(run.events, Event(time.time(), EventKind.ATTEMPT_ENDED, data))
    end(run, "failed", "the same shape would run out of memory again")
    said = go_on(capfd, run)
    typed, _, why = said.partition(": ")
    assert typed == f"hpc-train resume {run.run_id}{f' slurm.mem={more}' if more else ''}"
    assert bool(why) == bool(more)
    if more:
        done = hpc(*typed.split()[1:], "--dry-run", "--json")
        assert done.code == 0, done
        assert ["mem", more] in json.loads(done.out)["plan"]["slurm"]["options"]


def test_the_help_of_status_says_what_its_exit_code_is(hpc, run: RunDir) -> None:
    """A script that asked `status` whether a run had failed got 0."""
    end(run, "failed", "no luck")
    assert hpc("status", run.run_id).code == 0
    shown = " ".join(hpc("status", "--help").out.split())
    assert "The exit code is 0 whatever the state is. That of the run is the exit code of" in shown
    assert "with --wait; diagnose ends with 3 where something failed, and --json says" in shown
