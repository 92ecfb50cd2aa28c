"""What a log shows of how it was made, so that no fix asks for what it has already."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hpc_train.diagnose.nccl.nccl_lines import version_of
from hpc_train.diagnose.rules import WHOLE_LOG
from hpc_train.errors import HpcTrainError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hpc_train.diagnose.rules import Evidence, Failure

_VERSION = re.compile(r"(NCCL|RCCL) version ?:? (\d+)\.(\d+)(?:\.(\d+))?")
# AMD's library in NCCL's words: where its own packages, or hipify's copies of NCCL's files, lie.
_RCCL = re.compile(r"librccl|/rccl/|/hipify/src/")
# As a setting: what a program advises comes behind other words.
_IS_INFO = re.compile(
    r"(?<!with )(?<!set )(?<!Set )(?<!use )(?<!using )(?<!etting )"
    r"\bNCCL_DEBUG['\"]?(?: set (?:by environment )?to |[=: ]{1,3})['\"]?(?:INFO|TRACE)\b"
)
_WAITS = re.compile(r"(?i)collective.{0,80}(?:timeout|timed out)")
_VARIABLE = re.compile(r"\bNCCL_\w+")
_ASSIGNED = re.compile(r"\bNCCL_\w+=\w+")
_SETTING = re.compile(
    r"(NCCL_\w{1,60}) set (?:by environment )?to (.{0,200}?)(?: \[repeated \d+x across cluster\])?$"
)
_MAX_SETTINGS = 200
_NO_END_POINT = (
    "the libfabric plugin could not be started: the provider was found, and its endpoint could not"
    " be made; NCCL then takes what else it finds"
)
_END_POINT_FIX = (
    "FI_LOG_LEVEL=warn tells libfabric's own reason; are its devices passed into the container"
    " (EFA: /dev/infiniband/uverbs*), is `ulimit -l` unlimited there, and are driver, libfabric and"
    " plugin of one release?"
)
_OTHER_LOG = "the log of the rank that ended first, where that is another one"
# Their causes are this reader's own sentences, and quote nothing of the log.
_SAYS_NCCL = ("error_code", "error_word")


class Shown:
    """Takes each line of a log, and fits what is told to what the log shows."""

    def __init__(self) -> None:
        self.library = "NCCL"
        self._versions: set[str] = set()
        self.is_info = False
        self.has_provider = False  # libfabric's, which it then did not want
        self._asks = self._is_told = False
        self._settings: dict[str, str] = {}
        self._set_at: dict[str, Evidence] = {}

    @property
    def version(self) -> str | None:
        """The library's, where the log tells one and no other."""
        return next(iter(self._versions)) if len(self._versions) == 1 else None

    def take(self, line: str) -> bool:
        """Take a line; returns whether it tells NCCL's version."""
        if "NCCL" in line or "rccl" in line or "hipify" in line:
            self._asks = self._asks or "NCCL" in line
            self._is_told = self._is_told or "NCCL_DEBUG" in line
            self.is_info = self.is_info or " NCCL INFO " in line or bool(_IS_INFO.search(line))
            if _RCCL.search(line):
                self.library = "RCCL"
        elif "imeout" in line or "timed out" in line:
            self._asks = self._asks or bool(_WAITS.search(line))
        found = _VERSION.search(line) if "CCL version " in line else None
        if found:
            self.library = max(self.library, found[1])  # AMD's torch says NCCL as well
            self._versions.add(version_of(*found.groups()[1:]))
        return found is not None

    def take_setting(self, text: str, where: Evidence) -> bool:
        """Take what NCCL says, and return whether it is a setting.

        A line that was cut (the last one?) has the beginning of a value.
        """
        found = _SETTING.match(text)
        if found is None:
            return False
        name, value = found[1], found[2].strip().rstrip(".")
        self._set_at.setdefault(name, where)
        before = self._settings.get(name, "")
        if value.startswith(before) and len(self._settings) < _MAX_SETTINGS:
            self._settings[name] = value
        elif not before.startswith(value):
            self._settings[name] = "(not the same in all lines)"
        return True

    def settings(self, last: Mapping[str, int]) -> dict[str, str]:
        """Return them by name, without one that a log ends with, which may be cut.

        Args:
            last: The last line by file.
        """
        return {
            name: value
            for name, value in sorted(self._settings.items())
            if (at := self._set_at[name]).line != last[at.file]
        }

    def fitted(self, failure: Failure, settings: Mapping[str, str]) -> Failure:
        """Return it with the library's name, and a fix that knows what is set already."""
        cause, fix = failure.cause, failure.fix
        if failure.name == "ofi_no_provider" and self.has_provider:
            cause, fix = _NO_END_POINT, _END_POINT_FIX
        if self.is_info:
            fix = fix.replace(WHOLE_LOG, _OTHER_LOG)
        if self.library != "NCCL" and failure.name in _SAYS_NCCL:
            cause = re.sub(r"\bNCCL\b", self.library, cause)
        fix = _without_what_is_set(fix, settings)
        names = dict.fromkeys(_VARIABLE.findall(fix))
        has = [f"{name}={settings[name]}" for name in names if name in settings]
        fix += f" (this log has {', '.join(has)})" if has else ""
        return replace(failure, cause=cause, fix=fix)

    def no_line(self, name: str) -> HpcTrainError:
        """Return the refusal of a log in which nothing is NCCL's and nothing failed."""
        hint = "`hpc-train diagnose` reads logs of other programs, and their tracebacks"
        if self._asks and not self._is_told:
            hint += "; if NCCL is in question, it writes its lines with NCCL_DEBUG=INFO"
        return HpcTrainError(
            f"{name}: no line of NCCL's in it, and no failure is recognised in what else it says",
            hint,
        )


def _without_what_is_set(fix: str, settings: Mapping[str, str]) -> str:
    """Leave out the parts of a fix that ask for what the log has set already, if others stay."""
    parts = fix.split("; ")
    has = {f"{name}={value}" for name, value in settings.items()}
    left = [part for part in parts if not has.intersection(_ASSIGNED.findall(part))]
    return "; ".join(left) if left else fix
