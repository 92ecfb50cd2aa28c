"""Logs of any origin -> a diagnosis: the rules find what failed, the first of it is the culprit."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpc_train.diagnose.around import PREFIX, Around, look_around
from hpc_train.diagnose.diagnosis import Culprit, Diagnosis
from hpc_train.diagnose.first_pass import Marks, telling_lines
from hpc_train.diagnose.flight_recorder import DumpError, RankDump, find_stall, is_dump, read_dump
from hpc_train.diagnose.launchers import IGNORED
from hpc_train.diagnose.log_files import find_logs, is_binary
from hpc_train.diagnose.nccl.nccl_log import LogReader
from hpc_train.diagnose.own_errors import REFUSAL, fix_below, refused_command
from hpc_train.diagnose.rules import MAX_TEXT, Evidence, Failure, alike_line
from hpc_train.diagnose.shorten import shortened
from hpc_train.diagnose.stacks import is_installed
from hpc_train.diagnose.who import node_of, rank_of
from hpc_train.errors import HpcTrainError

_MOST_LOOKED_AT = 32
_MAX_TRACEBACKS = 10_000
# Of NCCL's own side notes one, a driver that it does not find; how far a program came; warnings.
_TOLD_NOTES = (
    *("ras_counts", "start_open", "libcuda", "only_warned", "optional_import", "requeued"),
    *("stray_connection", "no_loss_once"),
    *("not_activated", "tool_missing", "command_missing", "folder_missing", "crlf"),
    *("nccl_tests_no_row", "nccl_tests_no_mpi", "nccl_tests_alone"),
)
_EXCEPTION = re.compile(
    r"[A-Za-z_][\w.]*(?::|(?:(?<=[a-z])(?:Error|Exception|Interrupt|Exit|Iteration|Quit)"
    r"|\.(?:Empty|Full|Error|[Tt]imeout))$)"
)
_HEAD = "Traceback (most recent call last)"
_RAISED = re.compile(r"[\w.]{0,200}(?:Error|Exception|Interrupt|Exit)(?::|$)")
_FRAME = re.compile(rf'(?:{PREFIX.pattern})?\s*File "[^"]{{1,300}}", line \d{{1,7}}, in \S')
_FILE = re.compile(r'File "([^"]{1,300})", line \d')
_LATE = re.compile(r"(?:did not come to [\w ]+|never joined it): (?:ranks? )?(\d+)\s*(?:$|;)")


@dataclass
class ReadLogs:
    """Everything that was read, from any number of files; bounded by ranks, not by lines."""

    reader: LogReader = field(default_factory=LogReader)
    tracebacks: dict[str, Evidence] = field(default_factory=dict)
    # By file a frame before any head of a traceback, as in a log that was cut; None: it has none.
    frames: dict[str, Evidence | None] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)
    marks: Marks = field(default_factory=dict)
    lines: int = 0
    ignored: tuple[str, int] = ("", 0)
    dumps: dict[int, RankDump] = field(default_factory=dict)

    def read(self, name: str, without: re.Pattern[str] | None = None) -> None:
        """Read one log, but for lines that begin `without`; what cannot be read is a note.

        A file of torch's flight recorder is no log, and is kept until all of them are there.
        """
        rank = rank_of(Evidence(file=name, line=0, text=""))
        if rank is not None:
            self.ranks[name] = rank
        try:
            if is_dump(name):
                self._read_dump(name)
                return
            if len(self.names) < _MOST_LOOKED_AT:
                self.names.append(name)
            for number, line in telling_lines(name, self.marks):
                if without is None or not without.match(line):
                    self.feed(line, name, number)
        except OSError as error:
            self.notes.append(f"{name} cannot be read: {error.strerror or error}")

    def _read_dump(self, name: str) -> None:
        try:
            dump = read_dump(name)
        except DumpError as error:
            self.notes.append(f"{name} is no dump of torch's flight recorder: {error}")
            return
        known = self.dumps.setdefault(dump.rank, dump)
        if known is not dump:
            self.notes.append(f"{name} is passed over: {known.file} is of rank {dump.rank} as well")

    def read_if_there(self, path: Path, without: re.Pattern[str] | None = None) -> None:
        """The same of a file of a run, which may have none."""
        if os.path.lexists(path):
            self.read(str(path), without)

    def feed(self, line: str, name: str, number: int) -> None:
        """Take one line."""
        self.lines += 1
        self.reader.feed(line, name, number)
        where = Evidence(file=name, line=number, text=shortened(line.strip(), MAX_TEXT))
        if IGNORED.search(line):
            self.ignored = name, number + 1
        elif _HEAD in line:
            self.frames.setdefault(name, None)
            if len(self.tracebacks) < _MAX_TRACEBACKS and self.ignored != (name, number):
                self.tracebacks.setdefault(name, where)
        elif len(self.frames) < _MAX_TRACEBACKS and 'File "' in line and _FRAME.match(line):
            self.frames.setdefault(name, where)

    def findings(self) -> tuple[Culprit, ...]:
        """What failed, the first culprit first."""
        self.reader.timeouts.recorded = find_stall([*self.dumps.values()])
        report = self.reader.report()
        found = [self._finding(failure, report.hosts) for failure in report.failures]
        known = [item for item in found if item.is_known]
        if len(known) == len(found) and all(item.time is not None for item in found):
            found.sort(key=lambda item: item.time or 0.0)
        return tuple(found)

    def first_traceback(self) -> tuple[Evidence, Around] | None:
        """The first in time; in the order of the files where no line tells one."""
        places = [self._begin(place) for place in [*self.tracebacks.values()][:_MOST_LOOKED_AT]]
        return self._earliest(places) if places else None

    def _begin(self, head: Evidence) -> Evidence:
        """Where the first traceback of a file begins; a log that was cut has no head of it."""
        frame = self.frames.get(head.file)
        if frame is None:
            return head
        lines = look_around(frame, self.marks.get((frame.file, frame.line))).traceback()
        is_whole = len(lines) > 1 and _RAISED.match(lines[-1])
        return frame if is_whole else head

    def _cut_frames(self) -> tuple[Evidence, Around] | None:
        """The frames that a file ends with, where it has neither their head nor their exception."""
        frames = [place for place in self.frames.values() if place][:_MOST_LOOKED_AT]
        for place in frames:
            around = look_around(place, self.marks.get((place.file, place.line)))
            lines = [item for item in around.numbered_traceback() if item[1].strip()]
            last = [number for number, line in enumerate(around.lines) if line.strip()]
            is_end = bool(lines and last) and lines[-1][0] == last[-1] and around.is_whole
            if is_end and lines[-1][1][:1].isspace():
                return place, around
        return None

    def _earliest(self, places: Sequence[Evidence]) -> tuple[Evidence, Around]:
        """The first in time, by what the lines and those before them tell."""
        looked = [
            (place, look_around(place, self.marks.get((place.file, place.line))))
            for place in places
        ]
        return min(looked, key=lambda item: item[1].time or float("inf"))

    def _finding(self, failure: Failure, hosts: Sequence[str]) -> Culprit:
        """With the place of the first line that says so, by the times that the lines tell."""
        said = (failure, *failure.others)
        places: dict[str, tuple[Evidence, Failure]] = {}
        for one in said:
            for place in one.firsts or one.evidence:
                known = places.get(place.file)
                if known is None or place.line < known[0].line:
                    places[place.file] = place, one
        of = dict([*places.values()][:_MOST_LOOKED_AT])
        place, around = self._earliest([*of])
        told = of[place]
        others = tuple(one for one in said if one is not told)
        evidence = (place, *(item for item in told.evidence if item != place))[:3]
        node = node_of(place) or (told.hosts[0] if len(told.hosts) == 1 else "")
        rank = rank_of(place, is_labelled=around.is_labelled)
        said_by = told.labels if around.is_labelled else told.ranks
        ranks = tuple(sorted(said_by)) if rank is not None else ()
        nodes = _whole_names(told.nodes, hosts) if node or told.hosts else ()
        if told.of_another:
            rank, node, nodes = self._late(told.cause), "", ()
        recorded = self.reader.timeouts.recorded if told.name == "collective_timeout" else None
        return Culprit(
            name=told.name,
            cause=told.cause,
            fix=_fix(told, around),
            rank=rank,
            ranks=() if told.of_another else ranks,
            told_by=ranks if told.of_another else (),
            node=node,
            nodes=nodes,
            has_more=told.has_more,
            time=around.time if around.time or not recorded else recorded.time_ns / 1e9,
            is_later=around.is_later,
            is_dated=around.is_dated,
            step=around.step,
            evidence=evidence,
            times=told.times,
            alike=alike_line(replace(told, others=others)),
            kind=told.kind,
        )

    def _late(self, cause: str) -> int | None:
        """The one rank that others waited for or lost: by their words, or as it alone is silent."""
        if found := _LATE.search(cause):
            return int(found[1])
        silent = [rank for name, rank in self.ranks.items() if name not in self.tracebacks]
        return silent[0] if len(silent) == 1 < len(self.ranks) else None

    def diagnosis(self, of: str) -> Diagnosis:
        """All of it."""
        found = self.findings()
        if not any(item.is_known for item in found) and (own := self._refused()):
            found = (own, *found)
        first = self.first_traceback() if not (found and found[0].is_known) else None
        if first and not found:
            found = (_of_traceback(*first),)
        if not found and (cut := self._cut_frames()):
            found, first = (replace(_of_traceback(*cut), fix=""),), cut
        return Diagnosis(
            of=of,
            findings=found,
            traceback=first[1].traceback() if first else (),
            traceback_at=first[0] if first else None,
            notes=(*self.notes, *(() if found else self._progress())),
        )

    def _refused(self) -> Culprit | None:
        """A command of hpc-train's own that a job's script has typed, and that was refused."""
        for name in self.names:
            with contextlib.suppress(OSError):
                if own := refused_command(name):
                    return own
        return None

    def _progress(self) -> Iterator[str]:
        """Yield how far a program came by its log, where that is less than one would expect."""
        for note in self.reader.report().notes:
            if note.name in _TOLD_NOTES:
                yield f"{note.cause}; {note.fix}"


def diagnose_logs(words: Sequence[str]) -> Diagnosis:
    """Say why what wrote these logs failed: files, folders, patterns, `-`; also gzip and UTF-16.

    Raises:
        UsageError: One of them is not there.
        HpcTrainError: None can be read, or all are empty.
    """
    names = find_logs(words)
    logs = ReadLogs()
    for name in names:
        logs.read(name)
    has_any = len(logs.notes) < len(names) and (logs.dumps or _any_text(names))
    if not logs.lines and not has_any:
        why = logs.notes[0] if logs.notes else f"{', '.join(words)}: there is nothing in it"
        raise HpcTrainError(why, "name a log that holds what the ranks or the job have written")
    found = logs.diagnosis(", ".join(words) if len(words) < 4 else f"{len(names)} files")
    if not found.findings and not logs.dumps and all(map(is_binary, names)):
        hint = "name a log that holds what the ranks or the job have written"
        raise HpcTrainError(f"{', '.join(words)}: that is no text", hint)
    return found


def _fix(told: Failure, around: Around) -> str:
    """The rule's, or what hpc-train itself has said below its line."""
    if told.name != REFUSAL or len(around.lines) < 2:
        return told.fix
    return fix_below(around.lines) or "what that line says"


def _whole_names(nodes: Iterable[str], hosts: Sequence[str]) -> tuple[str, ...]:
    """Leave out the rest of a host's name whose beginning was cut off."""
    return tuple(
        sorted(
            name for name in nodes if name in hosts or not any(it.endswith(name) for it in hosts)
        )
    )


def _any_text(names: Iterable[str]) -> bool:
    for name in names:
        try:
            if name == "-" or look_around(Evidence(file=name, line=1, text="")).lines != ("",):
                return True
        except OSError:
            continue
    return False


def _of_traceback(place: Evidence, around: Around) -> Culprit:
    lines = [(n, line) for n, line in around.numbered_traceback() if line.strip()]
    number, last, how = _end_of(lines, is_whole=around.is_whole)
    # Its first line may lack what the others have before them.
    raw = [place.text, *around.lines[1:]]
    where = (replace(place, line=place.line + n, text=raw[n]) for n in (0, number))
    ranks = [rank_of(at, is_labelled=around.is_labelled) for at in where]
    return Culprit(
        name="traceback",
        cause=f"a traceback {how} {last}" if last else f"there is {how}",
        fix=_todo([line for _, line in lines]),
        rank=next((rank for rank in ranks if rank is not None), None),
        node=node_of(place),
        time=around.time,
        is_later=around.is_later,
        is_dated=around.is_dated,
        step=around.step,
        evidence=(replace(place, line=place.line + number, text=last or place.text),),
        kind="last",
    )


def _todo(lines: Sequence[str]) -> str:
    """What to do about a traceback; empty where it names no line of the user's own to mend."""
    files = [found[1].replace("\\", "/") for line in lines if (found := _FILE.search(line))]
    if any(not is_installed(file) and "/bin/" not in file for file in files):
        return "the line of the program that the traceback names"
    # Of the launcher's tracebacks this one alone is about a rank, and not about the launcher.
    if any("raise ChildFailedError" in line for line in lines):
        return (
            "the traceback is the launcher's own: the output of the rank that failed (torchrun"
            " --redirects 3 --log-dir LOGS writes a file for each), or, of a rank that no signal"
            " ended, `record` of torch.distributed.elastic around main()"
        )
    return ""


def _end_of(lines: Sequence[tuple[int, str]], *, is_whole: bool) -> tuple[int, str, str]:
    """Return what a traceback comes to: the line's number behind the first, its text, and how."""
    if len(lines) < 2:  # of standard input no line can be read again
        return 0, "", "a traceback, of which no more is known"
    number, last = lines[-1]
    if last[:1].strip() and _EXCEPTION.match(last):
        return number, last.strip(), "ends with"
    frames = [(n, line[line.index('File "') :]) for n, line in lines if 'File "' in line]
    number, last = frames[-1] if frames else (number, last.strip())
    return number, last, "is cut off at" if is_whole else "goes on below"
