"""The loop that watches ranks: what they leave in files, by a clock that nobody waits for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from hpc_train.config.schema import RequeueConfig, WatchdogConfig
from hpc_train.diagnose.uneven_shares import UNEVEN
from hpc_train.plan.policy import AttemptSummary, SchedulerOptions, decide
from hpc_train.plan.states import Action, RankExit
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.ranks import ExitRecord, Heartbeat, write_exit, write_heartbeat
from hpc_train.supervisor import watch as watching
from hpc_train.supervisor.deaths import Death
from hpc_train.supervisor.evidence import AttemptEvidence, Hang
from hpc_train.supervisor.outcome import classify
from hpc_train.supervisor.watch import Watched, watch

from .clock import Clock

NODES = ["node1", "node2"]


class Launcher:
    """Ranks of a launcher that ends when it is told to, or at `ends_at`."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.killed = False
        self.dead: list[Death] = []

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.killed = True
        self.code = 137
        self.dead = [*self.dead, Death(rank=0, node=NODES[0], signal=9)]

    def deaths(self) -> list[Death]:
        return self.dead

    def unlaunched(self, _nodes: object) -> dict[str, str]:
        return {}


class Scene:
    """Two ranks on two nodes; `act` says what they do at each moment (seconds since the start)."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.attempt = RunDir(folder).attempt(0)
        self.attempt.path.mkdir(parents=True)
        self.launcher = Launcher()
        self.clock = Clock(self._each)
        self.act: Callable[[float], None] = lambda _second: None
        self.lost: Collection[str] = ()
        self.asked = 0
        self.looks = 0
        self.ended_at = 0.0
        self._acted = -1.0
        monkeypatch.setattr(watching, "time", self.clock)

    def _each(self, second: float) -> None:
        if not self.launcher.killed:
            self.ended_at = second
        if second - self._acted >= 0.5:
            self._acted = second
            self.act(second)

    def _lost(self) -> Collection[str]:
        self.asked += 1
        return self.lost

    def _look(self) -> None:
        self.looks += 1

    def watch(self, **limits: object) -> Watched:
        return watch(
            self.launcher,  # type: ignore[arg-type]
            self.attempt,
            WatchdogConfig(**limits),  # type: ignore[arg-type]
            NODES,
            2,
            lost_nodes=self._lost,
            each_second=self._look,
        )

    def beat(self, rank: int, step: int, second: float, **more: object) -> None:
        fields = {"pid": 1, "moved": 0.0, "phase": "train", "step_time_s": 0.1, **more}
        write_heartbeat(
            self.attempt,
            Heartbeat(rank=rank, node=NODES[rank], time=second, step=step, **fields),  # type: ignore[arg-type]
        )

    def exit(self, rank: int, code: int) -> None:
        if not self.attempt.exit_record(rank).exists():
            write_exit(self.attempt, ExitRecord(rank=rank, node=NODES[rank], time=1.0, code=code))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def abort_code(attempt: AttemptDir) -> str:
    return attempt.abort.read_text() if attempt.abort.exists() else ""


def test_ranks_that_train_on_are_left_alone_far_beyond_every_limit(scene: Scene) -> None:
    def act(second: float) -> None:
        for rank in range(2):
            scene.beat(rank, int(second), second)
        if second > 50:
            scene.launcher.code = 0

    scene.act = act
    assert scene.watch(start_timeout_s=20, floor_s=10) == Watched(0)
    assert not scene.launcher.killed
    assert abort_code(scene.attempt) == ""
    assert 45 <= scene.looks <= 51, "about once a second"
    assert scene.asked == 0


def test_ranks_that_stand_still_are_ended_with_their_stacks(scene: Scene) -> None:
    def act(second: float) -> None:
        for rank in range(2):
            scene.beat(rank, min(int(second), 5), second)

    scene.act = act
    watched = scene.watch(floor_s=10)
    assert watched.hang is not None
    assert watched.hang.late_ranks == (0, 1)
    assert watched.launcher_code != 0
    assert 15 < scene.ended_at < 25
    assert scene.attempt.dump_request.exists()
    assert abort_code(scene.attempt) == f"{int(RankExit.WATCHDOG)}\n"
    assert scene.launcher.killed


STACK = """Current thread 0x02 (most recent call first):
  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 2 in wait
  File "/home/u/net.py", line {} in training_step
"""


@pytest.mark.parametrize("lines", [(23, 26), (23, 23)])
def test_where_each_rank_waits_is_told_if_that_is_not_one_place(
    scene: Scene, lines: tuple[int, int]
) -> None:
    def act(second: float) -> None:
        for rank in range(2):
            scene.beat(rank, 2, second)
            if scene.attempt.dump_request.exists():
                file = scene.attempt.rank_stacks(rank)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(STACK.format(lines[rank]))

    scene.act = act
    hang = scene.watch(floor_s=10).hang
    assert hang is not None
    ending = classify(AttemptEvidence(world_size=2, launcher_code=1, hang=hang))
    assert (ending.rank, ending.blamed, ending.failed_step) == (None, (), 2)
    assert "late:" not in ending.reason, "none is behind the others"
    both = all(f"/home/u/net.py:{line}" in ending.reason for line in lines)
    is_apart = lines[0] != lines[1]
    assert both == is_apart
    assert ("must not stand under an `if`" in ending.reason) == is_apart
    error = "it hung at net.py:23 and net.py:26" if is_apart else ""
    assert ending.error == error, "twice the same is the training's own"
    again = AttemptSummary(
        attempt=1, outcome=ending.outcome, ended=1.0, error=ending.error, failed_step=2
    )
    may = SchedulerOptions(can_requeue=True, can_resubmit=True, now=1.0)
    decision = decide(again, [again], RequeueConfig(), may)
    assert decision.action is (Action.STOP if is_apart else Action.REQUEUE)


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("is_silent", [True, False])
def test_a_node_whose_rank_is_behind_at_another_line_is_blamed_only_if_it_is_silent(
    scene: Scene, behind: int, is_silent: bool
) -> None:
    def act(second: float) -> None:
        for rank in range(2):
            is_stopped = is_silent and rank == behind
            scene.beat(rank, 2 - (rank == behind), 1.0 if is_stopped else second)
            if scene.attempt.dump_request.exists() and not is_stopped:
                file = scene.attempt.rank_stacks(rank)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(STACK.format(23 + rank))

    scene.act = act
    hang = scene.watch(floor_s=30).hang
    assert hang is not None
    ending = classify(AttemptEvidence(world_size=2, launcher_code=1, hang=hang))
    assert ending.blamed == ((NODES[behind],) if is_silent else ())
    assert ("different lines" in ending.reason) is not is_silent


def test_a_hang_of_uneven_shares_is_told_and_ends_the_run_at_the_second_time() -> None:
    uneven = f"rank 1 has had its last batch of epoch 1 at step 16, and rank 0 has more: {UNEVEN}"
    hang = Hang(
        reason="nothing moved for 60 s",
        who="late: rank 1 on node2",
        late_ranks=(1,),
        nodes=("node2",),
        step=16,
        places=("rank 0 was in a (torch/graph.py:9)", "rank 1 was in b (torch/c10d.py:3)"),
        uneven=uneven,
    )
    ending = classify(AttemptEvidence(world_size=2, launcher_code=1, hang=hang))
    assert (ending.rank, ending.node, ending.blamed) == (None, "", ())
    assert ending.reason == f"nothing moved for 60 s; {uneven}"
    may = SchedulerOptions(can_requeue=True, can_resubmit=True, now=1.0)
    again = AttemptSummary(
        attempt=1, outcome=ending.outcome, ended=1.0, error=ending.error, failed_step=16
    )
    assert decide(again, [], RequeueConfig(), may).action is Action.REQUEUE
    decision = decide(again, [again], RequeueConfig(), may)
    assert decision.action is Action.STOP
    assert decision.reason.endswith(UNEVEN)


def test_a_watchdog_that_is_switched_off_ends_nothing(scene: Scene) -> None:
    def act(second: float) -> None:
        for rank in range(2):
            scene.beat(rank, 5, second)
        if second > 50:
            scene.launcher.code = 3

    scene.act = act
    assert scene.watch(enabled=False, start_timeout_s=20, floor_s=10) == Watched(3)
    assert not scene.launcher.killed


@pytest.mark.parametrize(
    ("code", "grace_s"),
    [(RankExit.SAVED, 20), (RankExit.NETWORK, 3), (1, 3)],
    ids=["saved", "lost its peers", "failed"],
)
def test_the_others_have_time_to_end_and_longer_where_they_save(
    code: int, grace_s: float, scene: Scene
) -> None:
    failed_at = 5.0

    def act(second: float) -> None:
        scene.beat(0, int(second), second)
        scene.beat(1, int(second), second)
        if second >= failed_at:
            scene.exit(0, code)

    scene.act = act
    watched = scene.watch()
    assert (watched.hang, watched.lost_nodes) == (None, ())
    assert grace_s < scene.ended_at - failed_at < grace_s + 7, "with 3 s to leave by themselves"
    assert abort_code(scene.attempt) == f"{int(RankExit.NETWORK)}\n"


def test_one_failure_among_those_that_saved_leaves_no_long_grace(scene: Scene) -> None:
    def act(second: float) -> None:
        scene.beat(1, int(second), second)
        scene.exit(0, RankExit.SAVED)
        scene.launcher.dead = [Death(rank=1, node="node2", signal=9)]

    scene.act = act
    scene.watch()
    assert scene.ended_at < 12


def test_a_rank_that_finished_well_hurries_nobody(scene: Scene) -> None:
    def act(second: float) -> None:
        scene.beat(1, int(second), second)
        scene.exit(0, RankExit.FINISHED)
        if second > 30:
            scene.launcher.code = 0

    scene.act = act
    assert scene.watch() == Watched(0)
    assert scene.asked == 0


def test_a_node_that_is_gone_is_named_once_its_rank_falls_silent(scene: Scene) -> None:
    def act(second: float) -> None:
        scene.beat(0, int(second), second)
        if second < 5:
            scene.beat(1, int(second), second)

    scene.act = act
    scene.lost = {"node2", "node9"}
    watched = scene.watch()
    assert watched.lost_nodes == ("node2",)
    assert scene.ended_at < 15
    assert abort_code(scene.attempt) == f"{int(RankExit.NETWORK)}\n"
    assert scene.asked == 1


def test_a_node_whose_rank_says_nothing_after_another_failed_is_asked(scene: Scene) -> None:
    def act(second: float) -> None:
        for rank in range(2):
            scene.beat(rank, int(second), second)
        if second >= 5:
            scene.exit(0, 1)

    scene.act = act
    scene.lost = {"node1", "node2"}
    assert scene.watch().lost_nodes == ("node2",)


@pytest.mark.parametrize("died_before", [False, True])
def test_a_rank_that_is_ended_for_a_lost_node_has_not_died_before_it(
    scene: Scene, died_before: bool
) -> None:
    own = Death(rank=1, node="node2", signal=11)

    def act(second: float) -> None:
        scene.beat(0, int(second), second)
        if second < 5:
            scene.beat(1, int(second), second)
        if second >= 9 and died_before:
            scene.launcher.dead = [own]

    scene.act = act
    scene.lost = {"node2"}
    assert scene.watch().deaths == ((own,) if died_before else ())


def test_all_nodes_are_asked_where_steps_stall_and_not_more_often_than_needed(
    scene: Scene,
) -> None:
    def act(second: float) -> None:
        for rank in range(2):
            scene.beat(rank, min(int(second), 5), second)
        if second > 36:
            scene.launcher.code = 0

    scene.act = act
    assert scene.watch(floor_s=60) == Watched(0)
    assert 7 <= scene.asked <= 9, "from second 11 on, every 3 s"
    scene.launcher.code = None
    scene.lost = {"node1"}
    scene.act = lambda _second: None
    assert scene.watch(floor_s=60).lost_nodes == ("node1",)
