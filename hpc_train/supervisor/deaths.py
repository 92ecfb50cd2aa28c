"""Which ranks ended, and how, in the words of their launcher: srun or torch's elastic launcher."""

from __future__ import annotations

import re
import signal
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import hpc_train
from hpc_train.runs.log_tail import last_lines
from hpc_train.slurm.srun_words import loses_a_node, memory_limit


@dataclass(frozen=True, kw_only=True)
class Death:
    """A rank's end as its launcher saw it; `signal` is 0 where it exited by itself."""

    rank: int
    node: str = ""
    code: int = 0
    signal: int = 0


# srun(1): "srun: error: node2: tasks 4-5: Exited with exit code 1", "...: task 5: Killed".
SRUN_TASK = re.compile(r"srun: error: (\S+): tasks? ([\d,\-\[\]]+): (.+)")
SRUN_GIVES_UP = re.compile(r"srun: (?:Terminating|Force Terminated)")
SRUN_WORDS = {signal.strsignal(number): int(number) for number in signal.valid_signals()}
_LAST_LINES = 20  # slurmstepd repeats itself, and names the step that it ends

# Not the note of a line that failed, behind which the shell went on.
_REFUSED = re.compile(
    r"^hpc-train: (?:error: )?(?P<why>env\.(?!setup\.\d+ exited).+)(?:\n  fix: (?P<fix>.+))?",
    re.MULTILINE,
)


def deaths_in_srun_log(text: str) -> list[Death]:
    """The tasks that ended before srun began to stop the others, in srun's order."""
    deaths: list[Death] = []
    for line in text.splitlines():
        if loses_a_node(line) or (SRUN_GIVES_UP.search(line) and deaths):
            break
        found = SRUN_TASK.search(line)
        if found:
            node, tasks, words = found.groups()
            code, number = _srun_words(words)
            deaths += [
                Death(rank=rank, node=node, code=code, signal=number) for rank in _ranks(tasks)
            ]
    return deaths


def ranks_in_srun_log(text: str) -> list[int]:
    """All tasks whose end srun tells, those that it has ended as well."""
    return [rank for _, tasks, _ in SRUN_TASK.findall(text) for rank in _ranks(tasks)]


def over_memory(deaths: Iterable[Death], log_of: Callable[[int], Path]) -> dict[int, str]:
    """What the logs of killed ranks say of memory that Slurm killed them for, by rank."""
    killed = {death.rank for death in deaths if death.signal == signal.SIGKILL}
    said = {rank: memory_limit(last_lines(log_of(rank), _LAST_LINES)) for rank in killed}
    return {rank: words for rank, words in said.items() if words}


def _srun_words(words: str) -> tuple[int, int]:
    exited = re.search(r"[Ee]xit(?:ed with exit)? code (\d+)", words)
    if exited:
        return int(exited.group(1)), 0
    name = words.split("(")[0].strip()
    return 0, SRUN_WORDS.get(name, 9 if "Memory" in words else 0)


def _ranks(text: str) -> list[int]:
    ranks: list[int] = []
    for part in text.strip("[]").split(","):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


# torch.distributed.elastic.multiprocessing.errors.ChildFailedError prints such blocks.
ELASTIC_BLOCK = re.compile(
    r"rank\s+: (\d+) \(local_rank: \d+\)\s+exitcode\s+: (-?\d+) \(pid: \d+\)", re.MULTILINE
)


def deaths_in_elastic_log(text: str) -> list[Death]:
    """The ranks that an elastic launcher reports, its root cause first."""
    _, _, root = text.partition("Root Cause")
    found = ELASTIC_BLOCK.findall(root) + ELASTIC_BLOCK.findall(text)
    unique: dict[int, int] = {}
    for rank, code in found:
        unique.setdefault(int(rank), int(code))
    return [
        Death(rank=rank, code=max(code, 0), signal=max(-code, 0)) for rank, code in unique.items()
    ]


@dataclass(frozen=True)
class Crash:
    """Where a rank was when a signal of its own making ended it.

    Attributes:
        frame: The innermost one, `NAME (FILE:LINE)`; empty where no Python was at work.
        where: `FILE:LINE` of the innermost one in the user's own code; empty where there is none.
        file: With all of the stacks.
    """

    frame: str
    where: str
    file: str

    @property
    def place(self) -> str:
        """In words."""
        called = f", called from {self.where}" if self.where else ""
        return f"in {self.frame or 'no Python code'}{called}; its stack is in {self.file}"


def signal_name(number: int) -> str:
    """SIGKILL for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# faulthandler's words (Python/traceback.c, `_Py_DumpTracebackThreads`), the innermost frame first.
CRASHED = re.compile(r"^Current thread [^\n]*\n((?:  File [^\n]*\n)*)", re.MULTILINE)
FRAME = re.compile(r'  File "([^"]+)", line (\d+) in (.+)')
NOT_USERS = ("/site-packages/", "/dist-packages/", sysconfig.get_path("stdlib"), "<frozen")


def crash_in_stacks(text: str, file: str) -> Crash | None:
    """The crash in what a rank's faulthandler wrote into `file`; None where it tells of none."""
    if "Fatal Python error: " not in text:
        return None
    found = CRASHED.search(text)
    frames = FRAME.findall(found[1]) if found else []
    first = ["{2} ({0}:{1})".format(*frame) for frame in frames[:1]]
    others = (*NOT_USERS, str(Path(hpc_train.__file__).parent))
    users = [f"{path}:{line}" for path, line, _ in frames if not any(o in path for o in others)]
    return Crash("".join(first), "".join(users[:1]), file)


def environment_refused(said: str) -> str:
    """Why the shell around a launcher gave up, in the words of `plan.shell`; else empty."""
    found = _REFUSED.search(said)
    if found is None:
        return ""
    return f"{found['why']}: {found['fix']}" if found["fix"] else found["why"]
