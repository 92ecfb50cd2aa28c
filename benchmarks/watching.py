"""What it costs to watch runs: `top` with 10,000 of them, and `--follow` of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.many_runs import make_runs
from benchmarks.measure import BenchError
from benchmarks.places import Places
from benchmarks.rows import Row
from hpc_train.runs.layout import RunDir
from tests.cli.terminal import Terminal

ENDED, RUNNING, PENDING = 9_950, 20, 30
WATCHED_S = 60.0
FOLLOW = """
import sys
from pathlib import Path
from hpc_train import api
from hpc_train.cli.following import follow_run
follow_run(api.Run.find(sys.argv[1], Path(sys.argv[2])), show=True)
"""


def rows(_places: Places) -> Iterator[Row]:
    """The time to the first row, the queries and the share of a core of each."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        active = _made(home)
        env = {**os.environ, "PATH": f"{home}/bin:/usr/bin:/bin", "XDG_STATE_HOME": f"{home}/state"}
        beating = threading.Event()
        beats = threading.Thread(target=_beat, args=(active, beating), daemon=True)
        beats.start()
        yield from _top(home, env)
        yield _follow(home, env, active[0])
        beating.set()
        beats.join()


def _made(home: Path) -> list[RunDir]:
    template = RunDir(home / "template" / "20250101-000000-0000")
    template.metrics.mkdir(parents=True)
    template.plan.write_text("{}")
    jobs = [str(100 + number) for number in range(RUNNING + PENDING)]
    make_runs(template, home / "runs", ENDED, jobs)
    said = [f"{job}|RUNNING|None|N/A|N/A" for job in jobs[:RUNNING]]
    said += [f"{job}|PENDING|Priority|N/A|N/A" for job in jobs[RUNNING:]]
    binaries = home / "bin"
    binaries.mkdir()
    (binaries / "says").write_text("".join(f"{line}\n" for line in said))
    squeue = f"#!/bin/sh\necho >> {home}/asked\ncat {binaries}/says\n"
    for name, script in (("squeue", squeue), ("sacct", "#!/bin/sh\nexit 1\n")):
        (binaries / name).write_text(script)
        (binaries / name).chmod(0o755)
    newest = sorted((home / "runs").glob("*/*"), key=lambda path: path.name)[-len(jobs) :]
    return [RunDir(path) for path in newest[:RUNNING]]


def _beat(running: list[RunDir], end: threading.Event) -> None:
    """As their rank 0 does each second."""
    step = 1000
    while not end.wait(1.0):
        step += 3
        for run in running:
            file = run.latest_attempt.heartbeat(0)
            beat = {"rank": 0, "node": "n", "pid": 1, "time": time.time(), "moved": time.time()}
            pace = {"steps": 90_000, "steps_per_s": 3.0, "metrics": {"loss": 1 / step}}
            told = json.dumps({**beat, **pace, "phase": "train", "step": step})
            file.with_suffix(".new").write_text(told)
            file.with_suffix(".new").rename(file)


def _top(home: Path, env: dict[str, str]) -> Iterator[Row]:
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        terminal = _terminal(home, env)
        terminal.until("model-")
        seconds.append((time.monotonic() - began, _used_s(terminal.process.pid)))
        terminal.press("q")
        terminal.ends()
    clock_s, cpu_s = min(seconds)
    what = f"hpc-train top, {ENDED + RUNNING + PENDING:,} runs : to the first row"
    ours = f"{clock_s * 1000:.0f} ms ({cpu_s * 1000:.0f} ms of CPU)"
    yield Row(what=what, ours=ours, peer="", ratio="", target="< 1 s", ok=clock_s < 1.0)
    terminal = _terminal(home, env)
    terminal.until("pending")
    _drawn_for(terminal, 25.0)  # all have been read by then
    (home / "asked").write_text("")
    before, began = _used_s(terminal.process.pid), time.monotonic()
    _drawn_for(terminal, WATCHED_S)
    share = (_used_s(terminal.process.pid) - before) / (time.monotonic() - began)
    asked = len((home / "asked").read_text())
    terminal.press("q")
    terminal.ends()
    yield _share_row(f"hpc-train top, {RUNNING} of them train, {PENDING} wait : of a core", share)
    what = f"the same in {WATCHED_S:.0f} s : queries of Slurm"
    yield Row(
        what=what,
        ours=str(asked),
        peer="",
        ratio="",
        target=f"<= {WATCHED_S / 10:.0f}",
        ok=asked <= WATCHED_S / 10,
    )


def _terminal(home: Path, env: dict[str, str]) -> Terminal:
    return Terminal("top", "--runs-dir", str(home / "runs"), columns=120, **env)


def _drawn_for(terminal: Terminal, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        terminal.read(0.5)
        terminal.raw = ""


def _follow(home: Path, env: dict[str, str], run: RunDir) -> Row:
    command = [sys.executable, "-c", FOLLOW, run.run_id, str(home / "runs")]
    with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as process:
        time.sleep(5.0)
        before, began = _used_s(process.pid), time.monotonic()
        time.sleep(WATCHED_S / 2)
        if process.poll() is not None:
            raise BenchError("--follow did not stay")
        share = (_used_s(process.pid) - before) / (time.monotonic() - began)
        process.send_signal(signal.SIGINT)
    return _share_row("--follow of one of them : of a core", share)


def _share_row(what: str, share: float) -> Row:
    ours = f"{share:.2%}"
    return Row(what=what, ours=ours, peer="", ratio="", target="< 1 %", ok=share < 0.01)


def _used_s(pid: int) -> float:
    """CPU seconds of a process and of its children that have ended (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
