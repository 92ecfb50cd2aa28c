"""One rank that is a script of the user's: `python -m hpc_train.training.script_rank`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from hpc_train.plan import env_names
from hpc_train.plan.plan import Plan, ScriptPlan
from hpc_train.plan.world import World
from hpc_train.runs.events import EventKind, read_events
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import leave_note
from hpc_train.training import devices
from hpc_train.training.failures.absent_code import AbsentCodeError
from hpc_train.training.prepare import announce_threads, threads_are_users
from hpc_train.training.rank import Rank, main

# By which an Accelerator and a TrainingArguments of Hugging Face's meet the other ranks without
# GPUs: else each takes itself for the only one (accelerate.state, PartialState._prepare_backend).
_ACCELERATE_ON_CPUS = ("ACCELERATE_USE_CPU", "true")


class ScriptRank(Rank):
    """The script, with everything it needs to find the other ranks."""

    def train(self, plan: Plan, world: World, plan_hash: str) -> None:
        """Run the script to its end."""
        if plan.script is None:
            raise TypeError("the plan has no script")
        if not threads_are_users(world, plan):
            host = devices.see_host()
            ranks = devices.ranks_on_host(world)
            announce_threads(devices.cpus_per_rank(os.environ, host, ranks), world)
        _set_variables(plan, world)
        if Path(plan.workdir).is_dir():
            os.chdir(plan.workdir)
        from hpc_train.training.private.after_import import hold_hydra_clock
        from hpc_train.training.private.trainer_hooks import follow_trainers
        from hpc_train.training.scripts.caught_steps import CaughtSteps
        from hpc_train.training.scripts.plain_script import PlainScript, resume_arguments
        from hpc_train.training.scripts.script_fabric import follow_fabric
        from hpc_train.training.scripts.script_fits import ScriptFits
        from hpc_train.training.scripts.script_watch import watch_script

        hold_hydra_clock(_begun_s(self.here.run))
        fits = ScriptFits(self, plan, world, plan_hash)
        fits.seed()
        follow_trainers(fits)
        plain = PlainScript(self, plan, world, plan.script)
        plain.follow()
        follow_fabric(self, plan, world)
        watch_script(self, plain, world)
        caught = CaughtSteps.followed(plain)
        fits.on_trainer = plain.hand_over
        try:
            run_script(plan.script, resume_arguments())
        except BaseException as error:
            ending = plain.ended_by(error)
            if ending is error:
                raise
            raise ending from None
        plain.finished()
        if not plan.script.may_take_no_steps:
            said = fits.runs.check_end(stepped=plain.stepped) or caught.check_end()
            if said and world.rank == 0:
                leave_note(self.here.attempt_dir, said)


def _begun_s(run: RunDir) -> float:
    """When the first attempt began, in seconds since the epoch; the same on all ranks."""
    kind = EventKind.ATTEMPT_STARTED
    started = (event.time for event in read_events(run.events) if event.kind is kind)
    return next(started, run.plan.stat().st_mtime)


def _set_variables(plan: Plan, world: World) -> None:
    os.environ.update(places(world))
    if not plan.shape.gpus_per_node:
        os.environ.setdefault(*_ACCELERATE_ON_CPUS)


def places(world: World) -> dict[str, str]:
    """What torch's env:// and the libraries above it read (torch/distributed/run.py)."""
    return {
        "RANK": str(world.rank),
        "WORLD_SIZE": str(world.world_size),
        "LOCAL_RANK": str(world.local_rank),
        "LOCAL_WORLD_SIZE": str(world.ranks_per_node),
        "NODE_RANK": str(world.node_rank),
        "GROUP_RANK": str(world.node_rank),
        env_names.MASTER_ADDR: world.master_addr,
        env_names.MASTER_PORT: str(world.master_port),
    }


def run_script(script: ScriptPlan, more: Sequence[str] = ()) -> None:
    """As `python PATH ARGS MORE` does it: sys.argv, sys.path, `__main__`.

    Raises:
        AbsentCodeError: the script cannot be read here.
        BaseException: the script's own; leaving with 0 is no error.
    """
    path = Path(script.path)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise AbsentCodeError(
            [script.path],
            f"{path.absolute()} cannot be read here: {error.strerror}",
            "is it on a file system that all nodes see?",
        ) from error
    module = ModuleType("__main__")
    module.__file__ = str(path.absolute())
    sys.modules["__main__"] = module
    sys.argv = [script.path, *_local_rank(source), *script.args, *more]
    if not sys.flags.safe_path:
        sys.path[0] = str(path.resolve().parent)  # in place of the folder that -m has put there
    code = compile(source, module.__file__, "exec", dont_inherit=True)
    try:
        exec(code, module.__dict__)
    except SystemExit as end:
        if end.code not in (None, 0):  # what it caught says more, as in a Hydra app
            raise end.__context__ or end from None


def _local_rank(source: bytes) -> list[str]:
    """The argument that torch.distributed.launch gave to each rank, where the script declares it.

    Its default would put all ranks of a node on one GPU. Newer launchers write a hyphen, which
    scripts written for the older ones refuse (torch/distributed/launch.py).
    """
    declared = re.search(rb"""add_argument\(\s*['"](--local[_-]rank)['"]""", source)
    return [f"{declared[1].decode()}={os.environ['LOCAL_RANK']}"] if declared else []


if __name__ == "__main__":
    sys.exit(main(ScriptRank))
