"""What a script's own argparse says of its arguments: its parser is rebuilt from the text."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hpc_train.config.flags import FLAGS
from hpc_train.config.script_tree import script_tree
from hpc_train.config.script_words import ADD_BEHIND
from hpc_train.config.words import did_you_mean

# A script that names one of these may take more than its text shows.
_OPEN = ("parse_known_args", "parse_intermixed_args", "add_subparsers", "argv")
# Options of hpc-train submit and hpc-train run, as they are typed behind their dashes.
OF_SUBMIT = (
    *(flag.option[2:] for flag in FLAGS.values()),
    *("cluster", "devices", "dry-run", "test-only", "follow", "wait", "sweep", "at-most"),
    *("after", "smoke", "bench-first", "partitions", "json", "node-rank", "master"),
)
# What torch.distributed.launch gave each rank, and a job of ours gives one that declares it.
OF_EACH_RANK = ("--local_rank", "--local-rank")
_GROUPS = ("add_argument_group", "add_mutually_exclusive_group")
_TYPES = {"int": int, "float": float, "str": str}
_ACTIONS = ("store", "store_true", "store_false", "store_const", "append", "count", "extend")


class _OpenError(Exception):
    """The text does not tell what the parser takes."""


class _RefusedError(Exception):
    """The parser refuses the arguments, in these words."""


class _Parser(argparse.ArgumentParser):
    def __init__(self) -> None:
        super().__init__(add_help=True)
        self.names: set[str] = set()  # of the attributes that its arguments get

    def error(self, message: str) -> NoReturn:
        raise _RefusedError(message)


def refused_arguments(tree: ast.Module, arguments: Sequence[str]) -> tuple[str, str]:
    """What the script would say of its arguments, and what to write; empty where it takes them.

    Nothing of the script is run. Empty as well where its text does not tell: another parser than
    argparse's, options that are made in a loop, subcommands.
    """
    known: list[str] = []
    try:
        parser = _rebuilt(tree, known)
        of_rank = [f"{it}=0" for it in known if it in OF_EACH_RANK]  # which the job gives each
        if {"-h", "--help"}.isdisjoint(arguments):
            parser.parse_args([*of_rank, *arguments])
    except _OpenError:
        return "", ""
    except (_RefusedError, argparse.ArgumentError) as error:
        said = str(error)
    else:
        return "", ""
    dashed = _with_dashes(arguments, known)
    if dashed != [*arguments] and not refused_arguments(tree, dashed)[0]:
        return said, f"write {shlex.join(dashed)} behind --"
    if "are required: " in said:
        return said, _of_lacking(said.partition("are required: ")[2], arguments, known)
    if not said.startswith("unrecognized"):
        return said, "correct it: what stands behind -- is the script's"
    word = said.partition(": ")[2].split()[0].partition("=")[0]
    if word not in known and word.removeprefix("--") in OF_SUBMIT and word[:2] == "--":
        return said, f"{word} is hpc-train's: write it in front of --"
    return said, did_you_mean(word, known) or f"it takes {', '.join(known) or 'no options'}"


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
    if any(isinstance(it, ast.Attribute) and it.attr == "set_defaults" for it in ast.walk(tree)):
        return None
    try:
        return _rebuilt(tree, []).names
    except _OpenError:
        return None


def declared_options(tree: ast.Module) -> list[str] | None:
    """The options that the script's parser takes; None where its text does not tell them all."""
    known: list[str] = []
    try:
        _rebuilt(tree, known)
    except _OpenError:
        return None
    return known


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
    try:
        given = vars(_rebuilt(tree, []).parse_args(list(arguments)))
    except (_OpenError, _RefusedError, argparse.ArgumentError, SystemExit):
        return {}
    options: dict[str, tuple[str, str]] = {}
    for call in (it for it in ast.walk(tree) if _called(it) == "add_argument"):
        assert isinstance(call, ast.Call)
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


def _rebuilt(tree: ast.Module, known: list[str]) -> _Parser:
    """The parser, and in `known` the options that it takes."""
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_parser(node)]
    if len(made) != 1 or not names.isdisjoint(_OPEN) or _is_handed_on(tree):
        raise _OpenError
    if {word.arg for word in made[0].keywords} - {"description", "prog", "epilog", "usage"}:
        raise _OpenError
    parser = _Parser()
    for node in ast.walk(tree):
        if _is_conditional(node) and any(_called(it) == "add_argument" for it in ast.walk(node)):
            raise _OpenError
        if isinstance(node, ast.Call):
            if _called(node) == "add_argument":
                known += [name for name in _add(parser, node) if name.startswith("-")]
            elif _called(node) == "parse_args" and (node.args or node.keywords):
                raise _OpenError
    return parser


def _called(node: ast.AST) -> str:
    """The method's name; empty where it is no call of one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""


def _is_conditional(node: ast.AST) -> bool:
    """Whether what stands in it may be left out, or come more than once."""
    if isinstance(node, ast.If):  # but for a script's own `if __name__ == "__main__"`
        return "__name__" not in ast.unparse(node.test)
    return isinstance(node, (ast.For, ast.While, ast.Try, ast.Match))


def _is_parser(node: ast.AST) -> bool:
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return called.rpartition(".")[2] == "ArgumentParser"


def _is_handed_on(tree: ast.Module) -> bool:
    """Whether other code may add options to the parser: it is an argument of some call."""
    bound = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and (_is_parser(node.value) or _called(node.value) in _GROUPS)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    given = (it for node in ast.walk(tree) if isinstance(node, ast.Call) for it in _given(node))
    return not bound or any(isinstance(it, ast.Name) and it.id in bound for it in given)


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (word.value for word in call.keywords)


def _add(parser: _Parser, call: ast.Call) -> list[str]:
    flags = [it.value if isinstance(it, ast.Constant) else None for it in call.args]
    written = {word.arg: word.value for word in call.keywords}
    if not flags or not all(isinstance(it, str) for it in flags) or None in written:
        raise _OpenError
    options: dict[str, Any] = {"default": argparse.SUPPRESS}
    for name in ("action", "nargs", "required", "choices", "dest"):
        if name in written:
            options[name] = _literal(written[name])
    if options.get("action", "store") not in _ACTIONS:
        raise _OpenError
    options |= {"const": None} if options.get("action") == "store_const" else {}
    kind = ast.unparse(written["type"]) if "type" in written else "str"
    if kind in _TYPES and kind != "str":
        options["type"] = _TYPES[kind]
    elif kind != "str":
        options.pop("choices", None)  # of what it makes of the text
    try:
        parser.names.add(parser.add_argument(*map(str, flags), **options).dest)
    except (TypeError, ValueError, argparse.ArgumentError) as error:
        raise _OpenError from error
    return list(map(str, flags))


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise _OpenError from error
