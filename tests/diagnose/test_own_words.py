"""What hpc-train itself says of an end is known to diagnose, with a fix and without a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.backends.diagnose_run import diagnose_run
from hpc_train.diagnose.read_logs import diagnose_logs
from hpc_train.runs.ranks import ExitRecord, write_exit
from hpc_train.training.failures.unfit_checkpoint import ANOTHER_MODEL, FIX
from tests.diagnose.test_read_run import ended, made, write
from tests.report.made import BEGAN

__all__ = ["made"]

SINCE = ", and train_loss was nan at step 2 (metrics.csv)"
TODO = "lower the learning rate, or submit again with trainer.gradient_clip_val=1.0 or so, and look"


@pytest.mark.parametrize("since", [SINCE, ""])
def test_weights_that_became_nan_are_told_with_what_the_rank_knew_to_do(made, since):
    said = f"net.1.bias is NaN after step 320: the training has diverged{since}"
    reason = f"rank 1 on n1 failed at step 320: {said} ({TODO} at the data)"
    ended(made, "user_error", reason, rank=1, node="n1", failed_step=320)
    record = ExitRecord(rank=1, node="n1", time=BEGAN + 50, code=10, kind="check", step=320,
                        error=f"{said} ({TODO} at the data)")  # fmt: skip
    write_exit(made.run.attempt(0), record)
    (found,) = diagnose_run(made.run).findings
    assert (found.name, found.is_known, found.rank, found.step) == ("weights_nan", True, 1, 320)
    assert (found.cause, found.fix) == (said, f"{TODO} at the data")


def test_a_checkpoint_that_does_not_fit_is_told_with_what_the_rank_knew_to_do(made):
    said = "the checkpoint does not fit the model: a.b has the shape [4] in the checkpoint and [6]"
    ended(made, "user_error", f"rank 1 on n1 failed: {said} in the model; {FIX}", rank=1, node="n1")
    (found,) = diagnose_run(made.run).findings
    assert (found.name, found.is_known, found.rank) == ("resume_unfit", True, 1)
    known = FIX.replace(" RUN", f" {made.run.run_id}")
    assert (found.cause, found.fix) == (f"{said} in the model", known)


@pytest.mark.parametrize(
    ("fix", "cause"),
    [("", ": as a rule torch.optim is of another version"), ("did you mean 'SGD'?", "")],
)
def test_a_name_that_was_meant_leaves_no_word_of_versions(made, fix, cause):
    error = "AttributeError: module 'torch.optim' has no attribute 'sgd'"
    ended(made, "user_error", f"rank 1 on n1 failed: {error}", rank=1, node="n1")
    text = f"Traceback (most recent call last):\n{error}\n"
    record = ExitRecord(rank=1, node="n1", time=BEGAN, code=1, kind="user", error=error, fix=fix,
                        traceback=text)  # fmt: skip
    write_exit(made.run.attempt(0), record)
    found = diagnose_run(made.run).findings[0]
    assert found.cause.partition(" than ")[0] == f"torch.optim has no sgd{cause}"
    assert found.fix == fix or not fix


def test_code_that_has_changed_since_the_checkpoint_fitted_is_the_fix(made):
    said = "the checkpoint does not fit the model: it has body.*, and the model net.*"
    todo = f"nets.py has changed since attempt 0, as hpc-train diff x@0 shows: {ANOTHER_MODEL}"
    ended(made, "user_error", f"rank 1 on n1 failed: {said} ({todo})", rank=1, node="n1")
    (found,) = diagnose_run(made.run).findings
    assert (found.name, found.is_known, found.rank) == ("resume_unfit", True, 1)
    assert (found.cause, found.fix) == (said, todo)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("user_error", "rank 1 on n1 exited 3 first, its log ends with: training from step 0"),
        ("user_error", "rank 1 exited 3 first, without a Python error"),
        (
            "user_error",
            "rank 0 on n1 ended itself at step 5: os._exit(0) before the run was complete (/a:3)",
        ),
        ("user_error", "rank 0 on n1 ended itself: os._exit(7) before the run was complete"),
        (
            "user_error",
            "the ranks ended themselves with exit code 0 before the run was complete (os._exit, o",
        ),
        ("node_failure", "the launcher exited 0 and no rank says why"),
    ],
)
def test_a_process_that_ended_itself_without_an_exception_is_told_as_that(made, outcome, reason):
    ended(made, outcome, reason)
    (found,) = diagnose_run(made.run).findings
    assert found.is_known
    assert "os._exit(" in found.cause
    assert "self.trainer.should_stop = True" in found.fix
    assert ("sinfo -R" in found.fix) is (outcome == "node_failure")


@pytest.mark.parametrize(
    "last", ["ImportError: libmpi.so.40: cannot open shared object file", "Fatal: no licence"]
)
def test_a_process_whose_log_ends_with_an_error_is_judged_by_its_log(made, last):
    ended(made, "user_error", f"rank 1 on n1 exited 3 first, its log ends with: {last}", rank=1)
    write(made.run.attempt(0).rank_log(1), f"step 1\n{last}\n")
    (found, *_) = diagnose_run(made.run).findings
    assert "os._exit()" not in found.cause


GLOO = "GLOO_SOCKET_IFNAME user_env: 'ib0': no such interface (there: lo, eth0)"


@pytest.mark.parametrize(
    ("more", "name", "fix"),
    [
        ("", "preflight_variable", "unset it, or name one of those"),
        (
            "; all nodes: memlock: low -> raise it",
            "preflight_refused",
            "what it names; hpc-train p",
        ),
    ],
)
def test_a_variable_that_the_preflight_refuses_is_told_with_its_fix(made, more, name, fix):
    reason = f"the preflight refused: all nodes: {GLOO} -> unset it, or name one of those{more}"
    ended(made, "user_error", reason)
    (found,) = diagnose_run(made.run).findings
    assert (found.name, found.is_known) == (name, True)
    assert GLOO in found.cause
    assert found.fix.startswith(fix)


SMALL = "2 ranks a node need 2 CPUs, and job 7 has 1 a node"
TWICE = "srun has started this 2 times, as step 7.0; one starts all the ranks itself"
KEY = "cfg.yaml:3: slurm.gres is no key of hpc-train"
ARGUMENTS = "options of sbatch come in front of it; nodes and GPUs are the plan's"
EXIT = "srun: error: n1: tasks 0-1: Exited with exit code 3"


@pytest.mark.parametrize(
    ("text", "cause", "fix"),
    [
        (f"hpc-train: error: {SMALL}\n  fix: do that; or this\n", SMALL, "do that; or this"),
        (f"hpc-train: error: {SMALL}\n  fix: do that", SMALL, "do that"),
        (f"hpc-train: error: {SMALL}\n", SMALL, "what that line says"),
        (f"hpc-train: error: {SMALL}\n{EXIT}\n", SMALL, "what that line says"),
        (
            f"error: {TWICE}\n  fix: leave srun out\n" * 2 + f"{EXIT}\n",
            TWICE,
            "leave srun out",
        ),
        (f"0: error: {TWICE}\n0:   fix: leave srun out\n", TWICE, "leave srun out"),
        (f"error: {KEY}\n  fix: write slurm.gpus_per_node: 2\n", KEY, "write slurm.gpus_per_no"),
        (f"a\nerror: {KEY}\n  fix: write x\n{EXIT}\n", KEY, "write x"),
        (f"hpc-train: error: this script takes no arguments (-N 2): {ARGUMENTS}", "", ARGUMENTS),
    ],
)
def test_the_fix_of_a_refusal_is_the_one_that_its_next_line_says(
    tmp_path: Path, text: str, cause: str, fix: str
) -> None:
    log = tmp_path / "slurm-7.out"
    log.write_text(text)
    first = diagnose_logs([str(log)]).findings[0]
    assert first.is_known
    assert cause in first.cause
    assert first.fix.startswith(fix), first


def test_a_compilers_error_is_no_word_of_hpc_train(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("error: no such file\nnote: fix: it\n")
    assert diagnose_logs([str(log)]).findings == ()


def test_a_refusal_after_which_the_script_went_on_is_no_failure(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("error: n9 is not left out\n  fix: no node is\nstep 3 loss 0.1\ndone\n")
    assert diagnose_logs([str(log)]).findings == ()
