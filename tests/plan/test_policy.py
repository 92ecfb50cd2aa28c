"""`decide`: the table of all cases, and the properties that must hold for any history."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.config.schema import RequeueConfig
from hpc_train.plan.policy import AttemptSummary, SchedulerOptions, decide, excluded_nodes
from hpc_train.plan.states import Action, Outcome, RunState

NOW = 1_000_000.0
SLURM = SchedulerOptions(can_requeue=True, can_resubmit=True, now=NOW)
CANCEL_SITE = SchedulerOptions(can_requeue=False, can_resubmit=True, now=NOW)
NOTHING = SchedulerOptions(can_requeue=False, can_resubmit=False, now=NOW)


def attempt(outcome: Outcome, first: int = 0, saved: int = 0, **fields: object) -> AttemptSummary:
    return AttemptSummary(
        **{
            "attempt": 0,
            "outcome": outcome,
            "ended": NOW,
            "first_step": first,
            "saved_step": saved,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("outcome", "scheduler", "action", "state"),
    [
        (Outcome.COMPLETED, SLURM, Action.STOP, RunState.COMPLETED),
        (Outcome.CANCELLED, SLURM, Action.STOP, RunState.CANCELLED),
        (Outcome.USER_ERROR, SLURM, Action.STOP, RunState.FAILED),
        (Outcome.OUT_OF_MEMORY, SLURM, Action.STOP, RunState.FAILED),
        (Outcome.PREEMPTED, SLURM, Action.REQUEUE, RunState.PENDING),
        (Outcome.TIMEOUT, SLURM, Action.REQUEUE, RunState.PENDING),
        (Outcome.NODE_FAILURE, SLURM, Action.REQUEUE, RunState.PENDING),
        (Outcome.NETWORK_FAILURE, SLURM, Action.REQUEUE, RunState.PENDING),
        (Outcome.HANG, SLURM, Action.REQUEUE, RunState.PENDING),
        (Outcome.PREEMPTED, CANCEL_SITE, Action.RESUBMIT, RunState.PENDING),
        (Outcome.TIMEOUT, CANCEL_SITE, Action.RESUBMIT, RunState.PENDING),
        (Outcome.NODE_FAILURE, CANCEL_SITE, Action.RESUBMIT, RunState.PENDING),
        (Outcome.PREEMPTED, NOTHING, Action.STOP, RunState.FAILED),
    ],
)
def test_each_outcome_has_one_consequence(
    outcome: Outcome, scheduler: SchedulerOptions, action: Action, state: RunState
) -> None:
    decision = decide(attempt(outcome, 0, 5), [], RequeueConfig(), scheduler)
    assert (decision.action, decision.state) == (action, state)
    assert decision.reason


def test_every_outcome_is_in_the_table() -> None:
    for outcome in Outcome:
        assert decide(attempt(outcome), [], RequeueConfig(), SLURM).reason


def test_thirty_preemptions_with_progress_never_stop_a_run() -> None:
    history = [attempt(Outcome.PREEMPTED, step, step + 1) for step in range(30)]
    for count in range(1, 31):
        decision = decide(history[count - 1], history[: count - 1], RequeueConfig(), SLURM)
        assert decision.action is Action.REQUEUE


def test_two_preemptions_without_a_new_step_stop_the_run_and_say_so() -> None:
    idle = attempt(Outcome.PREEMPTED, 7, 7)
    assert decide(idle, [], RequeueConfig(), SLURM).action is Action.REQUEUE
    decision = decide(idle, [idle], RequeueConfig(), SLURM)
    assert decision.action is Action.STOP
    assert decision.state is RunState.FAILED
    assert "without one new step" in decision.reason


def test_a_run_that_had_to_begin_further_back_makes_progress_from_there() -> None:
    saved_39 = attempt(Outcome.PREEMPTED, 0, 39)
    decision = decide(attempt(Outcome.PREEMPTED, 0, 22), [saved_39], RequeueConfig(), SLURM)
    assert (decision.action, decision.reason) == (
        Action.REQUEUE,
        "preempted: goes on from step 22",
    )


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_a_run_whose_checkpoints_are_damaged_each_time_ends_and_doubts_the_file_system(
    budget: int,
) -> None:
    policy = RequeueConfig(budget=budget)
    history = [attempt(Outcome.PREEMPTED, 0, 10)]
    for _ in range(budget):
        again = attempt(Outcome.PREEMPTED, 0, 10)
        assert decide(again, history, policy, SLURM).action is Action.REQUEUE
        history.append(again)
    decision = decide(attempt(Outcome.PREEMPTED, 0, 10), history, policy, SLURM)
    assert (decision.action, decision.state) == (Action.STOP, RunState.FAILED)
    assert f"what {budget + 1} attempts in a row had saved was found damaged" in decision.reason
    sound = attempt(Outcome.PREEMPTED, 10, 20)
    assert decide(sound, history, policy, SLURM).action is Action.REQUEUE


def test_a_time_limit_without_progress_ends_as_timed_out() -> None:
    idle = attempt(Outcome.TIMEOUT, 7, 7)
    assert decide(idle, [idle], RequeueConfig(), SLURM).state is RunState.TIMED_OUT


def test_faults_have_a_budget_that_progress_fills_up_again() -> None:
    policy = RequeueConfig(budget=2)
    fault = attempt(Outcome.NODE_FAILURE, 3, 3)
    assert decide(fault, [fault], policy, SLURM).action is Action.REQUEUE
    assert decide(fault, [fault, fault], policy, SLURM).action is Action.STOP
    progress = attempt(Outcome.NODE_FAILURE, 3, 9)
    assert decide(fault, [fault, fault, progress], policy, SLURM).action is Action.REQUEUE


def test_the_same_error_at_the_same_step_twice_is_the_trainings_own() -> None:
    error = attempt(Outcome.NETWORK_FAILURE, 0, 4, error="RuntimeError: x", failed_step=50)
    decision = decide(error, [error], RequeueConfig(), SLURM)
    assert decision.action is Action.STOP
    assert "RuntimeError: x" in decision.reason
    elsewhere = dataclasses.replace(error, failed_step=51)
    assert decide(elsewhere, [error], RequeueConfig(), SLURM).action is Action.REQUEUE


def test_blamed_nodes_are_left_out_up_to_a_cap_and_for_a_while() -> None:
    policy = RequeueConfig(max_excluded_nodes=2, exclude_for_h=1.0)
    old = attempt(Outcome.HANG, 0, 1, blamed=("node9",), ended=NOW - 7200)
    newer = attempt(Outcome.HANG, 1, 2, blamed=("node1", "node2"), ended=NOW - 60)
    newest = attempt(Outcome.HANG, 2, 3, blamed=("node3",))
    decision = decide(newest, [old, newer], policy, SLURM)
    assert decision.exclude == ("node1", "node3")
    assert "node9" not in decision.exclude
    assert "without node1, node3" in decision.reason


def test_a_user_may_forbid_going_on_or_bound_it() -> None:
    preempted = attempt(Outcome.PREEMPTED, 0, 5)
    assert decide(preempted, [], RequeueConfig(enabled=False), SLURM).action is Action.STOP
    bounded = RequeueConfig(max_attempts=2)
    assert decide(preempted, [], bounded, SLURM).action is Action.REQUEUE
    assert decide(preempted, [preempted], bounded, SLURM).action is Action.STOP


def refused(by: str, *blamed: str) -> AttemptSummary:
    return attempt(Outcome.NODE_FAILURE, 0, 0, blamed=blamed, refused=by)


def test_what_every_node_has_is_not_tried_again() -> None:
    decision = decide(refused("site"), [], RequeueConfig(budget=9), SLURM)
    assert (decision.action, decision.state) == (Action.STOP, RunState.FAILED)
    assert "every node has it" in decision.reason


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_a_refused_node_is_left_out_where_others_are_there_and_else_ends_the_run(
    needed: int,
) -> None:
    nodes = [f"node{number}" for number in range(1, needed + 1)]
    few = dataclasses.replace(SLURM, usable_nodes=frozenset(nodes), nodes_needed=needed)
    stopped = decide(refused("nodes", "node1"), [], RequeueConfig(), few)
    assert stopped.action is Action.STOP
    assert f"node1 cannot be left out, since {needed} nodes are needed" in stopped.reason
    more = dataclasses.replace(few, usable_nodes=frozenset([*nodes, "node9"]))
    going = decide(refused("nodes", "node1"), [], RequeueConfig(), more)
    assert (going.action, going.exclude) == (Action.REQUEUE, ("node1",))
    # A dead node comes back, and Slurm waits for it; a fault of the training itself has a budget.
    gone = dataclasses.replace(few, node_is_gone=True)
    assert decide(refused("nodes", "node1"), [], RequeueConfig(), gone).action is not Action.STOP
    assert decide(refused("", "node1"), [], RequeueConfig(), few).action is Action.REQUEUE


def test_a_no_that_names_nobody_has_the_budget_of_faults() -> None:
    policy = RequeueConfig(budget=1)
    assert decide(refused("untold"), [], policy, SLURM).action is Action.REQUEUE
    assert decide(refused("untold"), [refused("untold")], policy, SLURM).action is Action.STOP


attempts = st.builds(
    AttemptSummary,
    attempt=st.integers(0, 9),
    outcome=st.sampled_from(Outcome),
    ended=st.floats(NOW - 1e6, NOW),
    blamed=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(tuple),
    first_step=st.integers(0, 5),
    saved_step=st.integers(0, 9),
    error=st.sampled_from(["", "E: x"]),
    failed_step=st.none() | st.integers(0, 2),
)


@given(attempts, st.lists(attempts, max_size=12), st.integers(0, 3))
def test_final_outcomes_are_never_retried_and_exclusions_never_exceed_the_cap(
    last: AttemptSummary, history: list[AttemptSummary], cap: int
) -> None:
    policy = RequeueConfig(max_excluded_nodes=cap)
    decision = decide(last, history, policy, SLURM)
    if last.outcome in (Outcome.COMPLETED, Outcome.CANCELLED, Outcome.USER_ERROR):
        assert decision.action is Action.STOP
    assert len(decision.exclude) <= cap
    assert len(excluded_nodes(history, policy, NOW)) <= cap


def faulty(node: str) -> AttemptSummary:
    return attempt(Outcome.NODE_FAILURE, 0, 5, blamed=(node,))


def test_a_dead_node_that_slurm_has_not_missed_yet_is_left_by_a_fresh_job() -> None:
    there = frozenset({"node1", "node2", "node3", "node4"})
    place = dataclasses.replace(SLURM, node_is_gone=True, usable_nodes=there, nodes_needed=3)
    decision = decide(faulty("node3"), [], RequeueConfig(), place)
    assert (decision.action, decision.exclude) == (Action.RESUBMIT, ("node3",))
    assert "Slurm still holds this one" in decision.reason


def test_a_blamed_node_that_is_needed_stays_and_the_job_waits_for_it() -> None:
    there = frozenset({"node1", "node2", "node3"})
    place = dataclasses.replace(SLURM, node_is_gone=True, usable_nodes=there, nodes_needed=3)
    decision = decide(faulty("node3"), [], RequeueConfig(), place)
    assert (decision.action, decision.exclude) == (Action.REQUEUE, ())
    assert "node3 cannot be left out, since 3 nodes are needed" in decision.reason


def test_the_latest_blamed_nodes_are_left_out_first_where_not_all_can_be() -> None:
    there = frozenset({"node1", "node2", "node3", "node4"})
    place = dataclasses.replace(SLURM, usable_nodes=there, nodes_needed=3)
    decision = decide(faulty("node2"), [faulty("node1")], RequeueConfig(), place)
    assert decision.exclude == ("node2",)


def test_an_error_is_the_trainings_own_only_if_the_attempt_just_before_had_it() -> None:
    first = attempt(Outcome.NETWORK_FAILURE, 0, 4, error="RuntimeError: x", failed_step=50)
    other = attempt(Outcome.NETWORK_FAILURE, 4, 9, error="RuntimeError: y", failed_step=60)
    again = dataclasses.replace(first, first_step=9, saved_step=12)
    assert decide(again, [first, other], RequeueConfig(), SLURM).action is Action.REQUEUE
    assert decide(again, [other, first], RequeueConfig(), SLURM).action is Action.STOP


def test_a_node_is_left_out_for_as_long_as_the_policy_says_to_the_second() -> None:
    policy = RequeueConfig(exclude_for_h=1.0)
    for age_s, left_out in ((3599.0, True), (3600.0, True), (3600.5, False)):
        blamed = attempt(Outcome.HANG, 0, 1, blamed=("node1",), ended=NOW - age_s)
        assert bool(excluded_nodes([blamed], policy, NOW)) is left_out


def test_an_attempt_of_which_nothing_is_told_began_and_saved_nothing() -> None:
    silent = AttemptSummary(attempt=0, outcome=Outcome.PREEMPTED, ended=NOW)
    assert not silent.progressed
    assert decide(silent, [], RequeueConfig(), SLURM).reason.endswith("goes on from step 0")
    assert dataclasses.replace(silent, saved_step=1).progressed
    assert not dataclasses.replace(silent, first_step=1, saved_step=1).progressed


def test_where_nobody_says_how_many_nodes_are_needed_none_is_kept() -> None:
    place = dataclasses.replace(SLURM, usable_nodes=frozenset({"node1"}))
    assert decide(faulty("node1"), [], RequeueConfig(), place).exclude == ("node1",)


def test_a_job_that_slurm_has_put_back_already_is_not_submitted_afresh() -> None:
    place = dataclasses.replace(NOTHING, requeued_already=True, can_resubmit=True)
    assert decide(faulty("node1"), [], RequeueConfig(), place).action is Action.REQUEUE
    gone = dataclasses.replace(NOTHING, node_is_gone=True)
    assert decide(faulty("node1"), [], RequeueConfig(), gone).action is Action.STOP


@pytest.mark.parametrize("usable", [None, frozenset({"n1", "n2", "n3", "n4"})])
def test_a_node_that_the_nodelist_names_is_kept_and_others_are_left_out(
    usable: frozenset[str] | None,
) -> None:
    ended = attempt(Outcome.NODE_FAILURE, 0, 5, blamed=("n1", "n2"))
    asked = frozenset({"n2"})
    place = dataclasses.replace(SLURM, usable_nodes=usable, nodes_needed=2, demanded_nodes=asked)
    said = decide(ended, [], RequeueConfig(), place)
    assert (said.action, said.exclude) == (Action.REQUEUE, ("n1",))
    assert said.reason.endswith("without n1; n2 cannot be left out, since slurm.nodelist names it")
    refused = attempt(Outcome.NETWORK_FAILURE, blamed=("n2",), refused="nodes")
    stopped = decide(refused, [], RequeueConfig(), place)
    assert stopped.action is Action.STOP
    assert "n2 cannot be left out, since slurm.nodelist names it: mend it, or" in stopped.reason
