"""`{a: ${b}}` without quotes: inside of { } and [ ] a brace of `${...}` ends the text to YAML."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from hpc_train.errors import ConfigError

_TAKEN = r"\$\{(?:[^{}]|\$\{[^{}]*\})*\}"  # one within another as well: ${oc.decode:${oc.env:X}}
# A text without quotes that holds one, behind its key, a bracket or a comma.
_TEXT = re.compile(
    r"(?:(?P<key>[\w.-]+):\s+|(?<=[\[,])\s*)"
    r"(?P<text>(?:[^\s,\[\]{}\"'#$:](?:[^,\[\]{}\"'#$:]|:(?=\S))*)?"  # s3://${bucket}
    rf"(?:{_TAKEN}[^,\[\]{{}}\"'#$]*)+)"
)
_OF_SHELL = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")


def unquoted_interpolation(
    error: yaml.MarkedYAMLError, path: Path, text: str
) -> ConfigError | None:
    """The refusal of a `${...}` without quotes inside of brackets; None for all else."""
    mark = error.problem_mark
    rows = text.splitlines()
    if mark is None or mark.line >= len(rows) or "expected ',' or" not in str(error.problem):
        return None
    line, column = rows[mark.line], mark.column
    if line[column - 1 : column + 1] != "${":
        return None
    texts = [_quoted(found) for found in _TEXT.finditer(line) if found.end() > column]
    around = "[ ]" if "]" in str(error.problem) else "{ }"
    fix = ", ".join(texts) or 'put the whole value in quotes: "${...}"'
    return ConfigError(
        f"{path}:{mark.line + 1}:{column}: not YAML: ${{...}} inside of {around} needs quotes",
        f"write {fix}" if texts else fix,
    )


def _quoted(found: re.Match[str]) -> str:
    """`KEY: "VALUE"`; a variable of the shell as one of the config's."""
    value = _OF_SHELL.sub(r"${oc.env:\1}", found["text"].strip())
    key = f"{found['key']}: " if found["key"] else ""
    return f"{key}{json.dumps(value, ensure_ascii=False)}"
