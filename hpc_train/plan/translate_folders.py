"""The folder in which a batch script starts its training, by its lines of `cd`. Pure."""

from __future__ import annotations

import posixpath
import re
import shlex

# What sbatch sets to the folder that it was called in: sbatch(1), OUTPUT ENVIRONMENT VARIABLES.
_SUBMITTED = re.compile(r"\$(?:SLURM_SUBMIT_DIR|\{SLURM_SUBMIT_DIR(?::?-[^{}]*)?\})(?=/|\Z)")
_SUBMITTED_IN = re.compile(r"\$(?:SLURM_SUBMIT_DIR\b|\{SLURM_SUBMIT_DIR\})")
_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?=/|\Z)")
_PRESENT = re.compile(r"\$(?:PWD|\{PWD\})(?=/|\Z)")
_UNSURE = re.compile(r"[$`*?\[({]")  # what the shell alone can tell
_SEPARATORS = frozenset(("||", "&&", ";", "|", "&", ">", ">>", "&>", "2>"))
LEFT_OUT = "left out: a job starts in the folder that it is submitted from"


class Folders:
    """Where the lines of a script stand, one after another.

    Attributes:
        now: Relative to the folder that it is submitted from, or absolute, or below `~`; empty
            for that folder itself, None where only the shell can tell.
        line: What has led there.
    """

    def __init__(self, here: str = "", home: str = "") -> None:
        self.now: str | None = ""
        self.line = ""
        self._here = here
        self._home = home
        self._before: str | None = ""
        self._left: list[str | None] = []  # by pushd

    def take(self, line: str) -> None:
        """Go where a line of cd, pushd or popd goes."""
        self.line = line
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            words = [line, "$"]
        end = next((at for at, word in enumerate(words) if word in _SEPARATORS), len(words))
        program = words[0]
        named = [word for word in words[1:end] if not re.fullmatch(r"-[-PLen@]+", word)]
        before = self.now
        if program == "popd":
            self.now = self._left.pop() if self._left else None
        elif named[:1] == ["-"]:
            self.now = self._before
        elif program == "pushd":
            self._left.append(before)
            self.now = self._entered(named[0]) if named else None
        else:
            self.now = self._entered(named[0] if named else "~")
        self._before = before

    def enter(self, option: str, folder: str) -> None:
        """Begin in a folder, as an option of sbatch and srun does."""
        self.line = option
        self.now = self._entered(folder)

    def said(self) -> str:
        """What is to be said of the last line where the training starts now; empty for nothing."""
        if self.now is None:
            return f"{LEFT_OUT}: submit it from that one"
        return f"{LEFT_OUT}: submit it from {self.now}" if self.now else ""

    def seen_from(self, path: str, folder: str | None) -> str:
        """A relative path that was written in one folder, as it is named in the present one.

        So is one that begins with the folder it is submitted from: that is the present one then.
        """
        if self.now and (found := _SUBMITTED.match(path)):
            path, folder = path[found.end() :].lstrip("/"), ""
        if folder is None or self.now is None or folder == self.now or path[:1] in ("/", "~", "$"):
            return path
        if any(posixpath.isabs(it) or it[:1] == "~" for it in (folder, self.now)):
            return path if folder[:1] == "~" or not self._here else self._whole(folder, path)
        return posixpath.relpath(self._whole(folder, path), self._whole(self.now))

    def filled_in(self, word: str) -> str:
        """An argument that begins with the folder it is submitted from, as a path from here."""
        head, sign, path = word.rpartition("=")
        found = _SUBMITTED.match(path)
        if not found or self.now is None or self.now[:1] in ("/", "~"):
            return word
        rest = path[found.end() :].lstrip("/")
        return f"{head}{sign}{posixpath.relpath(self._whole(rest), self._whole(self.now))}"

    def with_submitted(self, line: str) -> str:
        """A line for the shell in which that folder is named though the job begins in this one."""
        if not self.now or self.now[:1] in ("/", "~"):
            return line
        up = posixpath.relpath(self._whole(), self._whole(self.now))
        return _SUBMITTED_IN.sub(lambda it: f"{it[0]}/{up}", line)

    def _whole(self, *parts: str) -> str:
        return posixpath.normpath(posixpath.join(self._here or "/submitted", *parts))

    def _entered(self, typed: str) -> str | None:
        base = self.now
        if found := _SUBMITTED.match(typed):
            base = ""
        elif found := _HOME.match(typed):
            base = self._home or "~"
        elif found := _PRESENT.match(typed):
            pass
        elif typed.startswith("/"):
            base = "/"
        rest = typed[found.end() if found else 0 :].lstrip("/")
        if base is None or _UNSURE.search(rest) or (base[:1] == "~" and ".." in rest):
            return None
        return self._shortest(posixpath.normpath(posixpath.join(base, rest)))

    def _shortest(self, path: str) -> str:
        """An absolute path as seen from the folder it is submitted from, where it is below it."""
        whole = posixpath.join(self._here, path)
        if self._here and f"{posixpath.normpath(whole)}/".startswith(f"{self._here}/"):
            path = posixpath.relpath(whole, self._here)
        elif self._home and path.startswith(f"{self._home}/"):
            path = f"~{path.removeprefix(self._home)}"
        return "" if path == "." else path


def typed_folder(folder: str) -> str:
    """A folder as it can be typed: the shell replaces a `~` only outside of quotes."""
    if folder[:2] == "~/":
        return f"~/{shlex.quote(folder[2:])}"
    return folder if folder == "~" else shlex.quote(folder)
