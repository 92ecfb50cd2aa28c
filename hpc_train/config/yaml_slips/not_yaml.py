"""What is said of a file that is no YAML: the place, and the slip that made it so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from hpc_train.config.keys import SECTIONS
from hpc_train.config.words import plain_one
from hpc_train.config.yaml_slips.column_slips import column_slip, under_empty_key
from hpc_train.config.yaml_slips.flow_interpolations import unquoted_interpolation
from hpc_train.config.yaml_slips.missing_colons import (
    is_pair_of_a_known_key,
    lines_without_colon,
    place_of_error,
    with_colon,
)
from hpc_train.config.yaml_slips.value_and_below import value_and_below
from hpc_train.errors import ConfigError

# Slips in the line that PyYAML stopped at, or in the one above it, and what to write.
_SLIPS = (
    (r"^\s*(?://|/\*|--\s)(.*?)(?:\*/)?\s*$", "a comment begins with #: # {0}"),
    (r"\s//\s(.*)", "a comment begins with #: # {0}"),
    (r"^\s*([\w.-]+)\s*=\s*([^=].*)", "write {0}: {1}"),
    (r"^\s*([\w.-]+):(?=[^\s:])(.*)", "write a space behind the colon: {0}: {1}"),
    (r":\s+'([^'\"]*'[^'\"]*)'\s*$", 'put it in double quotes: "{0}"'),
    (r":\s+([@`%].*)", 'put it in quotes: "{0}"'),
    (r"\{.*?(\w+\[[^],\s]+\])", 'put it in quotes: "{0}"'),
    (
        r"([\w.-]+):\s+(\{[\w.]+(?:[:=][^{}\"]*)?\}(?:[^\s,{}\[\]\"#]+(?:\{[^{}\"]*\})?)+)",
        'put it in quotes: {0}: "{1}"',
    ),
    (
        r"^\s*(?:- )?([\w.-]+):\s+(\{[\w.]+(?:[:=][^{}\"]*)?\}\s+[^\s#,}\]\"][^#\"]*?)\s*(?:#.*)?$",
        'put it in quotes: {0}: "{1}"',
    ),
    (r"^\s*-([A-Za-z_][\w.]*(?::(?:\s.*)?)?)$", "write a space behind the dash: - {0}"),
    (r"[\w.-]+:\s+([^\s\"'{\[,][^,{}\[\]\"']*:\s[^,{}\[\]]*)", 'put it in quotes: "{0}"'),
)
# Keys below which there are keys.
_MAPPINGS = {*SECTIONS, "model", "data", "trainer", "init_args", "variables", "extra"}
_ALIAS = re.compile(r"\*([^\s,\[\]{}]+)")
_OPENED = re.compile("quoted scalar|flow (mapping|sequence)")
# By a part of what PyYAML says.
_FIXES = {
    "another document": "a config is one document: remove the line ---; two trainings, two files",
    "for merging": "<<: repeats the keys below an anchor, and there are none: put them below &name",
    "constructor for the tag": "write plain values: a class is class_path: package.module.Class,"
    ' a variable of the shell "${oc.env:NAME}", another file base: FILE',
    "hexdecimal number": "in double quotes a backslash is special: use single ones",
    "unknown escape": "in double quotes a backslash is special: use single ones",
}


def no_mapping(node: yaml.Node, path: Path, text: str) -> ConfigError:
    """The refusal of a text that is no mapping."""
    line = node.start_mark.line + 1
    first = text.splitlines()[line - 1]
    if isinstance(node, yaml.ScalarNode) and is_pair_of_a_known_key(first):
        return _no_colon({line: (first.strip(), with_colon(first).strip())}, path)
    fix = "write base: FILE" if text.startswith("!include") else "write `key: value` lines"
    return ConfigError(f"{path}:{line}: not a mapping", fix)


def not_yaml(error: yaml.MarkedYAMLError, path: Path, text: str) -> ConfigError:
    """The refusal of a text that PyYAML does not read, with what to write."""
    if told := unquoted_interpolation(error, path, text) or _unclosed(error, path):
        return told
    if path.suffix != ".py" and (missing := lines_without_colon(text)):
        return _no_colon(missing, path)
    mark = place_of_error(error)
    where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
    problem = error.problem or error.context or "unreadable"
    hint = "check indentation, colons and quotes there"
    rows = ["", *text.splitlines(), ""]
    above, line = rows[mark.line : mark.line + 2] if mark and rows[mark.line + 1 :] else ("", "")
    if "\t" in line[: len(line) - len(line.lstrip())]:
        hint = "indent with spaces, YAML takes no tabs"
    elif known := next((fix for word, fix in _FIXES.items() if word in problem), ""):
        hint = known
    elif found := re.search(r"^(<<<<<<< |>>>>>>> |=======$)", text, re.MULTILINE):
        where = f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
        hint = "a merge of git left its marks there: keep one side of each, without the marks"
    elif found := _ALIAS.match(line, mark.column) if mark and "alias" in problem else None:
        what = "the keys" if re.match(r"\s*<<", line) else "the value"
        hint = f"no &{found[1]} stands above: put it before {what} that *{found[1]} repeats"
        hint += "" if "<<" in line else f'; a text with a * needs quotes: "{found[0]}"'
    elif slip := _slip(rows, mark.line + 1 if mark else 0, above, line):
        hint = slip
    elif "did not find expected" in problem or "unexpected end" in problem:
        hint += ", and above: a quote or bracket may be open since an earlier line"
    elif path.suffix == ".py":
        hint = "this is Python: name the YAML file that names its classes"
    where = _of_lookalike(hint, rows, mark, path) or where
    return ConfigError(f"{where}: not YAML: {problem}", hint)


def _slip(rows: Sequence[str], number: int, above: str, line: str) -> str:
    own = _of_a_section(rows, number) or under_empty_key(rows[1:-1], number)
    own = own or value_and_below(rows[1:-1], number)
    return own or _slip_of_typing(above, line) or column_slip(rows[1:-1], number)


def _of_lookalike(hint: str, rows: Sequence[str], mark: yaml.Mark | None, path: Path) -> str:
    """The place of what is no plain character, where the hint says so; empty elsewhere."""
    for number in (mark.line + 1, mark.line) if mark else ():
        if hint and hint == plain_one(rows[number]):
            column = next(it for it, char in enumerate(rows[number], 1) if plain_one(char))
            return f"{path}:{number}:{column}"
    return ""


def _unclosed(error: yaml.MarkedYAMLError, path: Path) -> ConfigError | None:
    """The refusal of a quote or bracket that is open at the file's end; None for all else."""
    mark, opened = error.problem_mark, error.context_mark
    if not (opened and mark and opened.line < mark.line and _OPENED.search(str(error.context))):
        return None
    where = f"{path}:{opened.line + 1}:{opened.column + 1}"
    what = "quote" if "quoted" in str(error.context) else "bracket"
    hint = f"close the {what} that is opened there"
    return ConfigError(f"{where}: not YAML: a {what} without its end", hint)


def _no_colon(missing: Mapping[int, tuple[str, str]], path: Path) -> ConfigError:
    """The refusal of lines whose colon was forgotten, with what is meant by each."""
    (first, (written, meant)), *others = missing.items()
    hint = "".join([f"write {meant}", *(f"; in line {it}: {fix}" for it, (_, fix) in others)])
    return ConfigError(f"{path}:{first}: {written!r} has no colon", hint)


def _of_a_section(rows: Sequence[str], number: int) -> str:
    """What to write for `trainer: accelerator: cpu`, where the lines below or the key tell that."""
    found = re.fullmatch(
        r"(\s*(?:- )?)([\w.-]+):\s+([\w.-]+:(?:\s.*)?)", rows[min(number, len(rows) - 1)]
    )
    if found is None:
        return ""
    below = next((it for it in rows[number + 1 :] if it.strip() and it.strip()[0] != "#"), "")
    spaces = len(below) - len(below.lstrip())
    if found[2] in _MAPPINGS or (spaces > len(found[1]) and re.match(r"\s*[\w.-]+:", below)):
        return f"put {found[3].strip()} on a line of its own below {found[2]}:, indented"
    return ""


def _slip_of_typing(above: str, line: str) -> str:
    for text in (line, above):
        for pattern, fix in _SLIPS:
            if found := re.search(pattern, text):
                return fix.format(*(word.strip() for word in found.groups()))
    if found := re.fullmatch(r"\s*([\w.-]+)\s*", line):
        if above.rstrip().endswith(":"):
            return f"write it behind its key: {above.strip()} {found[1]}"
        return f"write a colon behind the key: {found[1]}:"
    if found := re.fullmatch(r"([\w.-]+)\s*", above):
        return f"write a colon behind the key: {found[1]}:"
    if hint := plain_one(above + line):
        return hint
    spaces, before = (len(it) - len(it.lstrip()) for it in (line, above))
    if spaces > before and re.match(r"\s*[\w.-]+:\s*[^\s#]", above):
        name = line.strip().partition(":")[0]
        return f"begin {name} in the column of the line above: that line has a value of its own"
    return ""
