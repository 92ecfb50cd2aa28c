"""What to do about a file that is no Python: what its text tells beside Python's own words."""

from __future__ import annotations

import re

# Of IPython: a magic, a command of the shell, a question.
_OF_NOTEBOOK = re.compile(r"\s*(?:%{1,2}[A-Za-z]|![A-Za-z./]|[\w.]+\?{1,2}\s*\Z)")
_AS_CONVERTED = re.compile(r"\s*[^#]*\bget_ipython\b")  # by nbconvert, of the same
_OF_MERGE = re.compile(r"(?:<{7}|>{7})(?:\s|\Z)")
_MOST_LINES, _MOST_SHOWN = 4, 60


def how_to_correct(error: SyntaxError | ValueError, source: bytes) -> str:
    """One line: what to leave out, or the line that is wrong."""
    lines = source.decode("utf-8", "replace").splitlines()
    if isinstance(error, SyntaxError) and error.lineno and error.lineno <= len(lines):
        text = lines[error.lineno - 1]
        if _OF_NOTEBOOK.match(text):
            return f"leave out what a notebook alone runs: {_listed(lines, _OF_NOTEBOOK)}"
        if _OF_MERGE.match(text):
            marks = _listed(lines, _OF_MERGE)
            return f"a merge of git has left both sides there: keep one: {marks}"
        if isinstance(error, TabError):
            return "indent with blanks alone, or with tabs alone"
        if text.strip():
            return f"correct that line: {_cut(text)}"
    return "correct it, or name another file"


def lines_of_notebook(text: str) -> str:
    """Those that nbconvert makes of magics, which no Python outside of IPython runs."""
    lines = text.splitlines()
    told = _listed(lines, _AS_CONVERTED) or "its line with get_ipython"
    cells = any(_AS_CONVERTED.match(it) and "run_cell_magic" in it for it in lines)
    return f"{told}; of a run_cell_magic keep the code that it was for" if cells else told


def _listed(lines: list[str], pattern: re.Pattern[str]) -> str:
    """`line 1 (%matplotlib inline), line 6 (!pip install tqdm)`."""
    found = [(at, text) for at, text in enumerate(lines, 1) if pattern.match(text)]
    told = [f"line {at} ({_cut(text)})" for at, text in found[:_MOST_LINES]]
    more = len(found) - _MOST_LINES
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
