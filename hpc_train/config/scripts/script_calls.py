"""Calls of a script that surely fail where they are reached, told from its text."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from hpc_train.config.python_text.harmless_code import is_of_main
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.scripts.script_trainers import RUNS, imported, made_trainers

_CLI_HOMES = ("pytorch_lightning.cli", "lightning.pytorch.cli")
_CLI_NEEDS = "jsonargparse"
_POSITIONAL = 2  # the model's class and the data's, in front of all other arguments of LightningCLI
_NAMES_COMMAND = ("--subcommand", "--print_", "-h", "--help")
_MAY_NAME_COMMAND = (None, "run", "args", "parser_kwargs", "parser_class")  # of its arguments
_OTHER_WAYS = re.compile(r"\b(?:argv|environ|putenv|exit|_exit|quit|exec|eval)\b")
_MOST_CALLS = 4  # of functions that call functions
_YAML = (".yaml", ".yml")
_GIVEN = ("model", "datamodule")


def wrong_guard(tree: ast.Module) -> tuple[ast.If, str] | None:
    """`if __name__ == "main":`, which is never true, and what it compares; None without one."""
    guards = (it for it in tree.body if isinstance(it, ast.If) and not it.orelse)
    return next(((it, said) for it in guards if (said := _never_true(it.test))), None)


def _never_true(test: ast.expr) -> str:
    """What a guard compares that is never alike; empty where it is right, or no guard at all."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ""
    if not isinstance(test.ops[0], ast.Eq):
        return ""
    sides = [test.left, *test.comparators]
    words = [it.value for it in sides if isinstance(it, ast.Constant)]
    names = [it.id for it in sides if isinstance(it, ast.Name)]
    if {*words} == {"__name__", "__main__"}:
        return "the text '__name__' with '__main__'"
    if names != ["__name__"] or len(words) != 1 or not isinstance(words[0], str):
        return ""
    is_meant = words[0] != "__main__" and words[0].strip("_ ").casefold() == "main"
    return f"__name__ with {words[0]!r}" if is_meant else ""


def class_that_is_fitted(
    tree: ast.Module, run: Sequence[ast.AST], search_path: Sequence[str]
) -> tuple[int, str, str] | None:
    """A class in the place of a model or a DataModule: the line, the method and the class.

    Args:
        tree: The script.
        run: The parts of it that stand under no condition.
        search_path: As `sys.path`, with the script's folder first.
    """
    classes = classes_meant(tree, search_path)
    made = {ast.unparse(call.func) for call in made_trainers(tree)}
    held = set(_bound(tree, made))
    for node in run:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        is_new = isinstance(owner, ast.Call) and ast.unparse(owner.func) in made
        if node.func.attr not in RUNS or not (is_new or ast.unparse(owner) in held):
            continue
        named = [word.value for word in node.keywords if word.arg in _GIVEN]
        for value in (*node.args[:1], *named):
            if isinstance(value, ast.Name) and value.id in classes:
                return node.lineno, node.func.attr, value.id
    return None


def _bound(tree: ast.Module, made: Collection[str]) -> Iterator[str]:
    """Names that a call of the class Trainer, and nothing else, is bound to."""
    values: dict[str, list[bool]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            is_made = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in made
            for target in node.targets:
                values.setdefault(ast.unparse(target), []).append(is_made)
    return (name for name, all_made in values.items() if all(all_made))


def classes_meant(tree: ast.Module, search_path: Sequence[str]) -> set[str]:
    """Names that mean a class of the script's own or of a module beside it, and nothing else."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            there = _defined(node.module, search_path[:1])
            found += [it.asname or it.name for it in node.names if it.name in there]
    rebound = {it.id for it in ast.walk(tree) if isinstance(it, ast.Name) and _is_stored(it)}
    rebound |= {it.arg for it in ast.walk(tree) if isinstance(it, ast.arg)}
    rebound |= {it.name for it in ast.walk(tree) if isinstance(it, ast.FunctionDef)}
    return {name for name in found if name not in rebound}


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, (ast.Store, ast.Del))


def _defined(module: str, folder: Sequence[str]) -> set[str]:
    """The classes that a module's text defines at its top, and binds to nothing else there."""
    found, rest = find_module(module, folder)
    if found is None or rest or found.file is None or "site-packages" in found.file.parts:
        return set()
    try:
        body = ast.parse(found.file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return set()  # told by the check of the imports
    targets = [it for node in body if isinstance(node, ast.Assign) for it in node.targets]
    bound = {ast.unparse(it) for it in targets}
    return {it.name for it in body if isinstance(it, ast.ClassDef)} - bound


def cli_without_parser(
    tree: ast.Module, run: Sequence[ast.AST], search_path: Sequence[str]
) -> int | None:
    """The line that calls LightningCLI where jsonargparse is not there; None elsewhere."""
    calls = _cli_calls(tree, run)
    if not calls or find_module(_CLI_NEEDS, search_path)[0] is not None:
        return None
    return calls[0].lineno


def cli_without_command(
    tree: ast.Module, arguments: Sequence[str], folder: Path = Path()
) -> int | None:
    """The line that calls LightningCLI, which wants fit or another command and is given none.

    A file of its own may name the command, by its sections (LightningCLI's manual, "Run with
    subcommands in a config file"), and other code may write the arguments anew or end the script
    before it.

    Args:
        tree: The script.
        arguments: Of the script, as they are typed.
        folder: Where it is started.
    """
    call = sure_cli_call(tree)
    if call is None:
        return None
    given = {word.arg for word in call.keywords}
    if len(call.args) > _POSITIONAL or not given.isdisjoint(_MAY_NAME_COMMAND):
        return None
    if _OTHER_WAYS.search(ast.unparse(tree)):
        return None
    is_open = any(it in RUNS or it.startswith(_NAMES_COMMAND) or "{" in it for it in arguments)
    return None if is_open or _a_file_may_name_it(arguments, folder) else call.lineno


def sure_cli_call(tree: ast.Module) -> ast.Call | None:
    """The script's one call of LightningCLI, where it stands under no condition."""
    calls = _cli_calls(tree, list(ast.walk(tree)))
    functions = {it.name: it for it in tree.body if isinstance(it, ast.FunctionDef)}
    if len(calls) != 1 or calls[0] not in _surely_run(tree.body, functions, _MOST_CALLS):
        return None
    return calls[0]


def absent_cli_config(tree: ast.Module, arguments: Sequence[str], folder: Path) -> str:
    """The file behind a `--config` of LightningCLI that is not there; empty where all are.

    Args:
        tree: The script.
        arguments: Of the script, as they are typed.
        folder: Where it is started.
    """
    if len(_cli_calls(tree, list(ast.walk(tree)))) != 1 or "chdir" in ast.unparse(tree):
        return ""
    for file in cli_configs(arguments):
        is_name = Path(file).suffix in _YAML and not re.search(r"[{}:\n]", file)
        if is_name and not (folder / file).exists():
            return file
    return ""


def cli_configs(arguments: Sequence[str]) -> Iterator[str]:
    """What stands behind each `--config`: a file, or the text of one."""
    for word, behind in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        if name == "--config":
            yield value if equals else behind


def _a_file_may_name_it(arguments: Sequence[str], folder: Path) -> bool:
    """Whether a `--config` that is typed without a command may have one."""
    for given in cli_configs(arguments):
        file = folder / given
        try:
            held = yaml.safe_load(file.read_text("utf-8")) if file.suffix in _YAML else None
        except (OSError, ValueError, yaml.YAMLError):
            return True
        if not isinstance(held, Mapping) or not {*RUNS, "subcommand"}.isdisjoint(held):
            return True
    return False


def _surely_run(
    body: Sequence[ast.stmt], functions: Mapping[str, ast.FunctionDef], steps: int
) -> Iterator[ast.AST]:
    """Calls in statements under no condition, and in functions that such a one calls."""
    for statement in body:
        if isinstance(statement, ast.With) or is_of_main(statement):
            yield from _surely_run(getattr(statement, "body", []), functions, steps)
        elif any(isinstance(it, (ast.Return, ast.Raise)) for it in ast.walk(statement)):
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                continue
            return
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(value, ast.Call):
            continue
        yield value
        called = functions.get(ast.unparse(value.func))
        if called is not None and not called.decorator_list and steps:
            yield from _surely_run(called.body, functions, steps - 1)


def _cli_calls(tree: ast.Module, run: Sequence[ast.AST]) -> list[ast.Call]:
    modules, _ = imported(tree)
    names = {f"{module}.cli.LightningCLI" for module in modules}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _CLI_HOMES:
            names |= {it.asname or it.name for it in node.names if it.name == "LightningCLI"}
    return [it for it in run if isinstance(it, ast.Call) and ast.unparse(it.func) in names]
