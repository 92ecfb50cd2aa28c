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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpc_train.errors import ConfigError, HpcTrainError, UsageError
from hpc_train.preflight.inventory.collect_inventory import collect_inventory, node_name
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.preflight.options import TOKEN_ENV, VERDICT_FILE, PreflightOptions
from hpc_train.preflight.probes.pair_worker import PairWorker
from hpc_train.preflight.probes.rendezvous import (
    addresses_of,
    announce,
    find_coordinator,
    resolve,
)
from hpc_train.preflight.probes.wire import WireError, listen
from hpc_train.runs.atomic import write_text


def _read_options(path: Path) -> PreflightOptions:
    try:
        return PreflightOptions.read(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", "give --options a file") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}", "let hpc-train write it") from None


def _arguments(argv: Sequence[str], env: Mapping[str, str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hpc_train.preflight.probes.probe")
    parser.add_argument("--options", type=Path, required=True, help="JSON of PreflightOptions")
    rank = env.get("SLURM_PROCID", env.get("RANK", "0"))
    parser.add_argument("--rank", type=int, default=int(rank))
    parser.add_argument("--node", default="", help="name of this node, if not the scheduler's")
    parser.add_argument("--address", default="", help="where the other nodes reach this one")
    parser.add_argument("--root", default="", help="another root of /sys, /proc and /dev")
    return parser.parse_args(argv)


def main(
    argv: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.time,
) -> int:
    """Take the inventory, be tested with the others, and on rank 0 write the verdict.

    Returns:
        0 unless misused.
    """
    started = time.monotonic()
    environment = os.environ if env is None else env
    try:
        arguments = _arguments(sys.argv[1:] if argv is None else argv, environment)
        options = _read_options(arguments.options)
        token = environment.get(TOKEN_ENV, "").encode()
        if len(token) < 16:
            raise UsageError(f"{TOKEN_ENV} holds no token", "let hpc-train start the probe")
        _Probe(
            options=options,
            rank=arguments.rank,
            node=arguments.node or _scheduled_name(arguments.rank, options, environment),
            address=arguments.address,
            root=Path(arguments.root or options.root),
            token=token,
            clock=clock,
            started=started,
        ).run(environment)
    except HpcTrainError as error:
        print(f"hpc-train probe: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


def _scheduled_name(rank: int, options: PreflightOptions, env: Mapping[str, str]) -> str:
    """Return the name by which the supervisor expects this node."""
    name = node_name(env)
    if name in options.nodes or rank >= len(options.nodes):
        return name
    return options.nodes[rank]


@dataclass(frozen=True, kw_only=True)
class _Probe:
    options: PreflightOptions
    rank: int
    node: str
    address: str
    root: Path
    token: bytes
    clock: Callable[[], float]
    started: float

    def run(self, env: Mapping[str, str]) -> None:
        inventory = collect_inventory(self.root, env, self.clock, node=self.node)
        self._write(f"look-{self.node}.json", inventory.to_json())
        if self.rank == 0:
            self._coordinate(inventory)
        else:
            self._take_part(inventory)

    def _coordinate(self, inventory: NodeInventory) -> None:
        # On one node of all: the others start without it in half the time.
        from hpc_train.preflight.probes.coordinator import Coordinator

        listener = listen()
        local = ["127.0.0.1"] if self.options.is_local else []
        # 127.0.0.1 is last everywhere else: it serves this node's own probe alone.
        addresses = [*local, *addresses_of(inventory), "127.0.0.1"]
        announce(Path(self.options.folder), addresses, listener.getsockname()[1])
        coordinator = Coordinator(self.options, self.token, listener, self.clock, self.started)
        own = threading.Thread(target=self._take_part, args=(inventory,), daemon=True)
        own.start()
        self._write(VERDICT_FILE, coordinator.run(inventory).to_json())
        own.join(1.0)

    def _take_part(self, inventory: NodeInventory) -> None:
        try:
            if not (self.options.is_local or self.options.by_address):
                inventory = replace(inventory, resolution=resolve(self.options.nodes[0]))
            # Twice the coordinator's patience: it may have started later than this probe.
            deadline = time.monotonic() + 2 * self.options.rendezvous_s
            sock, frames = find_coordinator(self.options, self.token, self.address, deadline)
            PairWorker(
                sock=sock,
                frames=frames,
                inventory=inventory,
                rank=self.rank,
                token=self.token,
                address=self.address,
                root=self.root,
                clock=self.clock,
            ).serve()
        except (WireError, OSError) as error:
            # For the supervisor: this node is alive and has lost the first one.
            spent = time.monotonic() - self.started
            lost = {"node": self.node, "reason": str(error), "seconds": spent}
            with contextlib.suppress(OSError):
                self._write(f"lost-{self.node}.json", lost)

    def _write(self, name: str, document: object) -> None:
        # Whole or absent for its readers; no power cut has to be survived.
        path = Path(self.options.folder) / name
        write_text(path, json.dumps(document), durable=False)


if __name__ == "__main__":
    sys.exit(main())
