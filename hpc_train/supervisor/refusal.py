"""The judge of an attempt whose ranks never started, since the preflight said no. Pure."""

from __future__ import annotations

from hpc_train.plan.policy import Refused
from hpc_train.plan.states import Outcome
from hpc_train.preflight.checks.findings import ALL_NODES
from hpc_train.preflight.checks.node_checks import SITE_CHECKS
from hpc_train.preflight.verdict import Verdict, together, told
from hpc_train.supervisor.outcome import AttemptOutcome, may_say

TOLD = 4  # findings in the reason of a refusal; all are in preflight.json
# What they find on all nodes at once is how the site is set up.
OF_THE_SITE = SITE_CHECKS | {"transport", "user_env"}
# What the tests between nodes find: not why the transport is what it is.
PAIR_CHECKS = frozenset({"bandwidth", "latency", "loss"})


@may_say(Outcome.NODE_FAILURE, Outcome.USER_ERROR, Outcome.NETWORK_FAILURE)
def judge_refusal(verdict: Verdict) -> AttemptOutcome:
    """Name what the preflight refused, and whether other nodes could change the answer."""
    bad = _bad(verdict)
    return AttemptOutcome(
        outcome=_outcome(verdict),
        reason=f"the preflight refused: {'; '.join(_reasons(verdict))}",
        node=bad[0] if bad else "",
        blamed=bad,
        refused=_refused(verdict),
        gone=tuple(item.node for item in verdict.findings if item.check == "launch"),
    )


def _bad(verdict: Verdict) -> tuple[str, ...]:
    """The nodes without which the answer could be another one.

    A node that is only slow is left out where the user does not want to start slow; but not where
    what all nodes share is refused as well, of which that node is not the reason.
    """
    if verdict.bad_nodes:
        return verdict.bad_nodes
    shared = any(it.node == ALL_NODES and it.check in OF_THE_SITE for it in verdict.against)
    named = {it.check for it in verdict.against if it.node != ALL_NODES}
    return () if shared and named <= PAIR_CHECKS else verdict.degraded_nodes


def _outcome(verdict: Verdict) -> Outcome:
    if _bad(verdict):
        return Outcome.NODE_FAILURE
    failed = {finding.check for finding in verdict.findings if finding.level == "fail"}
    # A variable that the user set to what cannot work is there at the next attempt as well.
    return Outcome.USER_ERROR if failed == {"user_env"} else Outcome.NETWORK_FAILURE


def _refused(verdict: Verdict) -> Refused:
    """Whether other nodes could change the answer; see `plan.policy`."""
    if _bad(verdict):
        return "nodes"
    checks = {item.check for item in verdict.against} - PAIR_CHECKS
    return "site" if checks and checks <= OF_THE_SITE else "untold"


def _reasons(verdict: Verdict) -> list[str]:
    """Why no, with the fix, the same on several nodes told once."""
    said = together(verdict.against)
    lines = [f"{where}: {told(item)}" for where, item in said[:TOLD]]
    return lines + ([f"and {len(said) - TOLD} more"] if len(said) > TOLD else [])
