"""`python -m hpc_train.ssh.ssh_step`: srun's role where there is no scheduler.

It takes those of srun's options that steps here are started with, and says in srun's words which
rank ended how and which host is lost; so whoever starts a step and reads its log needs not know
which of the two it was. SIGUSR2 is passed on to the ranks, SIGTERM ends them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from hpc_train.config.hosts import Host, read_hosts
from hpc_train.plan import env_names
from hpc_train.plan.plan import Plan
from hpc_train.slurm.inherit import for_step
from hpc_train.ssh.connect import CONNECT_S, NEVER_ASK, forwarded, opening, why_not
from hpc_train.ssh.join import way_to
from hpc_train.ssh.node import BEAT_S, MARK

START_S = 60.0  # for bash, the lines of `env`, and Python on a host
SILENCE_S = 20.0
KILL_WAIT_S = 30.0  # slurm.conf(5), KillWait: from SIGTERM to SIGKILL where one rank has failed
TERMINATED_S = 1.0  # the same where the step itself was told to end
POLL_S = 0.05
IGNORED = ("mpi", "wait", "mem", "gres", "distribution", "open-mode", "cpus-per-task")


def step_command(plan_file: Path) -> tuple[str, ...]:
    """What stands in place of the word `srun`."""
    return (sys.executable, "-m", "hpc_train.ssh.ssh_step", f"--plan={plan_file}")


@dataclass
class _Node:
    """One host, and the ssh that leads there."""

    host: Host
    ranks: list[int]
    process: subprocess.Popen[bytes]
    address: str = ""
    port: int = 0
    said: list[str] = field(default_factory=list)  # the last words on its standard error
    heard: float = field(default_factory=time.monotonic)
    gone: bool = False

    def tell(self, line: str) -> None:
        """Write one line; a host that is gone is noticed elsewhere."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()


def main(argv: list[str] | None = None) -> int:
    """Run one step; its exit code is that of the rank that failed first, or 0."""
    options = _options(sys.argv[1:] if argv is None else argv)
    plan = Plan.from_json(options.plan.read_text(encoding="utf-8"))
    return _Step(plan, options).run()


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hpc_train.ssh.ssh_step", allow_abbrev=False)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json of the run")
    parser.add_argument("--nodelist", required=True)
    for name in ("nodes", "ntasks", "ntasks-per-node"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--output")
    parser.add_argument("--kill-on-bad-exit", type=int, default=0)
    parser.add_argument("--overlap", action="store_true")
    for name in IGNORED:
        parser.add_argument(f"--{name}")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


class _Step:
    def __init__(self, plan: Plan, options: argparse.Namespace) -> None:
        self._options = options
        self._plan = plan
        self._events: queue.SimpleQueue[tuple[_Node, str]] = queue.SimpleQueue()
        self._codes: dict[int, int] = {}
        self._failed = 0
        self._ending = False
        self._signals: list[signal.Signals] = []
        for number in (signal.SIGUSR2, signal.SIGTERM):
            signal.signal(number, lambda got, _frame: self._signals.append(signal.Signals(got)))
        self._nodes = self._connect()

    def run(self) -> int:
        """Start the tasks once every host is there, and stay to their end."""
        beat_at = time.monotonic()
        started = False
        deadline = beat_at + START_S
        while not all(node.gone for node in self._nodes):
            self._hear()
            self._obey()
            now = time.monotonic()
            if not started and all(node.address or node.gone for node in self._nodes):
                started = True
                self._start()
            if not started and now > deadline:
                self._give_up()
            if now >= beat_at:
                beat_at = now + BEAT_S
                for node in self._nodes:
                    node.tell("")
            self._look_for_silence(now)
        return self._failed

    def _connect(self) -> list[_Node]:
        hosts = {host.name: host for host in read_hosts(self._plan.hosts)}
        text = opening(self._plan, forwarded(for_step(os.environ), self._plan))
        nodes, per_node = [], self._options.ntasks_per_node
        for number, name in enumerate(self._options.nodelist.split(",")):
            process = subprocess.Popen(
                way_to(hosts[name]),
                env={**os.environ, **NEVER_ASK},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            ranks = list(range(number * per_node, (number + 1) * per_node))
            node = _Node(hosts[name], ranks, process)
            node.tell(text)
            nodes.append(node)
            for target in (self._read_answers, self._read_words):
                threading.Thread(target=target, args=(node,), daemon=True).start()
        return nodes

    def _read_answers(self, node: _Node) -> None:
        assert node.process.stdout is not None
        for line in node.process.stdout:
            text = line.decode(errors="replace").rstrip("\n")
            if text.startswith(MARK):
                self._events.put((node, text[len(MARK) :]))
            else:
                self._note(node, text)
        node.process.wait()
        self._events.put((node, "gone"))

    def _read_words(self, node: _Node) -> None:
        assert node.process.stderr is not None
        for line in node.process.stderr:
            self._note(node, line.decode(errors="replace").rstrip("\n"))

    @staticmethod
    def _note(node: _Node, text: str) -> None:
        node.said = [*node.said[-20:], text]
        _log(f"{node.host.name}: {text}")

    def _hear(self) -> None:
        try:
            node, text = self._events.get(timeout=POLL_S)
        except queue.Empty:
            return
        node.heard = time.monotonic()
        word, *numbers = text.split(" ")
        if word == "exit":
            self._ended(node, *map(int, numbers))
        elif word == "gone" and not node.gone:
            self._gone(node)
        elif text.startswith("{"):
            said = json.loads(text)
            node.address, node.port = said["address"], said["port"]

    def _start(self) -> None:
        if self._failed:
            return
        first, asked = self._nodes[0], self._options
        typed = os.environ.get(env_names.JOIN_MASTER)
        address, _, port = (typed or f"{first.address}:{first.port}").rpartition(":")
        for number, node in enumerate(self._nodes):
            common = {
                "WORLD_SIZE": str(asked.ntasks),
                "LOCAL_WORLD_SIZE": str(asked.ntasks_per_node),
                "NODE_RANK": str(number),
                "GROUP_RANK": str(number),
                # The name by which the supervisor knows the node; no other SLURM_* is there.
                "SLURMD_NODENAME": node.host.name,
                env_names.MASTER_ADDR: address,
                env_names.MASTER_PORT: port,
            }
            tasks = [
                (
                    rank,
                    {**common, "RANK": str(rank), "LOCAL_RANK": str(local)},
                    _output(asked.output, rank, node.host.name),
                )
                for local, rank in enumerate(node.ranks)
            ]
            node.tell(json.dumps({"argv": asked.command, "tasks": tasks}))

    def _ended(self, node: _Node, rank: int, code: int) -> None:
        self._codes[rank] = code
        if not code:
            return
        how = f"Exited with exit code {code}" if code > 0 else signal.strsignal(-code)
        _error(f"{node.host.name}: task {rank}: {how}")
        self._fail(code if code > 0 else 128 - code)

    def _gone(self, node: _Node) -> None:
        """The ssh to a host has ended; well, where all of its ranks have."""
        node.gone = True
        if all(rank in self._codes for rank in node.ranks):
            return
        if not node.address:
            why, fix = why_not(node.host, self._plan.shell.python, "\n".join(node.said))
            _error(f"Task launch for ssh failed on node {node.host.name}: {why} ({fix})")
            self._failed = self._failed or 1
            self._end(TERMINATED_S)
        else:
            _error(f"Node failure on {node.host.name}")
            self._fail(1)

    def _look_for_silence(self, now: float) -> None:
        for node in self._nodes:
            if not node.gone and node.address and now - node.heard > SILENCE_S:
                _log(f"{node.host.name}: no sign of life for {SILENCE_S:.0f} s")
                node.process.kill()
                self._gone(node)

    def _give_up(self) -> None:
        for node in self._nodes:
            if not node.address and not node.gone:
                node.said.append(f"it did not come within {START_S + CONNECT_S:.0f} s")
                node.process.kill()
                self._gone(node)

    def _fail(self, code: int) -> None:
        self._failed = self._failed or code
        if self._options.kill_on_bad_exit:
            self._end(KILL_WAIT_S)

    def _end(self, seconds: float) -> None:
        if not self._ending or seconds < KILL_WAIT_S:
            self._ending = True
            _log("Terminating: the other ranks are told to end")
            for node in self._nodes:
                node.tell(f"end {seconds:g}")
                if not node.address:
                    node.process.terminate()

    def _obey(self) -> None:
        while self._signals:
            number = self._signals.pop(0)
            if number is signal.SIGTERM:
                self._failed = self._failed or 128 + number
                self._end(TERMINATED_S)
                continue
            for node in self._nodes:
                node.tell(f"signal {int(number)}")


def _output(pattern: str | None, rank: int, node: str) -> str | None:
    """The file of one task: %t, %N and %% as in srun(1), "filename pattern"."""
    if pattern is None:
        return None
    parts = [part.replace("%t", str(rank)).replace("%N", node) for part in pattern.split("%%")]
    return "%".join(parts)


def _error(text: str) -> None:
    _log(f"error: {text}")


def _log(text: str) -> None:
    sys.stderr.write(f"hpc-train's srun: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
