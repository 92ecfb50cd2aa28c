"""Commands of a script that surely start no rank: `stty size`, `git rev-parse`, `mkdir`."""

from __future__ import annotations

import ast
import re

from hpc_train.config.scripts.written_commands import CALLS, written_command

_PLAIN = frozenset(
    {
        *("cat", "clear", "cls", "cp", "date", "df", "du", "echo", "free", "git", "gunzip", "gzip"),
        *("head", "hostname", "ls", "lscpu", "lspci", "md5sum", "mkdir", "mv", "nproc", "nvcc"),
        *("nvidia-smi", "pwd", "rm", "rmdir", "rsync", "sha256sum", "sleep", "stty", "tail", "tar"),
        *("title", "touch", "tput", "uname", "unzip", "uptime", "wc", "wget", "whoami", "zip"),
    }
)
_ENDS = re.compile(r"&&|[|][|]|[;&|\n]")
_RUNS_MORE = re.compile(r"[`$(<>]")  # what a shell works out, or writes into a file
_SILENT = re.compile(r"\d?(?:>&?|<)\s*(?:/dev/null|\d)\b")
_WORDS = ("system", "popen", "subprocess")
_OF_SUBPROCESS = (
    *("PIPE", "STDOUT", "DEVNULL", "CalledProcessError", "TimeoutExpired", "SubprocessError"),
)


def plain_command_words(tree: ast.Module) -> set[str]:
    """Those of `system`, `popen` and `subprocess` that the text has for plain commands alone."""
    spared: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_plain(node):
            spared |= {id(it) for it in ast.walk(node.func)}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "subprocess":
            spared |= {id(node.value)} if node.attr in _OF_SUBPROCESS else set()
    plain: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(tree):
        if word := _word(node):
            (plain if id(node) in spared else others).add(word)
    return plain - others


def _is_plain(call: ast.Call) -> bool:
    if not CALLS.fullmatch(ast.unparse(call.func)) or not call.args:
        return False
    command = written_command(call.args[0])
    if isinstance(command, list):
        return command[:1] != [] and command[0] in _PLAIN
    text = _SILENT.sub(" ", command)
    firsts = [it.split()[:1] for it in _ENDS.split(text) if it.strip()]
    is_known = all(it[0] in _PLAIN for it in firsts)
    return bool(firsts) and is_known and not _RUNS_MORE.search(text)


def _word(node: ast.AST) -> str:
    """The name that may start a process, where this is one; an import of a module is none."""
    name = getattr(node, "id", "") or getattr(node, "attr", "")
    if isinstance(node, ast.ImportFrom):
        names = {node.module, *(it.name for it in node.names)}
        name = next((it for it in _WORDS if it in names), "")
    elif isinstance(node, ast.alias) and node.asname:
        name = node.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value  # of a getattr
    return name if name in _WORDS else ""
