"""What is said over several lines, or by each launcher in its own words -> one form for the rules.

Sources: torch's elastic/multiprocessing/errors (ChildFailedError's report) and api.py, Slurm's srun
(task_exit messages of launch.c), Open MPI's and PRRTE's abort reports, torch.multiprocessing.spawn,
Python's traceback module. What is of one program alone has a file of its own.
"""

from __future__ import annotations

import re
from signal import Signals
from typing import TYPE_CHECKING

from hpc_train.diagnose.lines_before import MpiBoxes
from hpc_train.diagnose.nan_reports import NanReports
from hpc_train.diagnose.pyxis import Containers
from hpc_train.diagnose.ray_ends import RayEnds
from hpc_train.diagnose.stacks import is_installed
from hpc_train.diagnose.starts import Starts
from hpc_train.diagnose.torchrun_json import FailedWorker, error_of_file, failed_worker
from hpc_train.diagnose.wrapped_lines import innermost_import
from hpc_train.plan.hostlist import fold_numbers

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
    # The command that deepspeed and torch.distributed.launch tell is the last one they spawned, not
    # that of the process that ended: no rank follows from it.
    r"exits with return code = (?P<code>-?\d+)",
    # A row of torchrun's report, of which a copy has lost the blanks and the ends of the lines.
    (
        r"\brank {0,9}:? {0,2}(?P<rank>\d{1,6}) \(local[_ ]rank: \d{1,6}\) {0,9}"
        r"exitcode {0,9}: (?P<code>-?\d{1,5}) "
    ),
    r"Child process \d+ \(local_rank (?P<local>\d+)\) FAILED \(exitcode (?P<code>-?\d+)\)",
    r"(?:died with <Signals\.|[Ss]ignal \d+ \()(?P<name>SIG\w{2,6})(?:: \d+>|\) received by PID)",
    (
        r"CalledProcessError: Command (?!.{0,9}(?:ssh|git|ninja)\b).{0,2000}"
        r"returned non-zero exit status (?P<code>\d+)"
    ),
    rf"\] Signal: {_HOW} \(\d+\)",
)
_FIELD = re.compile(r"\b(host|rank|exitcode) +: (\S{1,200})")
_NO_ERROR_FILE = re.compile(r"\berror_file *: <N/A>")
# Of those before the root cause: who was ended with it (SIGTERM) has not failed.
_REPORTED = re.compile(
    r"\brank +: (?P<rank>\d{1,6}) \(local_rank: \d+\)"
    r"|\bexitcode +: (?P<code>(?!-15\b)-?\d+) \(pid: "
)
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
# After such a line Python, or its logging, goes on: the traceback behind it ended nothing.
IGNORED = re.compile(r"Exception ignored in|--- Logging error ---")
_FRAME = re.compile(r'File "[^"]{1,300}", line \d|^\W{0,40}raise \w')
# A state on its way into a file, or into the copy that is written behind the training's back.
_PICKLES = re.compile(
    r'(?:torch/serialization\.py", line \d+, in _?(?:legacy_)?save\b|/resume/staging\.py", line \d)'
)
_STTY = re.compile(r"\bstty\b.{0,20}\bsize\b")  # a line that asks a terminal for its size
_NO_WORDS = re.compile(r"values to unpack|list index out of range|invalid literal for int")
_UNPICKLED = re.compile(r"pickle|Can't get local object")
# What launchers and loggers write before a line.
_HEAD = re.compile(
    r"\[[^\]]*\]|\([^)]*\)|<[^>]*>|[\d:.,|TZ+-]+|\S+\.py|\b(?:stderr|ERROR|CRITICAL|[EFW])\b"
)
_WHAT = re.compile(r"(?:^|\s)what\(\):\s+(\S.{0,300})")  # C++, of what ended the process
_BOXED = re.compile(r".{0,60}?\u2502 ")  # within the frame that rich draws around a traceback
_NEAR = 5  # lines
_LONGEST = 400  # lines of a traceback
# torch/distributed/rendezvous.py and elastic's, where a process goes to the store.
_STORE_FRAME = re.compile(
    r"[\\/]torch[\\/]distributed[\\/](?:elastic[\\/])?rendezvous\b.{0,60}\.py\", line \d{1,6},"
    r" in _(?:env|tcp)_rendezvous_handler|\b_create_(?:c10d|tcp)_store\b"
)
# elastic/agent/server/api.py, where the agents wait for each other once their workers have ended.
_EXIT_FRAME = re.compile(r"\bin _exit_barrier\s*$")
_NOT_REACHED = re.compile(
    r"RuntimeError: (?:Connection (?:timed out|refused)|No route to host|Network is unreachable)$"
)
# transformers, DeepSpeed, Megatron, accelerate: what they write before or while they save.
_SAVES = re.compile(
    r"(?:Saving (?:model checkpoint|current state)(?: to|:) "
    r"|(?:Configuration|weights|file) saved in |\[Torch\] Saving "
    r"|saving checkpoint at iteration +\d{1,12} to )(?P<path>[^\s,]{1,300})"
)
_WRITES = re.compile(
    r"No space left on device$|[Dd]isk quota exceeded$"
    r"|failed writing file \S{1,80}: file write failed"
)
_SAVED_NEAR = 200  # lines: a traceback of each rank of a node may stand between
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
        # How the first rank ended, and its host, until its error file is told.
        self._unexplained = ("", "")
        self._has_own_frames = False  # of the program, and not of the launcher
        # The ranks that torchrun's report says to have failed before it names the first.
        self._reported: set[int] = set()
        self._field_of = ""
        self._are_others = False  # whose signals are no news: not the first, or told before
        self._is_traceback = False
        self._is_ignored = False
        self._is_save = self._is_stty = False
        self._frame = ("", -_NEAR)
        self._alone: dict[str, tuple[str, Evidence]] = {}
        # Those that an unfinished traceback follows.
        self._cut: dict[str, tuple[str, Evidence]] = {}
        self._starts = Starts()
        self._reports = NanReports()
        self._told: set[tuple[str, Evidence]] = set()
        self._mpi, self._ray, self._containers = MpiBoxes(), RayEnds(), Containers()
        self._begun: dict[str, int] = {}  # tracebacks without an end, by file
        self._is_only = False  # what torchrun's report says of the others
        self._is_at_store = self._is_at_exit = False
        self._saved: dict[str, tuple[str, int]] = {}

    @property
    def is_open(self) -> bool:
        """Whether lines follow that belong to what was said: torchrun's root cause, a report."""
        is_open = self._root is not None or self._unexplained[0] != "" or self._mpi.is_open
        return is_open or self._reports.is_open or self._ray.is_open

    def sees(self, line: str) -> None:
        """Take a line of any kind, before it is known whether it tells something."""
        self._starts.sees(line)

    def cut_at(self, last: dict[str, int]) -> dict[str, int]:
        """Return the lines, by file, of tracebacks that go on to the end of their file."""
        begun = self._begun.items()
        return {file: line for file, line in begun if last[file] - line <= _LONGEST}

    def meaning(self, line: str, where: Evidence) -> tuple[str, str]:
        """Return (text, host); the text is empty where the line tells nothing of that kind."""
        line = innermost_import(line)
        way = self._mpi.take(line, where) or self._ray.take(line, where)
        if way := way or self._containers.take(line):
            return way, ""
        if line.rstrip().endswith("Failures:"):  # of torchrun's report: not the first one
            self._are_others, self._is_only = True, False
            self._reported = set()
        elif "<NO_OTHER_FAILURES>" in line:
            self._is_only = True
        elif "Root Cause (first" in line:
            self._root, self._are_others = {}, False
        elif (root := self._of_root(line)) is not None:
            if root[0]:
                return root
        elif self._root is None and (found := _REPORTED.search(line)):
            if found["code"] and self._field_of:
                self._reported.add(int(self._field_of))
            self._field_of = found["rank"] or ""
        if self._are_others and " received by PID" in line:
            return "", ""
        return self._of_process(line, where)

    def _of_root(self, line: str) -> tuple[str, str] | None:
        """Take a line of torchrun's root cause; None where it is none, text where it tells."""
        if self._root is not None and (found := _FIELD.search(line)):
            root = self._root
            root[found[1]] = found[2]
            if found[1] != "exitcode":
                return "", ""
            self._root, self._are_others = None, True
            self._unexplained = _how(self._root_rank(root), root["exitcode"]), root.get("host", "")
            return self._unexplained
        if self._unexplained[0]:
            (how, host), self._unexplained = self._unexplained, ("", "")
            is_told = _NO_ERROR_FILE.search(line) and not self._has_own_frames
            return (
                (f"without an error file: {how}", host) if is_told and "exit code" in how else None
            )
        return None

    def _root_rank(self, root: dict[str, str]) -> str:
        who = f"rank {root.get('rank', '?')}"
        others, self._reported = self._reported, set()
        if others:
            return f"{who} (the first; its torchrun saw {fold_numbers(others)} fail as well)"
        return f"{who}{' (the only one that its torchrun saw fail)' * self._is_only}"

    def _of_process(self, line: str, where: Evidence) -> tuple[str, str]:
        self._starts.take(line, where)
        self._reports.take(line, where)
        if worker := failed_worker(line):
            return _recorded(worker), worker.host
        if found := _SAVES.search(line):
            self._saved[where.file] = (found["path"].rstrip("."), where.line)
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
        found = [*ends, *self._starts.at_end(last), *self._reports.at_end()]
        found += self._mpi.at_end()
        found = [said for said in found if said not in self._told]
        self._told.update(found)
        return found

    def forget(self, where: Evidence) -> None:
        """Drop an exception that a rule explains."""
        for kept in (self._alone, self._cut):
            if where.file in kept and kept[where.file][1] == where:
                del kept[where.file]

    def _raised(self, line: str, where: Evidence) -> str:
        """Return a traceback's last line: the first that is no consequence of another."""
        if IGNORED.search(line):
            self._is_ignored = True
        elif "Traceback (most recent" in line:
            self._is_traceback, self._is_save, self._is_at_exit = True, False, False
            self._is_stty = False
            self._begun[where.file] = where.line
            alone = self._alone.get(where.file)
            if alone and where.line - alone[1].line <= _NEAR:
                self._cut[where.file] = alone
        elif found := _WHAT.search(line):
            return f"raised {found[1]}"
        elif self._is_traceback and _BOXED.match(line):
            self._frame = (where.file, where.line)
        elif error := error_of_file(line):
            return "" if _CONSEQUENCE.search(error) else f"raised {error}"
        elif found := _EXCEPTION.search(line):
            return self._exception(found["what"].rstrip(": "), line[: found.start("what")], where)
        elif _FRAME.search(line):
            self._frame = (where.file, where.line)
            self._has_own_frames = self._has_own_frames or _is_own(line)
            self._is_at_store = _STORE_FRAME.search(line) is not None
            self._is_at_exit = self._is_at_exit or _EXIT_FRAME.search(line) is not None
            self._is_save = self._is_save or bool(_PICKLES.search(line))
        elif self._is_traceback and _STTY.search(line):
            self._is_stty = True
        return ""

    def _exception(self, what: str, before: str, where: Evidence) -> str:
        is_open, self._is_traceback = self._is_traceback, False
        if self._is_save and _UNPICKLED.search(what):
            what += " (torch.save)"  # else it was on its way to another process
        if self._is_stty and _NO_WORDS.search(what):
            what += " (stty size)"
        self._is_save = self._is_stty = False
        self._cut.pop(where.file, None)
        self._begun.pop(where.file, None)
        is_ignored, self._is_ignored = self._is_ignored, False
        is_at_exit, self._is_at_exit = self._is_at_exit, False
        if is_at_exit and is_open and not is_ignored:
            return f"raised {what} at torchrun's exit barrier"
        if is_ignored or _CONSEQUENCE.search(what):
            return ""
        file, line = self._frame
        is_near = file == where.file and where.line - line <= _NEAR
        if is_open or is_near:
            return f"raised {what}{self._place(what, where) if is_near else ''}"
        if not _HEAD.sub("", before).strip():
            self._alone[where.file] = (what, where)
        return ""

    def _place(self, what: str, where: Evidence) -> str:
        """What the lines above an exception add to words that do not say where they are from."""
        if self._is_at_store and _NOT_REACHED.search(what):
            return " at the store of the rendezvous"
        path, line = self._saved.get(where.file, ("", 0))
        if path and where.line - line <= _SAVED_NEAR and _WRITES.search(what):
            return f", after the log told of saving {path}"
        return ""


def _is_own(line: str) -> bool:
    """Whether a frame is of a program that the user wrote."""
    found = re.search(r'File "([^"<]{1,300})", line \d', line)
    return found is not None and not is_installed(found[1]) and "/bin/" not in found[1]


def _recorded(worker: FailedWorker) -> str:
    if worker.error and not _CONSEQUENCE.search(worker.error):
        return f"raised {worker.error}"
    if worker.code:
        return _how(worker.who, worker.code)
    on = f" on {worker.host}" if worker.host else ""
    return f"recorded as failed: {worker.who}{on}{worker.how}"


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
