"""What a script without a Trainer does about its ranks: held against those that were started.

Functions that a script calls for it are replaced before it begins; each does as ever, once what
cannot go well has been refused, on every rank and in our words.
"""

from __future__ import annotations

import functools
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import torch
import torch.distributed
import torch.multiprocessing
from torch.utils.data import DataLoader

from hpc_train.config.scripts.inner_launchers import instead_of, started_launcher
from hpc_train.config.scripts.spawned_ranks import instead_of_spawn
from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.plan import env_names
from hpc_train.plan.world import World
from hpc_train.runs.ranks import leave_note
from hpc_train.training.private.after_import import after_import
from hpc_train.training.private.torch_groups import keep_groups
from hpc_train.training.private.versions import LIGHTNING_PACKAGES
from hpc_train.training.rank import Rank
from hpc_train.training.rank_failure import PeerError
from hpc_train.training.resume.stop import shielded_from_signals
from hpc_train.training.scripts.hf_trainer import follow_hugging_face
from hpc_train.training.scripts.plain_script import PlainScript
from hpc_train.training.scripts.unshared_steps import note_unshared, users_place

_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use")
_HERE = ("localhost", "127.0.0.1", "::1")


def watch_script(rank: Rank, plain: PlainScript, world: World) -> None:
    """Be there for all of it; before the script begins."""
    watch = _Watch(rank, plain, world)
    plain.checks.append(watch.has_group)
    plain.looks.append(watch.has_exchanged)
    watch.replace()
    follow_libraries(plain)


def follow_libraries(plain: PlainScript) -> None:
    """What a script imports that stops and saves in ways of its own."""
    after_import(
        {
            "transformers.trainer": functools.partial(follow_hugging_face, plain=plain),
            "hpc_train.training.session": functools.partial(_follow_session, plain=plain),
        }
    )


def _follow_session(module: ModuleType, plain: PlainScript) -> None:
    """A Session stops, saves and tells by itself."""
    kind: Any = module.Session
    open_it = kind.open

    def open_session(*given: Any, **named: Any) -> Any:
        plain.hand_over_to_session()
        return open_it(*given, **named)

    kind.open = open_session


class _Watch:
    def __init__(self, rank: Rank, plain: PlainScript, world: World) -> None:
        self._rank, self._plain, self._world = rank, plain, world
        self._rngs = _rngs()
        self._started = False
        self._barriers = 0

    def replace(self) -> None:
        """Put ours in the place of torch's."""
        keep_groups()
        group: Any = torch.distributed
        group.init_process_group = self._around(group.init_process_group, self._make_group)
        group.distributed_c10d.init_process_group = group.init_process_group
        group.barrier = self._around(group.barrier, self._wait)
        processes: Any = torch.multiprocessing
        processes.spawn = self._around(processes.spawn, self._spawn)
        processes.start_processes = self._around(processes.start_processes, self._spawn)
        opened: Any = subprocess.Popen
        opened.__init__ = self._around(opened.__init__, self._open)
        system: Any = os
        system.system = self._around(system.system, self._system)
        loader: Any = DataLoader
        loader.__iter__ = self._around(loader.__iter__, self._iterate)

    def has_group(self) -> None:
        """Before the first step."""
        self._begin()
        need_group(self._rank, self._world.world_size)

    def has_exchanged(self) -> None:
        """Before the second step: the first one shall have had the gradients of all ranks."""
        if self._world.rank == 0:
            note_unshared(
                self._rank.here.attempt_dir,
                ranks=self._world.world_size,
                known=self._barriers,
            )

    def _around(self, real: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def call(*given: Any, **named: Any) -> Any:
            if not self._plain.is_plain or os.getpid() != self._rank.heartbeat.pid:
                return real(*given, **named)
            return ours(real, *given, **named)

        return call

    def _make_group(self, real: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._begin()
        asked = given[1] if len(given) > 1 else named.get("init_method")
        url = urlsplit(str(asked or ""))
        world = self._world
        if url.scheme in ("", "env") and named.get("store") is None:
            self._meet_where_started()
        elif world.nodes > 1 and url.hostname in _HERE and world.launcher == "slurm":
            where = f"at {url.hostname}, and they are on {world.nodes} nodes"
            self._refuse(
                f"the script meets its ranks {where}",
                f"leave {env_names.MASTER_ADDR} and init_method as they are set: env://",
            )
        size = named.get("world_size", -1)
        if size not in (-1, world.world_size) and (asked is None or url.scheme in ("tcp", "env")):
            self._refuse(
                f"the script makes a process group of {size}, and this run has {world.world_size}"
                " ranks",
                "leave world_size to the environment (WORLD_SIZE), or ask for as many: --nodes",
            )
        try:
            return real(*given, **named)
        except Exception as error:
            ours = str(world.master_port)
            taken = fixed_port_taken(error, asked, ours, self._rank.here.node)
            if taken is None:
                raise
            self._rank.end(taken)
            raise taken from error

    def _meet_where_started(self) -> None:
        """The place that the ranks were started with, whatever the script has set since.

        Under torchrun its agent serves that one alone, and every rank is a client: at another port
        they would wait for each other for half an hour (torch.distributed.rendezvous,
        TORCHELASTIC_USE_AGENT_STORE). Elsewhere that port was free, and no other job has it.
        """
        world = self._world
        ours = {
            env_names.MASTER_ADDR: world.master_addr,
            env_names.MASTER_PORT: str(world.master_port),
        }
        theirs = {name: os.environ.get(name) for name, value in ours.items()}
        if not world.master_port or theirs == ours:
            return
        os.environ.update(ours)
        if world.rank == 0:
            changed = [f"{name}={theirs[name]}" for name in ours if theirs[name] != ours[name]]
            leave_note(
                self._rank.here.attempt_dir,
                f"the script sets {' and '.join(changed)}{users_place()}; its ranks meet where they"
                f" were started: {':'.join(ours.values())}",
            )

    def _wait(self, real: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._barriers += 1
        return real(*given, **named)

    def _spawn(self, real: Callable[..., Any], *given: Any, **named: Any) -> Any:
        count = named.get("nprocs", given[2] if len(given) > 2 else 1)
        if count > 1:
            self._refuse(
                f"the script starts {count} processes (torch.multiprocessing), and this is one of"
                f" {self._world.world_size} ranks already",
                instead_of_spawn(self._world.nodes, 0),
            )
        return real(*given, **named)

    def _open(self, real: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._refuse_launcher(given[1] if len(given) > 1 else named.get("args", ()))
        return real(*given, **named)

    def _system(self, real: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._refuse_launcher(given[0] if given else named.get("command", ""))
        return real(*given, **named)

    def _refuse_launcher(self, command: Any) -> None:
        launcher, script = started_launcher(command)
        if launcher:
            self._refuse(
                f"the script starts {launcher}, and this is one of {self._world.world_size} ranks"
                " already: two launchers at once",
                instead_of(launcher, script),
            )

    def _iterate(self, real: Callable[..., Any], loader: Any) -> Iterator[Any]:
        """Slurm signals data workers as well, and one that dies of it ends its rank."""
        if not any(f"{package}.trainer.trainer" in sys.modules for package in LIGHTNING_PACKAGES):
            self._begin()  # else a Trainer may come yet, and each attempt has to begin alike
        with shielded_from_signals():
            batches: Iterator[Any] = real(loader)
        return batches

    def _begin(self) -> None:
        """Not Lightning's: what the script has not seeded is another at each start, as ever."""
        if self._started:
            return
        self._started = True
        for name, (state, seed) in self._rngs.items():
            if _rngs()[name][0] == state:
                seed()

    def _refuse(self, message: str, hint: str) -> None:
        _refuse(self._rank, message, hint)


def need_group(rank: Rank, size: int) -> None:
    """Ranks that know nothing of one another would each train all of it."""
    if size > 1 and not torch.distributed.is_initialized():
        from hpc_train.training.rank_failure import users_line  # on the way to an error

        where = f" ({line})" if (line := users_line()) else ""
        _refuse(
            rank,
            f"the script takes optimizer steps{where} and has made no process group, so that {size}"
            " ranks would each train by themselves and write the same files",
            "start it with --nodes 1 --gpus 1, or call torch.distributed.init_process_group()"
            " and wrap the model in DistributedDataParallel",
        )


def fixed_port_taken(
    error: Exception, init_method: Any, ours: str, node: str
) -> HpcTrainError | None:
    """What to say in place of `error`, where a process group's port was in use; else None.

    Args:
        ours: The port that was set in the environment.
    """
    if not _TAKEN.search(str(error)):
        return None
    fixed = urlsplit(str(init_method or "")).port
    port = str(fixed or os.environ.get(env_names.MASTER_PORT))
    if port == ours:  # somebody was faster: another try may do
        return PeerError(f"port {port} was free and is taken by now on {node}")
    return ConfigError(
        f"port {port} is taken on {node}, and the script has fixed it",
        f"let it read {env_names.MASTER_PORT}: a port that was free is set there",
    )


def _refuse(rank: Rank, message: str, hint: str) -> None:
    error = ConfigError(message, hint)
    rank.end(error)
    raise error


def _rngs() -> dict[str, tuple[Any, Callable[[], Any]]]:
    """State of each RNG, and what seeds it anew from the system's entropy."""
    return {
        "random": (random.getstate(), random.seed),
        "numpy": (repr(np.random.get_state()), np.random.seed),
        "torch": (torch.initial_seed(), torch.seed),
    }
