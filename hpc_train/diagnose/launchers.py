"""What is said over several lines, or by each launcher in its own words -> one form for the rules.

Sources: torch's elastic/multiprocessing/errors (ChildFailedError's report) and api.py, Slurm's srun
(task_exit messages of launch.c), Open MPI's and PRRTE's abort reports, torch.multiprocessing.spawn,
Python's traceback module, NCCL's src/ras/client_support.cc.
"""

from __future__ import annotations

import re
from signal import Signals
from typing import TYPE_CHECKING

from hpc_train.diagnose.rules import Failure
from hpc_train.diagnose.starts import Starts
from hpc_train.plan.hostlist import fold_numbers, folded

if TYPE_CHECKING:
    from hpc_train.diagnose.rules import Evidence

# How a process ended, each launcher in its own words: srun, mpirun, torchrun, multiprocessing, a
# shell, deepspeed, Python's subprocess and torchrun, torch.distributed.launch, Open MPI's handler.
_HOW = "(?P<how>Segmentation fault|Bus error|Killed|Aborted)"
# zsh's words, of a job or a command.
_ZSH = "(?P<how>segmentation fault|bus error|killed|abort)"
_EXITED = rf"(?:Exited with exit code (?P<code>\d+)|{_HOW})"
_ENDED = (
    r"srun: error: (?P<host>[\w.-]{1,200}): tasks? (?P<tasks>[\d,-]{1,200}): " + _EXITED,
    r"rank (?P<rank>\d+) with PID \S+ on node (?P<host>\S{1,200}) exited on signal (?P<signal>\d+)",
    r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+)",
    r"process \d+ terminated with (?:signal (?P<name>SIG\w{2,6})|exit code (?P<code>\d+))",
    rf": line \d+: +\d+ {_HOW}\b",
    r"^(?P<how>Killed)\s*$",
    r"^(?P<how>Aborted|Bus error|Segmentation fault) \(core dumped\)\s*$",
    rf"^(?:zsh: |\[\d{{1,4}}\]  [-+ ] ?)(?:\d{{1,9}} )?{_ZSH}(?: \(core dumped\))?  \S",
    r"(?:'--local[-_]rank=(?P<local>\d+)'.{0,4000})?exits with return code = (?P<code>-?\d+)",
    r"Child process \d+ \(local_rank (?P<local>\d+)\) FAILED \(exitcode (?P<code>-?\d+)\)",
    r"(?:died with <Signals\.|Signal \d+ \()(?P<name>SIG\w{2,6})(?:: \d+>|\) received by PID)",
    r"'--local[-_]rank=(?P<local>\d+)'.{0,2000}returned non-zero exit status (?P<code>\d+)",
    (
        r"CalledProcessError: Command (?!.{0,9}(?:ssh|git|ninja)\b).{0,2000}"
        r"returned non-zero exit status (?P<code>\d+)"
    ),
    rf"\] Signal: {_HOW} \(\d+\)",
)
_FIELD = re.compile(r"\b(host|rank|exitcode) +: (\S{1,200})")
_WORDS = {
    "segmentation fault": "SIGSEGV",
    "bus error": "SIGBUS",
    "killed": "SIGKILL",
    "aborted": "SIGABRT",
    "abort": "SIGABRT",
}
_EXCEPTION = re.compile(
    r"^.{0,120}?(?<![\w.'\"(/-])(?<!raise )(?<!except )"
    r"(?P<what>(?:[A-Za-z_]\w{0,60}\.){0,8}(?:[A-Z]\w{0,60}(?:Error|Exception)|Exception"
    r"|KeyboardInterrupt|SystemExit|StopIteration|BdbQuit)(?::[ '\"\u2018].{0,300}|:? ?$))"
)
_FRAME = re.compile(r'File "[^"]{1,300}", line \d|^\W{0,40}raise \w')
# What launchers and loggers write before a line.
_HEAD = re.compile(
    r"\[[^\]]*\]|\([^)]*\)|<[^>]*>|[\d:.,|TZ+-]+|\S+\.py|\b(?:stderr|ERROR|CRITICAL|[EFW])\b"
)
_WHAT = re.compile(r"(?:^|\s)what\(\):\s+(\S.{0,300})")  # C++, of what ended the process
_NEAR = 5  # lines
# Raised because another process or call failed; that one's words are the cause.
_CONSEQUENCE = re.compile(
    r"^(?:[\w.]+\.)?(?:ChildFailed|DistBackend|CalledProcess|SignalException|BrokenPipe|EOF"
    r"|ConnectionReset|Process(?:Exited|Raised)|RayTask|ActorDied|RayActor|EngineDead|Rendezvous"
    r"|DistStore|DistNetwork|Subprocess)|initialization failed|See (?:inner|root)|worker died"
    r"|: Caught \w+ in (?:DataLoader|replica)"
)


class Launchers:
    """Takes lines beside NCCL's, and returns what they mean in the form of the rules."""

    def __init__(self) -> None:
        self._root: dict[str, str] | None = None
        self._are_others = False  # whose signals are no news: not the first, or told before
        self._is_traceback = False
        self._is_ignored = False
        self._frame = ("", -_NEAR)
        self._alone: dict[str, tuple[str, Evidence]] = {}
        # Those that an unfinished traceback follows.
        self._cut: dict[str, tuple[str, Evidence]] = {}
        self._starts = Starts()
        self._told: set[tuple[str, Evidence]] = set()

    @property
    def is_open(self) -> bool:
        """Whether the lines of torchrun's root cause follow."""
        return self._root is not None

    def meaning(self, line: str, where: Evidence) -> tuple[str, str]:
        """Return (text, host); the text is empty where the line tells nothing of that kind."""
        if line.rstrip().endswith("Failures:"):  # of torchrun's report: not the first one
            self._are_others = True
        elif "Root Cause (first" in line:
            self._root, self._are_others = {}, False
        elif self._root is not None and (found := _FIELD.search(line)):
            self._root[found[1]] = found[2]
            if found[1] == "exitcode":
                root, self._root, self._are_others = self._root, None, True
                return _how(f"rank {root.get('rank', '?')}", root["exitcode"]), root.get("host", "")
        if self._are_others and " received by PID" in line:
            return "", ""
        self._starts.take(line, where)
        for words in _ENDED:
            if found := re.search(words, line):
                return _ended(found.groupdict()), found.groupdict().get("host") or ""
        return self._raised(line, where), ""

    def at_end(self, last: dict[str, int]) -> list[tuple[str, Evidence]]:
        """Return what a file ends with, each once: an exception without its traceback, a wait.

        Args:
            last: The last line by file.
        """
        alone = [said for file, said in self._alone.items() if last[file] - said[1].line <= _NEAR]
        ends = [(f"ends with {what}", where) for what, where in [*alone, *self._cut.values()][:1]]
        found = [said for said in (*ends, *self._starts.at_end(last)) if said not in self._told]
        self._told.update(found)
        return found

    def forget(self, where: Evidence) -> None:
        """Drop an exception that a rule explains."""
        for kept in (self._alone, self._cut):
            if where.file in kept and kept[where.file][1] == where:
                del kept[where.file]

    def _raised(self, line: str, where: Evidence) -> str:
        """Return a traceback's last line: the first that is no consequence of another."""
        if "Exception ignored in" in line:
            self._is_ignored = True
        elif "Traceback (most recent" in line:
            self._is_traceback = True
            alone = self._alone.get(where.file)
            if alone and where.line - alone[1].line <= _NEAR:
                self._cut[where.file] = alone
        elif found := _WHAT.search(line):
            return f"raised {found[1]}"
        elif found := _EXCEPTION.search(line):
            return self._exception(found["what"].rstrip(": "), line[: found.start("what")], where)
        elif _FRAME.search(line):
            self._frame = (where.file, where.line)
        return ""

    def _exception(self, what: str, before: str, where: Evidence) -> str:
        is_open, self._is_traceback = self._is_traceback, False
        self._cut.pop(where.file, None)
        is_ignored, self._is_ignored = self._is_ignored, False
        if is_ignored or _CONSEQUENCE.search(what):
            return ""
        file, line = self._frame
        if is_open or (file == where.file and where.line - line <= _NEAR):
            return f"raised {what}"
        if not _HEAD.sub("", before).strip():
            self._alone[where.file] = (what, where)
        return ""


def _ended(said: dict[str, str | None]) -> str:
    rank, local, tasks = said.get("rank"), said.get("local"), said.get("tasks")
    if tasks:
        who = f"task{'s'[: not tasks.isdigit()]} {tasks} of srun"
    else:
        who = f"rank {rank}" if rank else f"local rank {local}" if local else "a process"
    if signal := said.get("signal"):
        return _how(who, f"-{signal}")
    word = said.get("name") or _WORDS.get((said.get("how") or "").lower())
    return f"{who} ended with {word}" if word else _how(who, said.get("code") or "?")


def _how(who: str, code: str) -> str:
    """Return the same of `-9`, and of a shell's 137."""
    number = int(code) if code.lstrip("-").isdigit() else 0
    number = 128 - number if 128 < number < 160 else number
    if number < 0:
        name = Signals(-number).name if -number in set(Signals) else f"signal {-number}"
        return f"{who} ended with {name}"
    return f"{who} ended with exit code {code}"


_COUNTS = re.compile(r"Communicator ranks have different (?P<what>\w{1,40}) operation counts")
_LAUNCHED = re.compile(
    r"(?:(?<!\d)(?P<n>\d{1,9}) ranks have|Rank (?P<rank>\d+) has) (?:launched up to operation"
    r" (?P<op>\d+)|not launched any operations)"
    r"(?: -- GPU \S{1,40} managed by process \d+ on node (?P<host>\S{1,200}))?"
)
_RANK = re.compile(
    r"Rank (?P<rank>\d+) -- (?:GPU \S{1,40} managed by .{1,40} on node (?P<host>\S+))?"
)
_MAX_GROUPS = 100


class RasCounts:
    """The first report of ncclras whose ranks are at different operations."""

    def __init__(self) -> None:
        self._what = ""
        self._is_open = False
        self._groups: list[tuple[int, str, set[int], set[str]]] = []
        self._evidence: list[Evidence] = []

    def take(self, line: str, where: Evidence) -> bool:
        """Take a line; returns whether it was about the ranks' operations."""
        if found := _COUNTS.search(line):
            self._is_open = not self._what
            self._what = self._what or found["what"]
        elif found := _LAUNCHED.search(line):
            if self._is_open and len(self._groups) < _MAX_GROUPS:
                ranks = {int(found["rank"])} if found["rank"] else set()
                hosts = {found["host"]} if found["host"] else set()
                at = (int(found["n"] or 1), found["op"] or "none", ranks, hosts)
                self._groups.append(at)
        elif (found := _RANK.search(line)) and self._groups:
            if self._is_open:
                self._groups[-1][2].add(int(found["rank"]))
                self._groups[-1][3].update({found["host"]} - {None})
            return True
        else:
            return False
        if self._is_open and len(self._evidence) < 3:
            self._evidence.append(where)
        return True

    def failure(self) -> Failure | None:
        """Return what the report says, None where there was none."""
        if not self._groups:
            return None
        told = "; ".join(
            f"{count} rank{'s'[: count > 1]}{_named(count, ranks, hosts)} at {number}"
            for count, number, ranks, hosts in self._groups[:4]
        )
        if len(self._groups) > 4:
            told += f"; and others at {len(self._groups) - 4} further counts"
        return Failure(
            name="ras_counts",
            cause=f"the ranks were not at the same {self._what} operation: {told}",
            fix="ask ncclras again: counts that stand still are a hang: the stacks (py-spy dump) of"
            " the ranks that are behind, and did they call the same collectives? Counts that go on"
            " are ranks that were only not in step at that moment",
            evidence=tuple(self._evidence),
        )


def _named(count: int, ranks: set[int], hosts: set[str]) -> str:
    """Return ` (0-3 on n1,n2)`; a long report leaves ranks out."""
    if not ranks:
        return ""
    more = " among others" if len(ranks) < count else ""
    return f" ({fold_numbers(ranks)}{more}{' on ' + folded(sorted(hosts)) if hosts else ''})"
