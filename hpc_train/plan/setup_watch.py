"""Watching the lines of `env.setup` as bash runs them: which one failed, and whether it matters.

bash goes on behind a line that fails. Some sites have lines that end so without harm: the job goes
on as well, and the history of the run names the line. Where a command or the venv of a line is not
there, and where `module load` or `conda activate` fails, the job would train in another environment
than was meant: it ends. Where a line ends the shell itself the job has failed: `exit 0` is no
complete training. A trap for ERR that the lines set themselves takes the place of ours, and that is
told. Pure; `docs/environments.md` says it to people.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpc_train.plan.quoting import quote_shell

# `ITEM:CODE` for each item that failed, and `trap`, of the shell that started the supervisor.
FAILED = "HPC_TRAIN_SETUP_FAILED"
_TRAP = "trap"
_TRAP_SAID = "hpc-train: env.setup sets a trap of its own for ERR"
_SAID = re.compile(
    r"^hpc-train: env\.setup\.(\d+) exited with (\d+); the job goes on", re.MULTILINE
)
_PAIR = re.compile(r"(\d+):(\d+)")
# A line that is this one command: where it is but a part, its own code decides. What to do where
# it fails, and where the node has no such command, so that it cannot list anything either.
_NO_COMMAND = "that node has no command WORD: leave the line out, or in a line before it: source"
_TOOLS = (
    (
        r"(?:module\s+(?:load|add|swap|switch)|ml)\s+[^;&|]+",
        "`module avail` on that node shows what there is; if it may fail: LINE || true",
        f"{_NO_COMMAND} the init file that makes it",
    ),
    (
        r"(?:(?:conda|mamba|micromamba)\s+activate|(?:source|\.)\s+activate)\b[^;&|]*",
        "`conda env list` on that node; before it: source CONDA/etc/profile.d/conda.sh",
        f"{_NO_COMMAND} CONDA/etc/profile.d/conda.sh",
    ),
)
_VENV = re.compile(r"(?:source|\.)\s+(?P<file>[\w@%+=:,./~${}-]*/bin/activate)")
_OF_MODULE = re.compile(r"(?:module|ml)\s")
_SOURCES = re.compile(r"(?:source|\.)\s")
# Of a line that changes neither where programs nor where Python's packages are looked for.
_HARMLESS = re.compile(
    r"(?:#.*|(?:set|ulimit|umask|echo)\s[^;&|`$()]*"
    r"|export\s+(?!PATH|PYTHON|VIRTUAL_ENV|LD_|BASH|HOME)\w+=[^;&|`()\s]*)?"
)
SHELL_ENDED = "env.setup ended the job's shell"
_LEAVE_OUT = "  fix: leave that command out of env.setup and of the files that it sources"
# A line that is this one command; `exec` with nothing but redirections only moves the streams.
_ENDS = re.compile(r"(?:(?:exit|logout)(?:\s+\S+)?|exec\s+[\w./~-][^<>]*)\s*;?\s*(?:#.*)?")
_REDIRECTS = re.compile(r"exec\s+(?:\d+\s*[<>]|\{)")
# Behind these a line may be a part of something: of a condition, a function, a text.
_MAY_GO_ON = re.compile(
    r"\b(?:if|case|for|while|until|select|function|execfail)\b|(?<!\$)[({]|<<|(?:\\|&&|\|)\s*$"
)
_ABSENT = "correct it, or source what makes the command in a line before it"
# The trap is called where `set -e` would end the shell, so not inside of `if` and `||`. LINENO is
# that of the line in this very text, and BASH_SOURCE is longer inside of a sourced file.
_BEFORE = """\
# bash goes on behind a line of env.setup that fails: it is noted, or ends the job.
hpc_train_failed() {{
  local code=$1 command=$3 item="" fix=""
  case $2 in
{items}
  esac
{tools}  if [ -z "$fix" ] && [ "$code" -eq 127 ]; then
    type -- "${{command%%[[:space:]]*}}" >/dev/null 2>&1 || fix={absent}
  fi
  if [ -z "$fix" ] && [ "${{-#*e}}" = "$-" ]; then
    case " ${{{failed}-}}" in *" $item:"*) return 0 ;; esac
    export {failed}="${{{failed}-}} $item:$code"
    echo "hpc-train: env.setup.$item exited with $code; the job goes on" >&2
    return 0
  fi
  echo "hpc-train: error: env.setup.$item: \\`$command\\` exited with $code" >&2
  echo "  fix: ${{fix:-it ends the job by set -e; if it may fail: LINE || true}}" >&2
  case $(trap -p EXIT) in *hpc_train_ended*) trap - EXIT ;; esac
  exit 1
}}
# A line that ends this shell ends the job, with 0 as well: it has not trained.
hpc_train_ended() {{
  echo "hpc-train: error: {ended}: \\`$2\\`, exit code $1" >&2
  echo {leave_out} >&2
  exit $(($1 ? $1 : 1))
}}
[ -n "$(trap -p EXIT)" ] || trap 'hpc_train_ended "$?" "$BASH_COMMAND"' EXIT
hpc_train_depth=${{#BASH_SOURCE[@]}}
trap 'hpc_train_code=$?; [ "${{#BASH_SOURCE[@]}}" -ne "$hpc_train_depth" ] ||\
 hpc_train_failed "$hpc_train_code" $((LINENO - hpc_train_line)) "$BASH_COMMAND"' ERR
hpc_train_line=$LINENO"""
_AFTER = f"""\
case $(trap -p EXIT) in *hpc_train_ended*) trap - EXIT ;; esac
case $(trap -p ERR) in
  *hpc_train_failed*) trap - ERR ;;
  *)
    export {FAILED}="${{{FAILED}-}} {_TRAP}"
    echo "{_TRAP_SAID}; what fails behind it is not noted" >&2
    ;;
esac"""


@dataclass(frozen=True)
class SetupTold:
    """What a shell has told of the lines of env.setup: items with their exit codes, or a trap."""

    failed: Mapping[int, int] = field(default_factory=dict)
    has_own_trap: bool = False


def watched(items: Sequence[str]) -> list[str]:
    """The lines, between those that watch them; none where there are none."""
    if not items:
        return []
    places: list[str] = []
    tools: list[str] = []
    at = 0
    for number, item in enumerate(items):
        lines = item.split("\n")
        numbers = range(at + 1, at + 1 + len(lines))
        places.append(f"    {'|'.join(map(str, numbers))}) item={number} ;;")
        tools += [
            tool for place, line in zip(numbers, lines, strict=True) if (tool := _tool(place, line))
        ]
        at += len(lines)
    before = _BEFORE.format(
        items="\n".join(places),
        tools="".join(["  case $2 in\n", *tools, "  esac\n"]) if tools else "",
        absent=quote_shell(_ABSENT, "env.setup"),
        ended=SHELL_ENDED,
        leave_out=quote_shell(_LEAVE_OUT, "env.setup"),
        failed=FAILED,
    )
    return [before, *items, _AFTER]


def ending_line(items: Sequence[str]) -> tuple[int, str] | None:
    """The first item that ends the shell whatever happens: its place, and its text."""
    for place, item in enumerate(items):
        command = item.strip()
        if _ENDS.fullmatch(command) and not _REDIRECTS.match(command):
            return place, command
        if "\n" in command or _MAY_GO_ON.search(item):
            return None
    return None


def told_in_log(text: str) -> SetupTold:
    """What failed and the job went on, as the shell has said it in a log."""
    failed = {int(item): int(code) for item, code in _SAID.findall(text)}
    return SetupTold(failed, _TRAP_SAID in text)


def told_in_variable(text: str) -> SetupTold:
    """The same, of the variable `FAILED`."""
    failed = {int(item): int(code) for item, code in _PAIR.findall(text)}
    return SetupTold(failed, _TRAP in text.split())


def is_of_venv(line: str) -> bool:
    """Whether it is one that activates a venv, and nothing else."""
    return _VENV.fullmatch(line.strip()) is not None


def asks_for_module(lines: Sequence[str]) -> bool:
    """Whether a line is one of the command `module`, and none before it reads in what makes it."""
    others = itertools.takewhile(lambda it: not _OF_MODULE.match(it.strip()), lines)
    sources = any(_SOURCES.match(it.strip()) for it in others)
    return not sources and any(_OF_MODULE.match(it.strip()) for it in lines)


def only_venv(lines: Sequence[str]) -> int | None:
    """The line that activates a venv, where no other one may change what its Python finds."""
    others = [place for place, line in enumerate(lines) if not _HARMLESS.fullmatch(line.strip())]
    return others[0] if len(others) == 1 and is_of_venv(lines[others[0]]) else None


def _tool(place: int, line: str) -> str:
    command = line.strip()
    if found := _VENV.fullmatch(command):
        fix = "that node has no such file: name a venv that the nodes see; if it may be absent:"
        shown, todo = (
            quote_shell(words, "env.setup") for words in (command, f"{fix} {command} || true")
        )
        return f"    {place}) [[ -e {found['file']} ]] || {{ command={shown}; fix={todo}; }} ;;\n"
    for pattern, *fixes in _TOOLS:
        if re.fullmatch(pattern, command):
            word = command.split()[0]
            said = [it.replace("LINE", command).replace("WORD", word) for it in fixes]
            quoted, fix, absent = (quote_shell(it, "env.setup") for it in (command, *said))
            is_there = f'[ "$code" -ne 127 ] || type -- {word} >/dev/null 2>&1'
            return f"    {place}) command={quoted} fix={fix}\n      {is_there} || fix={absent} ;;\n"
    return ""
