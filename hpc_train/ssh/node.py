"""On a host: `python -m hpc_train.ssh.node`, what slurmstepd is on Slurm. Standard library only.

It reads lines from standard input: first what to start, as JSON, then `signal N`, `end SECONDS`, or
nothing but a sign of life. It answers in lines that begin with `MARK`; all else on its standard
output is a login shell's. Ranks are not left alone: where the lines end, or none comes for
`SILENCE_S`, they are asked to save and leave, and after `LEAVE_S` they are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hpc_train.runs.parent_death import signal_at_parents_death
from hpc_train.runs.process_group import signal_group
from hpc_train.slurm.step import free_port

MARK = "hpc-train-node "
BEAT_S = 2.0
SILENCE_S = 30.0
LEAVE_S = 30.0
POLL_S = 0.05


def main(argv: list[str]) -> int:
    """Serve one step; or, with `look FILE`, say what this host is and what the file holds here."""
    if argv[:1] == ["look"]:
        _say(json.dumps(look(Path(argv[1]))))
        return 0
    _say(json.dumps({"address": _address(), "port": free_port()}))
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    # Of who ends this machine's part: the ranks are asked to save, as where the lines end.
    signal.signal(signal.SIGTERM, lambda _number, _frame: lines.put(""))
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    while (first := lines.get()) == " ":
        pass
    return _Tasks(json.loads(first), lines).serve() if first.startswith("{") else 1


def look(shared: Path) -> dict[str, Any]:
    """What the check before a launch wants to know of this host."""
    from hpc_train import __version__

    try:
        token = shared.read_text(encoding="utf-8")
    except OSError:
        token = ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {
        "hostname": socket.gethostname(),
        # Two containers of one machine have networks of their own.
        "machine": f"{boot} {Path('/proc/self/ns/net').readlink()}",
        "token": token,
        "version": __version__,
        "torch": find_spec("torch") is not None,
        "gpus": sum(path.name[6:].isdigit() for path in Path("/dev").glob("nvidia*")),
    }


class _Tasks:
    """The processes of one step on this host."""

    def __init__(self, asked: dict[str, Any], lines: queue.SimpleQueue[str]) -> None:
        self._asked = asked
        self._lines = lines
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._heard = time.monotonic()
        self._kill_at: float | None = None

    def serve(self) -> int:
        """Start them, do what is asked, and say how each ended."""
        for rank, variables, output in self._asked["tasks"]:
            self._running[rank] = self._start(variables, output)
        beat_at = 0.0
        while self._running:
            self._listen()
            for rank, process in list(self._running.items()):
                if (code := process.poll()) is not None:
                    _signal(process, signal.SIGKILL)  # what it left in its group
                    del self._running[rank]
                    _say(f"exit {rank} {code}")
            now = time.monotonic()
            if now >= beat_at:
                beat_at = now + BEAT_S
                _say("beat")
            if now - self._heard > SILENCE_S:
                self._abandoned()
            if self._kill_at is not None and now >= self._kill_at:
                self._send(signal.SIGKILL)
        return 0

    def _start(self, variables: dict[str, str], output: str | None) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as stack:
            # Standard output is for what we say; without a file theirs goes to standard error.
            log = stack.enter_context(Path(output).open("ab")) if output else sys.stderr
            return subprocess.Popen(
                self._asked["argv"],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_us,
            )

    def _listen(self) -> None:
        try:
            line = self._lines.get(timeout=POLL_S)
        except queue.Empty:
            return
        self._heard = time.monotonic()
        word, _, number = line.partition(" ")
        if not line:
            self._abandoned()
        elif word == "signal":
            self._send(signal.Signals(int(number)))
        elif word == "end":
            self._send(signal.SIGTERM)
            self._kill_by(float(number))

    def _abandoned(self) -> None:
        if self._kill_at is None:
            self._send(signal.SIGUSR2)
            self._kill_by(LEAVE_S)

    def _kill_by(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        self._kill_at = at if self._kill_at is None else min(at, self._kill_at)

    def _send(self, number: signal.Signals) -> None:
        for process in self._running.values():
            if number is signal.SIGKILL:
                _signal(process, number)
            else:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)


def _end_with_us() -> None:
    signal_at_parents_death(signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    signal_group(process.pid, number, is_reaped=process.returncode is not None)


def _read(lines: queue.SimpleQueue[str]) -> None:
    """Pass the lines on; an empty one is their end, and a sign of life has one space."""
    for line in sys.stdin:
        lines.put(line.rstrip("\n") or " ")
    lines.put("")


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: then the lines end as well
        os.write(1, f"{MARK}{text}\n".encode())


def _address() -> str:
    """Where this host let ssh in, which others reach it by; by its route where that is loopback."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    if len(words) == 4 and not words[2].startswith(("127.", "::1")):
        return words[2].partition("%")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing (udp(7)); the address is nobody's
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
