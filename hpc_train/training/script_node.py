"""`script.launcher: none`: the one process of a node, `python -m hpc_train.training.script_node`.

It runs the script, which starts its ranks by itself: they are followed where they are
(`script_process`), and this process says what they can no longer say, or is a rank itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.scripts.counted_gpus import COUNT, counted_gpus
from hpc_train.errors import RunFailedError
from hpc_train.plan import env_names
from hpc_train.plan.plan import Plan, Shape
from hpc_train.plan.states import RankExit
from hpc_train.plan.world import World
from hpc_train.runs.ranks import ExitRecord, read_exits, read_heartbeat
from hpc_train.training.rank import Rank, main
from hpc_train.training.resume.stop import Stopped
from hpc_train.training.script_rank import places, run_script
from hpc_train.training.scripts.script_process import ScriptProcess

if TYPE_CHECKING:
    from hpc_train.plan.plan import ScriptPlan

_HOOK = Path(__file__).with_name("start_hook")
_CRASHES = {"Segmentation fault": 11, "Aborted": 6, "Bus error": 7, "Floating-point exception": 8}
_KILLED = 9
_LAUNCHER_LOG = os.dup(2)  # before the rank's log takes its place


class ScriptNode(Rank):
    """The script, with what it needs to find the other nodes."""

    @override
    def started(self, shape: Shape) -> Shape:
        """One process a node."""
        return Shape(nodes=shape.nodes, ranks_per_node=1, gpus_per_node=shape.gpus_per_node)

    @override
    def train(self, plan: Plan, world: World, plan_hash: str) -> None:
        """Run the script to its end."""
        if plan.script is None:
            raise TypeError("the plan has no script")
        folders = [str(_HOOK), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ.update(
            {
                **places(world),
                "NNODES": str(world.nodes),
                "PYTHONPATH": os.pathsep.join(folders),
                # torchrun would end its ranks at once where Slurm signals all of a step.
                "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGINT",
                env_names.SCRIPT_NODE: str(world.node_rank),
                env_names.SCRIPT_PORT: str(world.master_port),
            }
        )
        if Path(plan.workdir).is_dir():
            os.chdir(plan.workdir)
        process = ScriptProcess(self)
        process.follow()
        self.heartbeat.also = lambda: self._look(process)
        try:
            _run(plan.script)
        except BaseException as error:  # noqa: BLE001 - the end of the process
            process.ended(error)
            raise self._because_of_ranks(error) from None
        process.ended(None)
        self.is_rank = not self._ranks()
        self.kind_of_end = "left"
        if self.is_rank and process.plain is None and not plan.script.may_take_no_steps:
            _check_spawns(plan.script, plan.shape.ranks_per_node)

    def _look(self, process: ScriptProcess) -> None:
        """Four times a second: while no rank is there, and when it has left, the script works."""
        if process.plain is not None:
            return
        attempt, number = self.here.attempt_dir, self.here.rank
        has_left = attempt.exit_record(number).exists()
        if has_left and self.heartbeat.phase != "end":
            last = read_heartbeat(attempt.heartbeat(number))
            self.heartbeat.phase, self.heartbeat.step = "end", last.step if last else None
        self.heartbeat.is_quiet = attempt.claim(number).exists() and not has_left
        self.heartbeat.moves()

    def _ranks(self) -> dict[int, int]:
        """Those that the script has started here, with their pids."""
        ranks = {}
        for claim in self.here.attempt_dir.claim(0).parent.glob("rank-*"):
            node, _, pid = claim.read_text(encoding="ascii").strip().partition(" ")
            if node == os.environ[env_names.SCRIPT_NODE] and int(pid) != os.getpid():
                ranks[int(claim.name.removeprefix("rank-"))] = int(pid)
        return ranks

    def _because_of_ranks(self, error: BaseException) -> BaseException:
        """What the script fails of: mostly of a rank's end, of which that rank tells best."""
        ranks = self._ranks()
        ended = {record.rank: record for record in read_exits(self.here.attempt_dir)}
        codes = {ended[rank].code for rank in ranks if rank in ended}
        killed = {rank: pid for rank, pid in ranks.items() if rank not in ended and _is_gone(pid)}
        self.is_rank = not killed and not codes - {int(RankExit.FINISHED)}
        reason = self.stop.reason
        if RankExit.SAVED in codes or reason is not None:
            step = max((_step(ended[rank]) for rank in ranks if rank in ended), default=0)
            return Stopped(reason or "stop file", step, saved=False)
        for rank, pid in killed.items():
            self._tell_death(rank, pid, error)
        return error

    def _tell_death(self, rank: int, pid: int, error: BaseException) -> None:
        """In the words of torch's elastic launcher, see `supervisor.deaths`."""
        code = getattr(error, "exit_code", 0) if getattr(error, "error_pid", 0) == pid else 0
        if not code:
            stacks = self.here.attempt_dir.rank_stacks(rank)
            text = stacks.read_text(errors="replace") if stacks.exists() else ""
            code = -next((n for words, n in _CRASHES.items() if words in text), _KILLED)
        block = f"rank      : {rank} (local_rank: 0)\n  exitcode  : {code} (pid: {pid})\n"
        os.write(_LAUNCHER_LOG, f"a rank of the script has ended\n  {block}".encode())


def _step(record: ExitRecord) -> int:
    return record.step or 0


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _check_spawns(script: ScriptPlan, ranks: int) -> None:
    """Raise a RunFailedError for a script that has started a rank for each of no GPUs."""
    torch, tree = sys.modules.get("torch"), script_tree(Path(script.path))
    counted = next(counted_gpus(tree), None) if tree is not None else None
    if counted is not None and torch is not None and not torch.cuda.device_count():
        said = f"{script.path}:{counted.line} started no process, since {COUNT}() is 0 here"
        raise RunFailedError(
            f"the script ended with exit code 0 and took no optimizer step: {said}",
            counted.instead(ranks),
        )


def _run(script: ScriptPlan) -> None:
    from hpc_train.training.scripts.plain_script import resume_arguments

    run_script(script, resume_arguments())


if __name__ == "__main__":
    node = int(os.environ.get("SLURM_PROCID") or os.environ["RANK"])
    sys.exit(main(ScriptNode, number=node * int(sys.argv[1])))
