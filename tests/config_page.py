"""The tables of docs/config.md, from the schema; ``python -m tests.config_page`` writes them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import yaml

from hpc_train.config import schema
from hpc_train.config.keys import REQUIRED_KEYS, SECTIONS
from hpc_train.config.ranges import RANGES
from hpc_train.config.schema import REQUIRED, Config

PAGE = Path(__file__).parents[1] / "docs" / "config.md"
BEGIN, END = "<!-- tables: make config-page -->\n", "<!-- end of the tables -->\n"
HEADER = "| key | type | default | meaning |\n|---|---|---|---|\n"
LARGE = 10**6  # a limit that nobody meets is not shown
WORDS = (
    (r"Optional\[(.*)\]", r"\1 or null"),
    (r"Literal\[True, False, ", "Literal[true, false, "),
    (r"Literal\[(.*)\]", lambda found: found[1].replace('"', "").replace(", ", " / ")),
    (r"dict\[str, (Any|str|float)\]", "mapping"),
    (r"list\[(Any|str)\]", "list"),
    (r"\bstr\b", "text"),
    (r"\bint\b", "whole number"),
    (r"\bfloat\b", "number"),
    (r"\bbool\b", "true / false"),
)


def page(text: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + tables() + END + after


def tables() -> str:
    made = ["\n### Top level\n\n", table(Config, "")]
    for name in SECTIONS:
        section = default_of(Config, name).__class__
        made += [f"\n### `{name}`\n\n{inspect.getdoc(section)}\n\n", table(section, f"{name}.")]
    return "".join(made) + "\n"


def table(section: type, prefix: str) -> str:
    said = comments(section)
    rows = [
        f"| `{prefix}{field.name}` | {kind(str(field.type), f'{prefix}{field.name}')}"
        f" | {default(section, field.name)} | {said[field.name]} |\n"
        for field in dataclasses.fields(section)
        if f"{prefix}{field.name}" not in SECTIONS
    ]
    return HEADER + "".join(rows)


def kind(annotation: str, key: str) -> str:
    for pattern, word in WORDS:
        annotation = re.sub(pattern, word, annotation)
    if key in RANGES:
        least, most = RANGES[key].least, RANGES[key].most
        low = "above 0" if least == 1e-3 else f"{least:g} or more"
        annotation += f", {low}" if most >= LARGE else f", {low}, at most {most:,.12g}"
    return annotation


def default(section: type, name: str) -> str:
    value = default_of(section, name)
    if value == REQUIRED or (section is Config and name in REQUIRED_KEYS):
        return "to be given"
    text = yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
    return f"`{text}`"


def default_of(section: type, name: str) -> object:
    field = {field.name: field for field in dataclasses.fields(section)}[name]
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def comments(section: type) -> dict[str, str]:
    """The comment behind each field, or that of the line above it."""
    source = inspect.getsource(schema)
    lines = source.splitlines()
    (body,) = (
        node.body
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == section.__name__
    )
    found = {}
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            end = node.end_lineno or node.lineno
            behind = lines[end - 1][node.end_col_offset :].strip()
            above = lines[node.lineno - 2].strip()
            words = behind or (above if above.startswith("#") else "#")
            found[node.target.id] = words.removeprefix("#").strip().replace("|", "\\|")
    return found


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
