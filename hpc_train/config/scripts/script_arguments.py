"""What a script's own argparse says of its arguments: its parser is rebuilt from the text."""

from __future__ import annotations

import argparse
import ast
import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.flags import FLAGS
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.scripts.joined_arguments import (
    APART,
    CORRECT,
    OF_OURS,
    in_quotes,
    taken_apart,
)
from hpc_train.config.scripts.parser_of_text import Parsed, parsed_in
from hpc_train.config.scripts.rebuilt_parser import OpenError, RebuiltParser, RefusedError, rebuilt
from hpc_train.config.scripts.script_words import ADD_BEHIND
from hpc_train.config.words import did_you_mean

# Options of hpc-train submit and hpc-train run, as they are typed behind their dashes.
OF_SUBMIT = (
    *(flag.option[2:] for flag in FLAGS.values()),
    *("cluster", "devices", "dry-run", "test-only", "follow", "wait", "sweep", "at-most"),
    *("after", "smoke", "bench-first", "partitions", "json", "node-rank", "master"),
)
# What torch.distributed.launch gave each rank, and a job of ours gives one that declares it.
OF_EACH_RANK = ("--local_rank", "--local-rank")

_FALSE = frozenset({"false", "f", "no", "n", "off", "0", "none", "null"})


def refused_arguments(tree: ast.Module, arguments: Sequence[str]) -> tuple[str, str]:
    """What the script would say of its arguments, and what to write; empty where it takes them.

    Nothing of the script is run. Empty as well where its text does not tell: another parser than
    argparse's, options that are made in a loop, subcommands.
    """
    if not {"-h", "--help"}.isdisjoint(arguments):
        return "", ""
    for parsed in (it for it in parsed_in(tree) if it.is_sure):
        parser = _of(parsed, tree)
        known = parser.known if parser is not None else []
        of_rank = [f"{it}=0" for it in known if it in OF_EACH_RANK]  # which the job gives each
        if parser is not None and (said := parser.refusal([*of_rank, *arguments])):
            told = in_quotes(said, arguments) if said.startswith("unrecognized") else said
            return told, _instead(said, tree, arguments, known)
    return "", ""


def _of(parsed: Parsed, tree: ast.Module) -> RebuiltParser | None:
    try:
        return rebuilt(parsed, tree)
    except OpenError:
        return None


def _only_parser(tree: ast.Module) -> RebuiltParser | None:
    """That of the only call of parse_args; None where the text does not tell what it takes."""
    calls = sum(isinstance(it, ast.Attribute) and it.attr == "parse_args" for it in ast.walk(tree))
    parsed = parsed_in(tree)
    return _of(parsed[0], tree) if calls == len(parsed) == 1 else None


def _instead(said: str, tree: ast.Module, arguments: Sequence[str], known: Sequence[str]) -> str:
    """What to write where the parser says that."""
    dashed = _with_dashes(arguments, known)
    if dashed != [*arguments] and not refused_arguments(tree, dashed)[0]:
        return f"write {shlex.join(dashed)} behind --"
    if apart := taken_apart(arguments, known, lambda it: not refused_arguments(tree, it)[0]):
        return f"{APART}write {shlex.join(apart)} behind --"
    if "are required: " in said:
        return _of_lacking(said.partition("are required: ")[2], arguments, known)
    if not said.startswith("unrecognized"):
        return CORRECT
    word = said.partition(": ")[2].split(" ")[0].partition("=")[0]
    if word not in known and word.removeprefix("--") in OF_SUBMIT and word[:2] == "--":
        return f"{word} {OF_OURS}"
    if apart := taken_apart(arguments, [word] if word in known else [], lambda _: True):
        return f"{APART}write {shlex.join(apart)} behind --"  # what it says of the value comes next
    return did_you_mean(word, known) or f"it takes {', '.join(known) or 'no options'}"


def _with_dashes(arguments: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """`--lr=0.1` for `lr=0.1`, Hydra's way, where that is one of the options."""
    names = {it.lstrip("-").replace("-", "_"): it for it in known if it.startswith("--")}
    pairs = ((it, *it.partition("=")) for it in arguments)
    return [
        f"{names[key.replace('-', '_')]}={value}" if sign and key.replace("-", "_") in names else it
        for it, key, sign, value in pairs
    ]


def _of_lacking(names: str, arguments: Sequence[str], known: Sequence[str]) -> str:
    """What to add, or the option that a word which the parser does not know was meant to be."""
    words = [it.partition("=")[0] for it in arguments if it.startswith("--")]
    other = [it for it in words if not any(option.startswith(it) for option in known)]
    if not other:
        return f"{ADD_BEHIND}{_with_values(names)}"
    near = did_you_mean(other[0], [it for it in known if it.startswith("--")])
    return f"{other[0]}: {near}" if near else f"it needs {_with_values(names)}"


def _with_values(names: str) -> str:
    """`--lr VALUE PATH` of argparse's `--lr/-l, path`."""
    longest = [max(name.split("/"), key=len) for name in names.split(", ")]
    return " ".join(f"{it} VALUE" if it.startswith("-") else it.upper() for it in longest)


def names_given(tree: ast.Module) -> set[str] | None:
    """The attributes of what `parse_args()` gives; None where the text does not tell them all."""
    if _gives_more(tree):
        return None
    parser = _only_parser(tree)
    return parser.names if parser is not None else None


def declared_options(tree: ast.Module) -> list[str] | None:
    """The options that the script's parser takes; None where its text does not tell them all."""
    parser = _only_parser(tree)
    return parser.known if parser is not None else None


def texts_given(tree: ast.Module, arguments: Sequence[str]) -> dict[str, str]:
    """The text of each parsed argument that is typed, or has one by default, and is never set."""
    parser = _only_parser(tree)
    if parser is None or not {"-h", "--help"}.isdisjoint(arguments):
        return {}
    try:
        given = vars(parser.parse_args([*arguments]))
    except (RefusedError, argparse.ArgumentError):
        given = {}
    set_by = [it for it in ast.walk(tree) if _called(it) == "set_defaults"]
    others = {word.arg for it in set_by if isinstance(it, ast.Call) for word in it.keywords}
    nodes = [it for it in ast.walk(tree) if isinstance(it, ast.Attribute)]
    stored = {it.attr for it in nodes if isinstance(it.ctx, ast.Store)}
    texts = {name: str(it) for name, it in given.items() if isinstance(it, str | int | float)}
    for call in parser.calls:
        written = {it.arg: it.value for it in call.keywords}
        default = written.get("default")
        if isinstance(default, ast.Call) and len(default.args) == 1:  # Path("out")
            default = default.args[0]
        flags = [str(it.value) for it in call.args if isinstance(it, ast.Constant)]
        name = max(flags, key=len).lstrip("-").replace("-", "_")
        if isinstance(default, ast.Constant) and isinstance(default.value, str):
            texts.setdefault(name, default.value)
    known = {name: text for name, text in texts.items() if text and name not in stored | others}
    return {} if None in others else known


def false_texts(tree: ast.Module, arguments: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Of `type=bool`, which makes True of `False` as well: Python's manual, argparse, "type".

    Returns:
        The line that adds the option, its longest name, and what was typed.
    """
    values = (word.rpartition("=")[2].lower() for word in arguments)
    parser = _only_parser(tree) if not _FALSE.isdisjoint(values) else None
    for call in parser.calls if parser is not None else ():
        written = {it.arg: it.value for it in call.keywords}
        options = [str(it.value) for it in call.args if isinstance(it, ast.Constant)]
        is_bool = "type" in written and ast.unparse(written["type"]) == "bool"
        if not is_bool or "action" in written or options[0][:1] != "-":
            continue
        for word, behind in itertools.pairwise([*arguments, ""]):
            option, is_joined, value = word.partition("=")
            value = value if is_joined else behind
            if option in options and value.lower() in _FALSE:
                yield call.lineno, max(options, key=len), word if is_joined else f"{word} {behind}"


def option_for(key: str, script: Path) -> str:
    """The one option of a script that says what a key does, as `--epochs` max_epochs; or empty."""
    tree = script_tree(script)
    known = declared_options(tree) or [] if tree is not None else []
    words = set(key.split("_"))
    plain = {it: set(re.split("[-_]", it.strip("-"))) for it in known if it.startswith("--")}
    same = [it for it, of in plain.items() if of == words]
    near = same or [it for it, of in plain.items() if of < words or words < of]
    return near[0] if len(near) == 1 else ""


def texts_without_type(tree: ast.Module, arguments: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each `args.NAME` that is surely a text, its option, which has no type, and the text.

    None where the text does not tell, or something else may work on the arguments.
    """
    if any("{" in it for it in arguments):
        return {}  # {key} is filled in by a sweep
    parser = _only_parser(tree) if not _gives_more(tree) else None
    try:
        given = vars(parser.parse_args([*arguments])) if parser is not None else {}
    except (RefusedError, argparse.ArgumentError, SystemExit):
        return {}
    options: dict[str, tuple[str, str]] = {}
    for call in parser.calls if parser is not None else ():
        written = {word.arg: word.value for word in call.keywords}
        flags = [str(it.value) for it in call.args if isinstance(it, ast.Constant)]
        option = next((it for it in flags if it.startswith("--")), "")
        if not option or not written.keys().isdisjoint(("type", "action", "nargs", "dest")):
            continue
        name = option.lstrip("-").replace("-", "_")
        default = written.get("default")
        value = given.get(name, default.value if isinstance(default, ast.Constant) else None)
        options |= {name: (option, value)} if isinstance(value, str) else {}
    holders = _only_read(tree)
    return {f"{it}.{name}": told for it in holders for name, told in options.items()}


def _only_read(tree: ast.Module) -> list[str]:
    """Names of what parse_args gives, where nothing is done with it but to read or print it."""
    bound = [
        it.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _called(node.value) == "parse_args"
        for it in node.targets
        if isinstance(it, ast.Name)
    ]
    given = {it.arg for it in ast.walk(tree) if isinstance(it, ast.arg)}
    read = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            read.add(id(node.value))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            read |= {id(it) for it in node.args}
    used = [it for it in ast.walk(tree) if isinstance(it, ast.Name)]
    return [
        name
        for name in bound
        if name not in given
        and sum(it.id == name and isinstance(it.ctx, ast.Store) for it in used) == 1
        and all(id(it) in read for it in used if it.id == name and isinstance(it.ctx, ast.Load))
    ]


def _gives_more(tree: ast.Module) -> bool:
    """Whether what `parse_args()` gives may have more, or other defaults, than its arguments."""
    for node in ast.walk(tree):
        if _called(node) == "parse_args" and isinstance(node, ast.Call):
            if len(node.args) > 1 or any(it.arg == "namespace" for it in node.keywords):
                return True
        elif isinstance(node, ast.Attribute) and node.attr == "set_defaults":
            return True
    return False


def _called(node: ast.AST) -> str:
    """The method's name; empty where it is no call of one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""
