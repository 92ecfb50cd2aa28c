"""Starts the probe as N processes of this host, each with a made root, and breaks some."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.options import TOKEN_ENV, VERDICT_FILE, PreflightOptions
from hpc_train.preflight.probe_files import collect, new_token, write_options
from hpc_train.preflight.probes.rendezvous import RENDEZVOUS_FILE
from hpc_train.preflight.verdict import Verdict

# What the pairs measure here is how busy this machine is: limits that no load of it reaches, and
# times that outlast one. Faults are made so large that they pass these limits.
STEADY = {
    "thresholds": Thresholds(
        slow_warn=0.1,
        slow_fail=0.01,
        latency_floor_us=2e6,
        loss_warn=0.3,
        loss_fail=0.6,
        speed_share=0,
    ),
    "timeout_s": 120.0,
    "rendezvous_s": 60.0,
    "silence_s": 20.0,
    "pair_s": 20.0,
}
PLAIN = ["-m", "hpc_train.preflight.probes.probe"]


def patched(code: str, main: str = "main(sys.argv[1:])") -> list[str]:
    """Arguments of a python that runs the probe after some code of the test's."""
    start = f"from hpc_train.preflight.probes.probe import main\nsys.exit({main})"
    text = f"import sys, time\n{code}\n{start}"
    return ["-c", text]


FAST_CLOCK = patched("", "main(sys.argv[1:], clock=lambda: time.time() + 3600)")
SLOW_LINK = patched(
    "import hpc_train.preflight.probes.pairtest as p\n"
    "real = p._Stream.send\n"
    "def slow(self, data):\n"
    "    if len(data) >= p._BLOCK: time.sleep(0.5)\n"
    "    real(self, data)\n"
    "p._Stream.send = slow\n"
)
# Leaves a file as soon as it measures a bandwidth, and takes its time over it and no CPU.
LONG_TEST = patched(
    "import pathlib\n"
    "import hpc_train.preflight.probes.pairtest as p\n"
    "def pour(stream, seconds, max_bytes):\n"
    "    options = pathlib.Path(sys.argv[sys.argv.index('--options') + 1])\n"
    "    options.with_name('pouring-' + sys.argv[sys.argv.index('--node') + 1]).touch()\n"
    "    for value in (1, 1, 0):\n"
    "        time.sleep(0.5)\n"
    "        stream.send(bytes([value]) * p._BLOCK)\n"
    "p._pour = pour\n"
)
# A node whose own probe never says a word.
MUTE = ["-c", "import time; time.sleep(600)"]
LOSSY_LINK = patched(
    "import hpc_train.preflight.probes.pairtest as p\n"
    "p._retransmits = lambda sock: {'again': 900, 'sent': 1000}\n"
)
SMALL_FRAMES = patched(
    "import hpc_train.preflight.probes.pairtest as p\n"
    "real = p.crosses\n"
    "p.crosses = lambda sock, to, data: len(data) < 500 and real(sock, to, data)\n"
    "class Deaf(p.DataServer):\n"
    "    def _echo_frames(self):\n"
    "        while not self._is_closed:\n"
    "            try: data, sender = self._udp.recvfrom(65535)\n"
    "            except OSError: return\n"
    "            if sender and len(data) < 500: self._udp.sendto(data, sender)\n"
    "import hpc_train.preflight.probes.pair_worker as m\n"
    "m.DataServer = Deaf\n"
)


class Probes:
    """N probes of one run.

    Args:
        folder: Empty; everything goes below it.
        made: One made node a process.
        how: rank -> python arguments instead of the plain probe's.
        changes: Of PreflightOptions, beside STEADY.
    """

    def __init__(self, folder: Path, made, how=None, **changes) -> None:
        self.folder = folder / "run"
        self.folder.mkdir(parents=True, mode=0o700)
        self.nodes = tuple(node.name for node in made)
        self.options = PreflightOptions(
            nodes=self.nodes, folder=str(self.folder), is_local=True, **{**STEADY, **changes}
        )
        self.token = new_token()
        path = write_options(self.options)
        env = os.environ | {TOKEN_ENV: self.token}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.started = time.monotonic()
        for rank, node in enumerate(made):
            root = node.write(folder / "roots" / node.name)
            arguments = (how or {}).get(rank, PLAIN)
            self.processes[node.name] = subprocess.Popen(
                [
                    sys.executable, *arguments, "--options", str(path), "--rank", str(rank),
                    "--node", node.name, "--address", f"127.0.1.{rank + 1}", "--root", str(root),
                ],
                env=env,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def __enter__(self) -> Probes:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def wait_for(self, name: str, timeout_s: float = 120) -> Path:
        path = self.folder / name
        end = time.monotonic() + timeout_s
        filled = name in (RENDEZVOUS_FILE, VERDICT_FILE)  # they are there from the start, empty
        while not path.exists() or (filled and not path.stat().st_size):
            assert time.monotonic() < end, f"{name} did not come"
            time.sleep(0.01)
        return path

    def port(self) -> int:
        return json.loads(self.wait_for("rendezvous.json").read_text())["port"]

    def signal(self, node: str, number: signal.Signals) -> None:
        self.processes[node].send_signal(number)

    def verdict(self, timeout_s: float = 240) -> tuple[Verdict, float]:
        """The written verdict, and the seconds from the start until it was there."""
        self.wait_for("preflight.json", timeout_s)
        return collect(self.options), time.monotonic() - self.started

    def ended(self, timeout_s: float = 120) -> list[int]:
        return [process.wait(timeout_s) for process in self.processes.values()]


def renamed(node, name: str):
    return replace(node, name=name)
