"""`script.launcher: none`: a process of a script that starts its ranks by itself.

Which of its processes are ranks nobody knows before they say so: one becomes a rank when it makes
the process group, or takes an optimizer step without one. From then on it is followed, stopped and
recorded as any other. `start_hook/sitecustomize.py` calls this as each Python starts, so nothing
here imports more than it needs before there is a rank.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from hpc_train.plan import env_names
from hpc_train.training.private.after_import import after_import

if TYPE_CHECKING:
    from hpc_train.plan.plan import Plan
    from hpc_train.training.rank import Here, Rank
    from hpc_train.training.scripts.plain_script import PlainScript

_LAUNCHERS = ("torchrun", "torch.distributed", "accelerate", "deepspeed")


def follow_child(environ: Mapping[str, str]) -> None:
    """Follow this process, which a script's has started; no-op where no script runs."""
    if env_names.SCRIPT_NODE not in environ:
        return
    # Ours ignores it, and torch's mp.spawn ends its processes by it (multiprocessing/spawn.py).
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Slurm signals all processes of a step, and a launcher would end its ranks before they saved.
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    if any(word in arg for arg in sys.orig_argv[1:4] for word in _LAUNCHERS):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ScriptProcess().follow()


class ScriptProcess:
    """This process.

    Attributes:
        rank: None while it is none; of the process that hpc-train started, from its beginning.
        plain: Follows its steps, once it is a rank.
    """

    def __init__(self, rank: Rank | None = None) -> None:
        self.rank = rank
        self.plain: PlainScript | None = None
        self._passed_over = False
        self._exit_code: Any = 0
        self._until_ended = ExitStack()

    def follow(self) -> None:
        """From now on, and in processes that are forked off this one."""
        after_import(
            {
                "torch.optim.optimizer": self._meet_optimizers,
                "torch.distributed.distributed_c10d": self._meet_groups,
                "multiprocessing.process": self._meet_processes,
            }
        )
        os.register_at_fork(after_in_child=self._forked)

    def ended(self, error: BaseException | None) -> None:
        """What this process was there for is over; a rank that failed or was stopped leaves."""
        plain, rank = self.plain, self.rank
        if plain is None or rank is None:
            return
        self.plain = None
        self._until_ended.close()
        if isinstance(error, SystemExit):  # torch's mp.spawn leaves so behind any error
            error = None if error.code in (None, 0) else error.__context__ or error
        try:
            if error is not None:
                raise plain.ended_by(error) from None
            plain.finished()
        except BaseException as ending:  # noqa: BLE001 - the end of the process: all are recorded
            rank.end(ending)
        rank.finish()

    # -- what the script's process does

    def _forked(self) -> None:
        self.rank = self.plain = None
        self._passed_over = False

    def _meet_processes(self, module: Any) -> None:
        run = module.BaseProcess.run

        @functools.wraps(run)
        def run_and_end(process: Any) -> None:
            try:
                run(process)
            except BaseException as error:
                self.ended(error)
                raise
            self.ended(None)

        module.BaseProcess.run = run_and_end

    def _meet_optimizers(self, module: Any) -> None:
        def before(*given: Any) -> None:
            if self.plain is None and not self._passed_over:
                self._become(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
            if self.plain is not None:
                self.plain.before_step(*given)

        def after(*given: Any) -> None:
            if self.plain is not None:
                self.plain.after_step(*given)

        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)

    def _meet_groups(self, module: Any) -> None:
        make = module.init_process_group

        @functools.wraps(make)
        def make_and_become(*given: Any, **named: Any) -> Any:
            try:
                made = make(*given, **named)
            except Exception as error:
                from hpc_train.training.scripts.script_watch import fixed_port_taken

                asked = given[1] if len(given) > 1 else named.get("init_method")
                ours = os.environ[env_names.SCRIPT_PORT]
                taken = fixed_port_taken(error, asked, ours, socket.gethostname())
                if taken is None:
                    raise
                raise taken from None
            if self.plain is None:
                self._become(module.get_rank(), module.get_world_size())
            return made

        for place in (module, sys.modules.get("torch.distributed")):
            if hasattr(place, "init_process_group"):
                setattr(place, "init_process_group", make_and_become)  # noqa: B010 - mypy

    def _become(self, number: int, size: int) -> None:
        from hpc_train.plan.plan import Plan
        from hpc_train.training.fit_notes.broadcast_losses import broadcasts_noted
        from hpc_train.training.rank import Here

        here = Here.from_env(os.environ, socket.gethostname())
        here = dataclasses.replace(here, rank=number)
        if not _claim(here):  # two processes with one number, of which the first one counts
            self._passed_over = True
            return
        plan = Plan.from_json(here.run.plan.read_text(encoding="utf-8"))
        handlers, is_ours = self._handlers(), self.rank is not None
        if self.rank is None:
            self.rank = _new_rank(here, plan)
            if number == 0:
                self._until_ended.enter_context(broadcasts_noted(here.attempt_dir))
        else:
            self.rank.here.attempt_dir.heartbeat(self.rank.here.rank).unlink(missing_ok=True)
            self.rank.here, self.rank.heartbeat.rank = here, here.rank
        self.rank.heartbeat.ranks = size
        self.plain = _plain(self.rank, plan, size, handlers)
        if not is_ours and multiprocessing.parent_process() is None:
            self._tell_the_end()  # else `run_and_end` does

    def _handlers(self) -> dict[int, Any]:
        """What the script has set before this; ours are of the rank's stop flag."""
        stop = self.rank.stop if self.rank is not None else None
        numbers = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)
        found = {number: signal.getsignal(number) for number in numbers}
        default = signal.default_int_handler
        return {
            int(number): handler
            for number, handler in found.items()
            if callable(handler)
            and handler is not default
            and (stop is None or getattr(handler, "__self__", None) is not stop)
        }

    def _tell_the_end(self) -> None:
        """Of a script that its own launcher has started as `python SCRIPT`."""
        leave, say = sys.exit, sys.excepthook

        def noted_exit(code: Any = None) -> Any:
            self._exit_code = code
            leave(code)

        def noted_error(kind: Any, error: BaseException, trace: Any) -> None:
            self.ended(error)
            say(kind, error, trace)

        sys.exit, sys.excepthook = noted_exit, noted_error
        atexit.register(lambda: self.ended(SystemExit(self._exit_code)))


def _claim(here: Here) -> bool:
    """Whether this process is the one with this number; a file says on which node."""
    from hpc_train.runs.atomic import create_text

    claim = here.attempt_dir.claim(here.rank)
    claim.parent.mkdir(parents=True, exist_ok=True)
    try:
        create_text(claim, f"{os.environ[env_names.SCRIPT_NODE]} {os.getpid()}\n")
    except FileExistsError:
        return False
    return True


def _new_rank(here: Here, plan: Plan) -> Rank:
    from hpc_train.training.rank import Rank, log_to
    from hpc_train.training.resume.stop import StopFlag

    if here.log_dir is not None:
        log_to(here.log_dir / here.attempt_dir.rank_log(here.rank).name)
    stop = StopFlag(here.run.stop)
    if threading.current_thread() is threading.main_thread():
        stop.install()
    rank = Rank(here, stop)
    rank.begin(plan)
    return rank


def _plain(rank: Rank, plan: Plan, size: int, handlers: Mapping[int, Any]) -> PlainScript:
    from hpc_train.plan.world import World
    from hpc_train.training.scripts.plain_script import PlainScript
    from hpc_train.training.scripts.script_watch import follow_libraries, need_group

    node, nodes = int(os.environ[env_names.SCRIPT_NODE]), plan.shape.nodes
    per_node = max(1, size // nodes)
    world = World(
        nodes=nodes,
        ranks_per_node=per_node,
        world_size=size,
        rank=rank.here.rank,
        local_rank=rank.here.rank % per_node,
        node_rank=node,
        master_addr=os.environ.get(env_names.MASTER_ADDR, ""),
        master_port=0,
        devices_visible=None,
        launcher="torchrun",
    )
    if plan.script is None:
        raise TypeError("the plan has no script")
    plain = PlainScript(rank, plan, world, plan.script)
    plain.checks.append(functools.partial(need_group, rank, size))
    plain.follow(hooks=False, handlers=handlers)
    follow_libraries(plain)
    return plain
