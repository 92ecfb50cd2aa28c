"""Reads logs of NCCL_DEBUG=INFO or WARN: what was used, what failed, and why where it is certain.

One pass in bounded memory: what is kept grows with ranks and pairs, not with lines. Launcher
prefixes, interleaved ranks and torn lines are normal. Forms by version: see docs/preflight.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hpc_train.diagnose.activation import Activation
from hpc_train.diagnose.around import PREFIX
from hpc_train.diagnose.collectives import Calls
from hpc_train.diagnose.launchers import Launchers
from hpc_train.diagnose.line_words import may_tell
from hpc_train.diagnose.lines_before import SocketErrors
from hpc_train.diagnose.log_files import (
    MAX_LINE,
    find_logs,
    log_lines,
    open_log,
)
from hpc_train.diagnose.nccl.nccl_comms import Communicators
from hpc_train.diagnose.nccl.nccl_failures import judge, word_of
from hpc_train.diagnose.nccl.nccl_lines import (
    Record,
    plain_lines,
    records_of,
    short_places,
    torn_names,
)
from hpc_train.diagnose.nccl.nccl_proxies import Proxies
from hpc_train.diagnose.nccl.nccl_report import NcclReport
from hpc_train.diagnose.nccl.nccl_shown import Shown
from hpc_train.diagnose.nccl.nccl_traces import Traces
from hpc_train.diagnose.ras_counts import RasCounts
from hpc_train.diagnose.requeues import Requeues
from hpc_train.diagnose.rules import MAX_TEXT, Evidence, Failure, Hits, Rule, read_rules
from hpc_train.diagnose.same_folder import with_folder
from hpc_train.diagnose.shorten import shortened
from hpc_train.diagnose.timeouts import Timeouts
from hpc_train.diagnose.torchrun_json import failed_worker
from hpc_train.diagnose.wrapped_lines import Wrapped
from hpc_train.errors import HpcTrainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MAX_KEPT = 200
_MAX_HOSTS = 10_000
_MAX_WRAPPED = 500

_HCA = re.compile(r"\[(\d+)\]\s?([\w.-]{1,64}:\d+)/(IB|RoCE)")
_MERGED = re.compile(r"\[(\d+)\]=\{(.{0,500}?)\}")
# Without a device there is none: `Using [RO]; OOB eth0:...`
_USING = re.compile(r"NET/([\w+.-][\w +.-]{0,60}?) : Using (\[\d+\].*)")
_NETWORK = re.compile(
    r"Using network ([\w+.-][\w +.-]{0,60})$"
    r"|(?:Assigned|Initialized) NET plugin ([\w+.-][\w +.-]{0,60}?)(?: to comm.*)?$"
)
_INTERFACE = re.compile(r"(?:\[\d+\])?([\w.@-]{1,64}):([^\s<]{1,80})<\d+>")
_OOB = re.compile(r"OOB (\S{1,64}?):\S{1,80}<\d+>")
_PROVIDER = re.compile(r"Selected [Pp]rovider is ([^\s,]{1,64})(?:.{0,80}\(found (\d+) nics\))?")
_GDR = re.compile(
    r"GPU Direct RDMA (?:\([\w-]{1,20}\) )?(Enabled|Disabled|enabled) for "
    r"(?:GPU \S{1,20} / )?HCA (\w{1,20})(?: '([\w.+-]{1,64}))?(?:'? ?\(([^)]{1,80})\))?"
)
# Of what is tried again and again; a look-up of a name has lines of its own around it.
_WAITS = re.compile(r", retrying|waiting for master$|nslookup: can't resolve|: NXDOMAIN$")
_ASKED = re.compile(r"(?:Server|Address(?: \d)?|Name):\s|;; ")
# What torch or CUDA says beside NCCL's own lines; anything else with "NCCL" in it is prose.
_TORCH = re.compile(
    r"ProcessGroupNCCL|WorkNCCL|(?:NCCL|C(?:uda|UDA)) (?:[Ee]rror|failure)|NCCL communicator"
    r"|nccl[A-Z]\w{3,30}Error|Last error:|collectives on ranks|collective #|lagging ranks"
    r"|CUDA out of memory|OutOfMemory|Last NCCL warning|NCCL operation |nccl[A-Z]\w{4,30} failed"
    r"|NCCL: (?:un|in|remote)|nccl(?:InvalidUsage|InvalidArgument): "
    r"|Duplicate GPU|NCCL_ERROR: |NCCL operations have failed|watchdog got stuck for \d"
)
# A line of its own, not the rest of one that a terminal wrapped.
_STARTS = re.compile(r"\[|Traceback|\S{1,80}Error|\d{4}-\d\d|srun:|slurmstepd:")
# ncclGetErrorString, as torch, vLLM, nccl-tests and others pass it on.
_TORCH_ERROR = re.compile(
    r"(?:NCCL(?:[ _]ERROR| [Ee]rror| failure| operation|:)|nccl[A-Z]\w{4,30} failed).{0,400}?"
    "(?P<word>unhandled cuda error|unhandled system error|internal error|invalid argument"
    "|invalid usage|remote process exited|unknown result code)"
    r"|^\W{0,3}(?:rank\d{1,6}\]:\s*)?nccl(?P<name>UnhandledCudaError|SystemError|InternalError"
    r"|InvalidArgument|InvalidUsage|RemoteError): "
)


def read_nccl_logs(words: Sequence[str]) -> NcclReport:
    """Return what the logs say: files, folders, patterns, `-`; also gzip and UTF-16.

    Raises:
        UsageError: One of them is not there.
        HpcTrainError: One cannot be read, or none holds a line of NCCL's.
    """
    names = find_logs(words)
    reader = LogReader()
    for name in names:
        try:
            with open_log(name) as file:
                for number, line in log_lines(file):
                    reader.feed(line, name, number)
        except OSError as error:
            raise HpcTrainError(
                f"{name}: {error.strerror}", "name a log that you can read"
            ) from None
    return _finish(reader, ", ".join(words))


def read_nccl_lines(lines: Iterable[str], name: str = "the log") -> NcclReport:
    """Return what the lines say; raises HpcTrainError where none of them is NCCL's."""
    reader = LogReader()
    for number, line in enumerate(lines, 1):
        reader.feed(line, "", number)
    return _finish(reader, name)


def _finish(reader: LogReader, name: str) -> NcclReport:
    report = reader.report()
    if reader.records == 0:
        raise reader.shown.no_line(name)
    return report


class LogReader:
    """Takes logs line by line; `report()` may be asked at any time."""

    def __init__(self) -> None:
        self.records = 0
        self.shown = Shown()
        self._hosts: set[str] = set()
        self._of_pid: dict[str, set[str]] = {}
        self._comms = Communicators()
        self._hits = Hits(read_rules())
        self.timeouts = Timeouts()
        self._hcas: dict[str, dict[str, str]] = {}
        self._networks: set[str] = set()
        self._interfaces: dict[str, dict[str, str]] = {}
        self._gdr: dict[str, dict[str, bool]] = {}
        self._gdr_reasons: set[str] = set()
        self._traces = Traces()
        self._launchers = Launchers()
        self._ras = RasCounts()
        self._proxies = Proxies()
        self._requeues, self._activation = Requeues(), Activation()
        self._messages, self._calls = Wrapped(), Calls()
        self._unfinished: tuple[Record, Evidence] | None = None
        self._torch_error: tuple[str, Evidence] | None = None
        self._initialised = 0
        self._is_error_next = False
        self._last_error = ""  # what stands before "Last error:" until NCCL's words
        self._wrapped = ""
        # Warnings that no rule knows, by thread, and those after which their thread went on.
        self._warned: dict[tuple[str, str, str], int] = {}
        self._overcome: set[int] = set()
        self._retrying: set[str] = set()
        self._last: dict[str, int] = {}
        self._sockets = SocketErrors()

    def feed(self, line: str, file: str = "", number: int = 0) -> None:
        """Take one line, with or without its newline, of any kind."""
        if line.strip():
            self._last[file] = number
        for part in plain_lines(line[:MAX_LINE]):
            said = " ".join(part.split()) if "    " in part else part.strip()
            if said:
                if _WAITS.search(said):
                    self._retrying.add(file)
                elif not _ASKED.match(said):
                    self._retrying.discard(file)
            text = shortened(short_places(said), MAX_TEXT)
            self._feed(part, Evidence(file=file, line=number, text=text))

    def feed_history(self, text: str, where: Evidence) -> Rule | None:
        """Take what a run's history or Slurm's record says, and return the rule it is of."""
        self.records += 1
        return self._hits.take("RUN", text, "", "", where, is_warning=False)

    def _feed(self, line: str, where: Evidence) -> None:
        self.records += self.shown.take(line)
        self.timeouts.passes(line, where)
        records = records_of(line, self._hosts)
        if not records:
            self._beside(line, where)
        self._unfinished = None
        for record in records:
            self._record(record, where)

    def _record(self, record: Record, where: Evidence) -> None:
        self.records += 1
        if record.host and len(self._hosts) < _MAX_HOSTS:
            self._hosts.add(record.host)
            self._of_pid.setdefault(record.pid, set()).add(record.host)
        if record.level == "WARN":
            self._proxies.take(record, where)
            # Without a process it may be any program's.
            is_nccl = bool(record.host) or "NCCL WARN" in where.text
            take = self._hits.take
            rule = take("WARN", record.text, record.place, record.host, where, is_warning=is_nccl)
            self._unfinished = None if rule else (record, where)
            if rule is None and is_nccl and len(self._warned) < _MAX_HOSTS:
                self._warned.setdefault(record[:3], self._hits.lines)
        elif not self._comms.take(record, self._hcas.get(record.host, {})):
            if record.pid and " -> " not in record.text and record[:3] in self._warned:
                self._overcome.add(self._warned.pop(record[:3]))
            self._setup(record, where)
        elif "Init COMPLETE" in record.text:
            self._initialised = self._hits.lines + 1
            self._traces.initialised(record[:3])

    def _beside(self, line: str, where: Evidence) -> None:
        """Take a line of torch's, a launcher's or Slurm's; after "Last error:" it is NCCL's own."""
        is_error = self._is_error_next
        # Another process may write between the two.
        is_own = bool(self._last_error) and line.startswith(self._last_error)
        if (is_error or is_own) and not line[len(self._last_error) * is_own :].strip():
            return
        is_error = is_error or is_own
        self._is_error_next = line.rstrip().endswith("Last error:")
        if is_own or self._is_error_next:
            self._last_error = line.rpartition("Last error:")[0]
        if self._unfinished and self._is_rest(line, *self._unfinished):
            return
        if self._ras.take(line, where):
            self.records += 1
            return
        for whole, at in self._messages.take(line, where):
            self._message(whole, at, is_error=is_error and at.line == where.line)

    def _message(self, line: str, where: Evidence, *, is_error: bool = False) -> None:
        if self._calls.take(line, where):
            return
        line = self._sockets.completed(line, where.file)
        self._launchers.sees(line)
        begun, self._wrapped = self._wrapped, ""
        if begun and not _STARTS.match(line):
            whole = begun + line.rstrip("\n")
            if self._torch(whole, where):
                return
            self._wrapped = whole if len(whole) < _MAX_WRAPPED else ""
        # An event of torchrun may quote torch's words, and names the host.
        if is_error or (_TORCH.search(line) and not failed_worker(line)):
            if not self._torch(line, where) and "ProcessGroupNCCL" in line:
                self._wrapped = line.rstrip("\n")
        elif self._launchers.is_open or may_tell(line):
            self._job(line, where)

    def _is_rest(self, line: str, record: Record, start: Evidence) -> bool:
        """Whether the line is the rest of a warning that a terminal wrapped."""
        if "ProcessGroupNCCL" in line:
            return False
        rest = PREFIX.sub("", line, count=1).strip()
        for between in (" ", ""):
            text = f"{record.text}{between}{rest}"
            if self._hits.take("WARN", text, record.place, record.host, start, is_warning=False):
                self._hits.forget(record.text)
                return True
        return False

    def _torch(self, line: str, where: Evidence) -> bool:
        self.records += 1
        if self._torch_error is None and (found := _TORCH_ERROR.search(line)):
            self._torch_error = (found["word"] or word_of(found["name"]), where)
        if self.timeouts.take(line, where):
            return True
        return any(
            self._hits.take(level, line, "", "", where, is_warning=False)
            for level in ("WARN", "JOB")
        )

    def _job(self, line: str, where: Evidence) -> None:
        self._requeues.take(line, where)
        self._activation.take(line, where)
        if "Avg bus bandwidth" in line:  # nccl-tests' last line
            self._initialised = self._hits.lines + 1
        meaning, host = self._launchers.meaning(line, where)
        is_of_gpu = any(word in line for word in ("CUDA", "HIP ", "NET/IB"))
        takes = [("JOB", meaning), ("JOB", line), ("WARN", line if is_of_gpu else "")]
        for level, text in takes:
            if text and self._hits.take(level, text, "", host, where, is_warning=False):
                self.records += 1
                self._launchers.forget(where)
                return

    def _setup(self, record: Record, where: Evidence) -> None:
        host, text = record.host, record.text
        if " : Using " in text and (found := _USING.search(text)):
            self._using(host, found[1], found[2])
        elif "NET plugin" in text or text.startswith("Using network"):
            if found := _NETWORK.search(text):
                self._networks.add(found[1] or found[2])
        elif text.startswith("Bootstrap"):
            self._uses(host, text)
        elif " set " in text and self.shown.take_setting(text, where):
            pass
        elif "GPU Direct RDMA" in text:
            self._gpudirect(host, text)
        elif "rovider is" in text and (found := _PROVIDER.search(text)):
            self.shown.has_provider = True
            nics = f", {found[2]} NICs" if found[2] else ""
            self._networks.add(f"libfabric {found[1]}{nics}")
        elif " -> " in text:
            self._traces.take(text, record[:3], where)
        self._hits.take("INFO", text, record.place, host, where, is_warning=False)

    def _using(self, host: str, network: str, rest: str) -> None:
        self._networks.add(network)
        if found := _OOB.search(rest):
            self._uses(host, found[0][4:])
        if network.endswith("Socket"):
            self._uses(host, rest)
            return
        if "[" in _MERGED.sub("", _HCA.sub("", rest)).replace("[RO]", ""):  # cut
            return
        names = self._hcas.setdefault(host, {})
        for index, merged in _MERGED.findall(rest):
            names[index] = "+".join(name for _, name, _ in _HCA.findall(merged))
        for index, name, layer in _HCA.findall(_MERGED.sub("", rest)):
            names[index] = f"{name}/{layer}"

    def _uses(self, host: str, text: str) -> None:
        """Note every interface; the first is the one of the bootstrap."""
        named = _INTERFACE.findall(text[:4000])
        if named and (host in self._interfaces or len(self._interfaces) < _MAX_HOSTS):
            mine = self._interfaces.setdefault(host, {})
            for name, address in named:
                if len(mine) < _MAX_KEPT:
                    mine.setdefault(name, address)

    def _gpudirect(self, host: str, text: str) -> None:
        found = _GDR.search(text)
        if found is None:
            return
        name = found[3] or self._hcas.get(host, {}).get(found[2], f"HCA {found[2]}")
        mine = self._gdr.setdefault(host, {})
        if len(mine) < _MAX_KEPT:
            mine[name] = mine.get(name, False) or found[1].lower() == "enabled"
        if found[1] == "Disabled" and found[4] and len(self._gdr_reasons) < _MAX_KEPT:
            self._gdr_reasons.add(found[4])

    def report(self) -> NcclReport:
        """Return what was read so far."""
        hits = self._hits
        for line, where in self._messages.rest():
            self._message(line, where)
        for said, where in [*self._calls.at_end(), *self._launchers.at_end(self._last)]:
            self.records += 1
            any(hits.take(kind, said, "", "", where, is_warning=False) for kind in ("JOB", "WARN"))
        failures, notes = self._judged()
        failures, again = self._requeues.told(self._proxies.told(failures))
        settings, counts = self.shown.settings(self._last), filter(None, [self._ras.note()])
        return NcclReport(
            version=self.shown.version,
            library=self.shown.library,
            speakers=tuple(sorted(self._hosts - set(torn_names(self._of_pid.values())))),
            world=self._comms.world(),
            networks=tuple(sorted(self._networks)),
            hcas={host: tuple(names.values()) for host, names in sorted(self._hcas.items())},
            interfaces={
                host: tuple(f"{name}:{address}" for name, address in found.items())
                for host, found in sorted(self._interfaces.items())
            },
            gdr=dict(sorted(self._gdr.items())),
            gdr_reasons=tuple(sorted(self._gdr_reasons)),
            settings=settings,
            failures=tuple(self.shown.fitted(with_folder(it), settings) for it in failures),
            notes=tuple(self.shown.fitted(item, settings) for item in (*notes, *again, *counts)),
            warnings=tuple(hit.failure() for hit in hits.unknown()),
            dropped=hits.dropped,
            records=self.records,
            torn=self._comms.torn,
        )

    def _judged(self) -> tuple[tuple[Failure, ...], tuple[Failure, ...]]:
        hits = self._hits
        failures, notes = judge(
            hits,
            (self.timeouts.failure(),),
            self._traces.root(has_fallback=hits.has("collnet")),
            self._torch_error,
            self._initialised,
            self._overcome,
            lines={**self._last, **self._launchers.cut_at(self._last)},
            ends_open=bool(self._retrying),
        )
        return self._activation.told(failures, notes, hits.of("last"))
