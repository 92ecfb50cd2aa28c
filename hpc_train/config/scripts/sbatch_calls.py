"""A script that calls sbatch, while hpc-train submits a job that runs it in each rank."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.config.python_text.harmless_code import imports_of
from hpc_train.config.python_text.rank_tests import asks_for_zero
from hpc_train.config.scripts.script_starts import own_files
from hpc_train.config.scripts.submitted_functions import trains_nothing
from hpc_train.config.scripts.written_commands import Command, started_commands

_SUBMITS = "sbatch"
# Beside Python's own modules what a launcher may import: any other package may train.
_NO_TRAINING = (
    *("numpy", "pandas", "yaml", "click", "typer", "fire", "tqdm", "rich", "omegaconf", "hydra"),
    *("jinja2", "simple_slurm", "termcolor", "dotenv", "psutil", "toml"),
)
_BATCH_FILE = re.compile(r"[\w./{}-]+\.(?:sh|bash|sbatch|slurm|slm|job)")
_TRAINING = re.compile(
    r"\b(?:python[\d.]*|torchrun|accelerate +launch|deepspeed|srun)\b[^\n;&|#]*?\s([\w./-]+\.py)\b"
)
_OF_RANK = re.compile(r"'\w*RANK'|'SLURM_\w+'|'HPC_TRAIN_\w+'")


@dataclass(frozen=True)
class SbatchCall:
    """One call of sbatch in a script.

    Attributes:
        shown: `sbatch job.sh`.
        batch_file: As its text names it; empty where it does not tell.
        is_sure: Whether no condition stands around it.
        is_of_one: Whether one rank alone comes to it.
    """

    line: int
    shown: str
    batch_file: str
    is_sure: bool
    is_of_one: bool


def sbatch_calls(tree: ast.Module) -> Iterator[SbatchCall]:
    """Each call, in the order of the text."""
    around = _conditions(tree)
    for call, command in started_commands(tree):
        words = _sbatch(command)
        if not words:
            continue
        file = next((it for it in words if _BATCH_FILE.fullmatch(it)), "")
        tests = around.get(id(call), [])
        yield SbatchCall(
            call.lineno,
            f"{_SUBMITS} {file}".strip(),
            file if "{" not in file else "",
            is_sure=not tests,
            is_of_one=any(it is not None and _is_of_one(it) for it in tests),
        )


def only_calls_sbatch(tree: ast.Module, file: Path, search_path: Sequence[str]) -> bool:
    """Whether a script surely trains nothing itself, nor starts what may.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
    """
    own = {path.stem: text for path, text in own_files(tree, file, search_path, also_inner=True)}
    imported = {it for text in (tree, *own.values()) for it in imports_of(text, also_inner=True)}
    roots = {it.partition(".")[0] for it in imported}
    folders = {it.name for it in file.parent.iterdir() if it.is_dir()} if roots else set[str]()
    is_free = roots <= {*sys.stdlib_module_names, *_NO_TRAINING, *own, *folders, ""}
    others = [it for _, it in started_commands(tree) if not _sbatch(it)]
    starts = any(re.search(r"python|torchrun|launch|srun|bash|\.py|\.sh", f"{it}") for it in others)
    return is_free and all(map(trains_nothing, (tree, *own.values()))) and not starts


def instead_of_sbatch(call: SbatchCall, tree: ast.Module, workdir: Path, folder: Path) -> str:
    """What to submit in the place of the script that calls it.

    Args:
        workdir: Where the script is started.
        folder: The script's.
    """
    files = [it / call.batch_file for it in (workdir, folder)] if call.batch_file else []
    batch = next((it for it in files if it.is_file()), None)
    named = {*_TRAINING.findall(_text_of(batch))} if batch else set[str]()
    named = named or {name for it in _constants(tree) for name in _TRAINING.findall(it)}
    what = "submit the training script that this job runs"
    if len(named) == 1:
        what = f"hpc-train submit {shlex.quote(named.pop())}"
    behind = f"{what}, with its arguments behind --"
    if batch is None:
        return behind
    shown = shlex.quote(os.path.relpath(batch, workdir))
    return f"{behind}; `hpc-train translate {shown}` shows its job's options as hpc-train's"


def _sbatch(command: Command) -> list[str]:
    """The words of the line that begins with sbatch; empty of another command."""
    lines = re.split(r"&&|[|][|]|[;|\n]", command) if isinstance(command, str) else [command]
    for line in lines:
        words = _words(line) if isinstance(line, str) else [*line]
        if len(words) == 3 and words[0].endswith("sh") and words[1] in ("-c", "-lc"):
            return _sbatch(words[2])
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words = words[1:]
        if words and Path(words[0]).name == _SUBMITS:
            return words
    return []


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _is_of_one(test: ast.expr) -> bool:
    return asks_for_zero(test) or bool(_OF_RANK.search(ast.unparse(test)))


def _conditions(tree: ast.Module) -> dict[int, list[ast.expr | None]]:
    """By the id of each call, the tests around it; None of a `try` or an `except`."""
    found: dict[int, list[ast.expr | None]] = {}

    def look(node: ast.AST, tests: list[ast.expr | None]) -> None:
        if isinstance(node, ast.Call):
            found[id(node)] = tests
        if (isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test)) or isinstance(
            node, ast.IfExp | ast.While
        ):
            tests = [*tests, node.test]
        elif isinstance(node, ast.Try):
            tests = [*tests, None]
        for child in ast.iter_child_nodes(node):
            look(child, tests)

    look(tree, [])
    return found


def _constants(tree: ast.Module) -> Iterator[str]:
    """The texts of a script, with a word in the place of what an f-string fills in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (it.value if isinstance(it, ast.Constant) else "X" for it in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
