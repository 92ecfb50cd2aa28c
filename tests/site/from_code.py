"""Pages of the site that the code writes: commands, messages, exit codes, files."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpc_train.plan import states
from hpc_train.supervisor.exitcodes import EXIT_CODES

COMMAND_PAGES = """
## Every option

What `hpc-train COMMAND --help` prints.

::: mkdocs-click
    :module: hpc_train.cli.main
    :command: cli
    :prog_name: hpc-train
    :depth: 2
    :style: plain
"""
LANGUAGES = {".yaml": "yaml", ".py": "python", ".sh": "bash"}


def anchor(path: str) -> str:
    """The id of a file on the page of files."""
    return re.sub(r"\W+", "-", path.lower()).strip("-")


def files_page(root: Path, paths: list[str]) -> str:
    """Files of the repository that other pages name, as they are."""
    text = "# Files named here\n\nAs they are in the repository, and in the installed package.\n"
    for path in paths:
        language = LANGUAGES.get(Path(path).suffix, "text")
        body = (root / path).read_text(encoding="utf-8")
        text += f"\n## {path} {{ #{anchor(path)} }}\n\n````{language}\n{body}````\n"
    return text


@dataclass(frozen=True)
class Refusal:
    """An error that the code can say: placeholders in braces."""

    error: str
    message: str
    fix: str


def messages_page(package: Path) -> str:
    """Exit codes, states, outcomes, and every message with its fix."""
    classes = error_classes(package)
    found = sorted(set(refusals(package, classes)), key=lambda one: (one.message.lower(), one.fix))
    text = "\n## Exit codes of a rank\n\n" + table(("code", "meaning"), rank_exits())
    text += "\nAny other code is the training's own.\n"
    text += "\n## States of a run\n\n" + table(("state", "exit code of `--wait`"), run_states())
    text += "\n## Outcomes of an attempt\n\n" + table(("outcome", "what follows"), outcomes())
    text += "\n## States of a Slurm job\n\n" + table(("Slurm says", "the run is"), slurm_states())
    text += "\n## Messages\n\nAfter `error: ` on standard error; `fix: ` follows. "
    text += "What stands in braces is filled in; `{place}` is the file and line of a key. "
    text += "What Slurm refuses is told in its own words, with the key to change. "
    text += "What a preflight finds is on [its page](docs/preflight.md), what `diagnose` knows on "
    text += "[that of diagnose](docs/diagnose.md).\n"
    for code in sorted(set(classes.values())):
        rows = [(plain(one.message), plain(one.fix)) for one in found if classes[one.error] == code]
        if rows:
            text += f"\n### With exit code {code}\n\n" + table(("message", "fix"), rows)
    return text


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plain(text: str) -> str:
    """Text in which no character means anything to Markdown or HTML."""
    escaped = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"[|*_`\[\]{}\\~^#:]", lambda found: f"&#{ord(found[0])};", escaped)


def rank_exits() -> list[tuple[str, ...]]:
    """The exit codes that mean something of ours, with the comments behind them."""
    said = comments(states.__file__, "RankExit")
    return [(str(one.value), said[one.name] or one.name.lower()) for one in states.RankExit]


def run_states() -> list[tuple[str, ...]]:
    """The states, with what the comments say."""
    said = comments(states.__file__, "RunState")
    return [
        (f"`{one.value}`" + (f": {said[one.name]}" if said[one.name] else ""),
         str(EXIT_CODES.get(one, "waits")))
        for one in states.RunState
    ]  # fmt: skip


def outcomes() -> list[tuple[str, ...]]:
    """The outcomes, with their rows of `plan/states.py`."""
    rows = []
    for one in states.Outcome:
        what = "goes on, counts against `requeue.budget`" if one.follows.is_fault else "goes on"
        if one.follows.state is not None:
            what = f"ends as `{one.follows.state.value}`: {one.follows.reason}"
        rows.append((f"`{one.value}`", what))
    return rows


def slurm_states() -> list[tuple[str, ...]]:
    """Slurm's words, and what they are here."""
    words = sorted({*states.SLURM_PENDING, *states.SLURM_ACTIVE, *states.SLURM_ENDED})
    return [(f"`{word}`", f"`{states.run_state_of_slurm(word).value}`") for word in words]


def comments(file: str, name: str) -> dict[str, str]:
    """The comment behind each member of an enumeration."""
    source = Path(file).read_text(encoding="utf-8")
    (body,) = (
        node.body
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    lines = source.splitlines()
    return {
        ast.unparse(node.targets[0]): lines[node.lineno - 1][node.end_col_offset :].strip(" #")
        for node in body
        if isinstance(node, ast.Assign)
    }


def error_classes(package: Path) -> dict[str, int]:
    """Every class below HpcTrainError, and its exit code; read, not imported."""
    nodes = [
        node
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    codes: dict[str, int] = {"HpcTrainError": 1}
    grown = True
    while grown:
        before = len(codes)
        for node in nodes:
            bases = [ast.unparse(base) for base in node.bases if ast.unparse(base) in codes]
            if bases and node.name not in codes:
                codes[node.name] = own_code(node, codes, bases[0])
        grown = len(codes) > before
    return codes


def own_code(node: ast.ClassDef, codes: dict[str, int], base: str) -> int:
    """The exit code in the class's body, else that of what it is derived from."""
    for line in node.body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "exit_code":
            words = ast.unparse(line.value)
            of_rank = re.search(r"RankExit\.(\w+)", words)
            if of_rank:
                return int(states.RankExit[of_rank[1]])
            of_class = words.removesuffix(".exit_code")
            return codes[of_class] if of_class in codes else int(words)
    return codes[base]


def refusals(package: Path, classes: dict[str, int]) -> Iterator[Refusal]:
    """Each call of one of the errors whose text stands there."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            words = [*node.args, *(word.value for word in node.keywords if word.arg == "hint")]
            said = [as_text(word) for word in words] + ["", ""]
            if name.endswith("origins.error"):  # of a key of the config: key, message, hint
                separator = "" if said[1].startswith(":") else " "
                name, said = "ConfigError", [f"{{place}}{said[0]}{separator}{said[1]}", said[2]]
            if name in classes and re.search(r"[a-z]{3}", re.sub(r"{.*?}", "", said[0])):
                yield Refusal(name, said[0], said[1])


def as_text(node: ast.expr) -> str:
    """A string as written, with the names of what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(as_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"{{{name_of(node.value)}}}"
    if isinstance(node, ast.BinOp):
        return as_text(node.left) + as_text(node.right)
    return f"{{{name_of(node)}}}"


def name_of(node: ast.expr) -> str:
    """A short word for an expression."""
    if isinstance(node, ast.Attribute):
        return name_of(node.value) if node.attr.startswith("__") else node.attr
    if isinstance(node, ast.Call):
        return name_of(node.args[0] if node.args else node.func)
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return names[0].strip("_") if names else "..."
