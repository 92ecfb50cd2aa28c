"""The program on each node: `python -m hpc_train.preflight.probes.probe --options FILE`.

Standard library only, so that it starts at once and also where torch does not. Its contract with
whoever starts it stands in `hpc_train.preflight.probe_files`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.errors import ConfigError, HpcTrainError, UsageError
from hpc_train.preflight.inventory.collect_inventory import collect_inventory, node_name
from hpc_train.preflight.options import TOKEN_ENV, PreflightOptions
from hpc_train.preflight.probes.pair_worker import PairWorker
from hpc_train.preflight.probes.rendezvous import (
    addresses_of,
    announce,
    find_coordinator,
    resolve,
    write_json,
)
from hpc_train.preflight.probes.wire import WireError, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from hpc_train.preflight.inventory.inventory import NodeInventory
    from hpc_train.preflight.verdict import Verdict

__all__ = ["VERDICT_FILE", "main", "read_options"]

VERDICT_FILE = "preflight.json"


def read_options(path: Path) -> PreflightOptions:
    """Return the options in a file.

    Raises:
        ConfigError: The file cannot be read or is no such document.
    """
    try:
        return PreflightOptions.from_json(json.loads(path.read_text()))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", "give --options a file") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}", "let hpc-train write it") from None


def _arguments(argv: Sequence[str], env: Mapping[str, str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hpc_train.preflight.probes.probe")
    parser.add_argument("--options", type=Path, required=True, help="JSON of PreflightOptions")
    parser.add_argument("--rank", type=int, default=int(env.get("SLURM_PROCID", "0")))
    parser.add_argument("--node", default="", help="name of this node, if not the scheduler's")
    parser.add_argument("--address", default="", help="where the other nodes reach this one")
    parser.add_argument("--root", default="", help="another root of /sys, /proc and /dev")
    return parser.parse_args(argv)


def main(
    argv: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.time,
) -> int:
    """Look, meet the others, and on rank 0 write the verdict. Returns 0 unless misused."""
    started = time.monotonic()
    environment = os.environ if env is None else env
    try:
        arguments = _arguments(sys.argv[1:] if argv is None else argv, environment)
        options = read_options(arguments.options)
        token = environment.get(TOKEN_ENV, "").encode()
        if len(token) < 16:
            raise UsageError(f"{TOKEN_ENV} holds no token", "let hpc-train start the probe")
        _Probe(options, arguments, environment, token, clock, started).run()
    except HpcTrainError as error:
        print(f"hpc-train probe: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


class _Probe:
    def __init__(
        self,
        options: PreflightOptions,
        arguments: argparse.Namespace,
        env: Mapping[str, str],
        token: bytes,
        clock: Callable[[], float],
        started: float,
    ) -> None:
        self._options = options
        self._rank: int = arguments.rank
        self._address: str = arguments.address
        self._root = Path(arguments.root or options.root)
        self._node: str = arguments.node or self._scheduled(env)
        self._env = env
        self._token = token
        self._clock = clock
        self._started = started
        self._folder = Path(options.folder)

    def _scheduled(self, env: Mapping[str, str]) -> str:
        """Return the name by which the supervisor expects this node."""
        name = node_name(env)
        if name in self._options.nodes or self._rank >= len(self._options.nodes):
            return name
        return self._options.nodes[self._rank]

    def run(self) -> None:
        inventory = collect_inventory(self._root, self._env, self._clock, node=self._node)
        write_json(self._folder / f"look-{self._node}.json", inventory.to_json())
        if self._rank == 0:
            self._coordinate(inventory)
        else:
            self._take_part(inventory)

    def _coordinate(self, inventory: NodeInventory) -> None:
        # On one node of all: the others start without it in half the time.
        from hpc_train.preflight.probes.coordinator import Coordinator

        listener = listen()
        local = ["127.0.0.1"] if self._options.is_local else []
        # 127.0.0.1 is last everywhere else: it serves this node's own probe alone.
        addresses = [*local, *addresses_of(inventory), "127.0.0.1"]
        announce(self._folder, addresses, listener.getsockname()[1])
        coordinator = Coordinator(
            self._options, self._token, listener, self._folder, self._clock, self._started
        )
        connection = threading.Thread(target=self._take_part, args=(inventory,), daemon=True)
        connection.start()
        verdict = coordinator.run(inventory)
        self._write(verdict)
        connection.join(1.0)

    def _write(self, verdict: Verdict) -> None:
        write_json(self._folder / VERDICT_FILE, verdict.to_json())

    def _take_part(self, inventory: NodeInventory) -> None:
        try:
            if self._options.master and not self._options.is_local:
                inventory = replace(inventory, resolution=resolve(self._options.master))
            # Twice the coordinator's patience: it may have started later than this probe.
            deadline = time.monotonic() + 2 * self._options.rendezvous_s
            sock, frames = find_coordinator(
                self._options, self._token, self._address or None, deadline
            )
            self._talk(sock, frames, inventory)
        except (WireError, OSError) as error:
            self._tell_loss(str(error))

    def _talk(self, sock: socket.socket, frames: object, inventory: NodeInventory) -> None:
        session = PairWorker(
            sock,
            frames,  # type: ignore[arg-type]
            inventory=inventory,
            rank=self._rank,
            token=self._token,
            address=self._address,
            root=self._root,
            clock=self._clock,
        )
        session.serve()

    def _tell_loss(self, reason: str) -> None:
        """Leave word for the supervisor: this node is alive and lost the first one."""
        document = {"node": self._node, "reason": reason, "seconds": self._spent()}
        with contextlib.suppress(OSError):
            write_json(self._folder / f"lost-{self._node}.json", document)

    def _spent(self) -> float:
        return time.monotonic() - self._started


if __name__ == "__main__":
    sys.exit(main())
