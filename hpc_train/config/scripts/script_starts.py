"""A script that surely starts nothing: a module of classes, of values, or a main without a call.

Refused is only what the text tells for certain. A call of anything that is not known to do no
work leaves it open, and so does a decorator, or an own module that does more than to define.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from hpc_train.config.origins import Origins
from hpc_train.config.python_text.harmless_code import (
    does_nothing,
    imports_of,
    is_of_main,
    statements_of,
)
from hpc_train.config.python_text.modules import FoundModule, absolute_name, find_module
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.scripts.file_of_classes import config_of_classes
from hpc_train.config.scripts.script_calls import wrong_guard
from hpc_train.config.scripts.script_trainers import unused_trainer

MOST_MODULES = 100  # a few milliseconds each
_TRAINS = re.compile(r".*(\.fit|\.backward|\bLightningCLI)")
_CONFIGS = re.compile(r"config|conf|cfg|settings|hparams|params|constants|defaults|options")
_HOLDS = re.compile(r"(?:\w+\.)*(?:object|NamedTuple|TypedDict|BaseModel|BaseSettings|Enum)")
_FIT = "write trainer.fit(model, data) at its end; if that is right: script.may_take_no_steps=true"
_YAML = (
    "write a YAML file with name: my-run, model: {class_path: my_package.MyModel, init_args:"
    " {lr: 0.1}}, ...; `hpc-train init FOLDER` makes a whole one"
)


def check_starts(
    tree: ast.Module, file: Path, search_path: Sequence[str], origins: Origins
) -> None:
    """Refuse a script of whose text it is certain that nothing would be trained.

    Args:
        tree: Of the script.
        file: The script.
        search_path: As `sys.path`, with the script's folder first.

    Raises:
        ConfigError: what is missing, and what to write.
    """
    defines = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    makes = (*defines, *(() if "argparse" in imports_of(tree) else (ast.Assign, ast.AnnAssign)))
    if wrong := wrong_guard(tree):  # what stands below it is not run
        guard, said = wrong
        rest = ast.Module([it for it in tree.body if it is not guard], [])
        if does_nothing(rest) and all(map(does_nothing, own_modules(rest, file, search_path))):
            where = f": {file.name}:{guard.lineno} compares {said}, which it never is"
            hint = 'write if __name__ == "__main__":'
            raise origins.error("script.path", f"{where}, so nothing would be trained", hint)
    if not any(isinstance(it, makes) for it in tree.body) or not does_nothing(tree):
        return
    if _own_modules_do_nothing(tree, file, search_path):
        said, hint = _why(tree, file, search_path)
        raise origins.error("script.path", f": {file.name} {said}", hint)


def check_trainer_is_used(
    tree: ast.Module, file: Path, search_path: Sequence[str], origins: Origins
) -> None:
    """Refuse a script of whose text it is certain that nothing is asked of its Trainer.

    Raises:
        ConfigError: see `check_starts`, whose arguments these are.
    """
    if (made := unused_trainer(tree)) and _own_modules_do_nothing(tree, file, search_path):
        where = f"{file.name}:{made.lineno}"
        said = f": {where} makes a Trainer, and nothing calls its fit, test, validate or predict"
        raise origins.error("script.path", f"{said}, so nothing would be trained", _FIT)


def _own_modules_do_nothing(tree: ast.Module, file: Path, search_path: Sequence[str]) -> bool:
    return all(map(does_nothing, own_modules(tree, file, search_path)))


def _why(tree: ast.Module, file: Path, search_path: Sequence[str]) -> tuple[str, str]:
    functions = [it for it in tree.body if isinstance(it, ast.FunctionDef)]
    classes = [it for it in tree.body if isinstance(it, ast.ClassDef)]
    if main := _uncalled(functions):
        said = f"defines {main.name} (line {main.lineno}), and nothing calls it"
        return f"{said}, so nothing would be trained", _how_to_call(main, tree)
    if not functions and all(map(_only_holds, classes)):
        has = f"only defines {classes[0].name}, which holds values" if classes else ""
        return f"{has or 'only assigns values'}, and a config is a YAML file", _YAML
    if _CONFIGS.fullmatch(file.stem.lower()):
        return "trains nothing, and a config is a YAML file", _YAML
    what = "classes and functions" if classes else "functions"
    config = config_of_classes(file, [it.name for it in classes], search_path)
    return f"defines {what}, and starts none of them", f"call what trains at its end, or {config}"


def _uncalled(functions: Sequence[ast.FunctionDef]) -> ast.FunctionDef | None:
    """The function that is meant to start the training, where one alone may be; else None."""
    calls = {it.name: _names(it) - {it.name} for it in functions}
    training = {it.name for it in functions if _trains(it)}
    while more := {it for it in calls if calls[it] & training} - training:
        training |= more
    outer = [it for it in functions if not any(it.name in names for names in calls.values())]
    meant = [it for it in outer if it.name in training] or [it for it in outer if it.name == "main"]
    named = [it for it in meant if it.name == "main"] or meant
    return named[0] if len(named) == 1 else None


def _trains(function: ast.FunctionDef) -> bool:
    called = {ast.unparse(it.func) for it in ast.walk(function) if isinstance(it, ast.Call)}
    words = {it.rpartition(".")[2] for it in called}
    of_trainer = any(it.endswith("Trainer") for it in words) and "train" in words
    return of_trainer or any(map(_TRAINS.fullmatch, called))


def _names(function: ast.FunctionDef) -> set[str]:
    return {it.id for it in ast.walk(function) if isinstance(it, ast.Name)}


def _how_to_call(main: ast.FunctionDef, tree: ast.Module) -> str:
    needed = len(main.args.args) - len(main.args.defaults)
    given = "..." if needed > 0 and not main.decorator_list else ""
    call = f"{main.name}({given})"
    for statement in statements_of(tree.body):
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Name) and value.id == main.name:
            return f"line {statement.lineno} names it and does not call it: write {call}"
    block = next((it for it in tree.body if is_of_main(it)), None)
    if block is not None:
        return f"write {call} at the end of the block in line {block.lineno}"
    return f'write two lines at its end: if __name__ == "__main__": and, indented below it, {call}'


def _only_holds(definition: ast.ClassDef) -> bool:
    """Whether a class is a record: of no other's, with no methods but those of Python's own."""
    methods = [it for it in definition.body if isinstance(it, ast.FunctionDef)]
    return all(_HOLDS.fullmatch(ast.unparse(it)) for it in definition.bases) and all(
        it.name.startswith("__") or it.decorator_list for it in methods
    )


def own_modules(tree: ast.Module, file: Path, search_path: Sequence[str]) -> Iterator[ast.Module]:
    """What of the folder of the script its import runs, as text, each once."""
    yield from (text for _, text in own_files(tree, file, search_path))


def own_files(
    tree: ast.Module,
    file: Path,
    search_path: Sequence[str],
    *,
    also_inner: bool = False,
    also_below: Sequence[str] = (),
) -> Iterator[tuple[Path, ast.Module]]:
    """The same with its files.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
        also_inner: Whether imports in functions count.
        also_below: Folders beside the first one whose modules are the user's own.
    """
    folders, seen = [Path(it) for it in (search_path[0], *also_below)], {file.resolve()}
    waiting = [(FoundModule("__main__", file, ()), tree)]
    while waiting and len(seen) < MOST_MODULES:
        module, text = waiting.pop()
        for found in _found(imports_of(text, also_inner=also_inner), module, search_path):
            if found.file is None or found.file in seen or _is_installed(found.file):
                continue
            if not any(map(found.file.is_relative_to, folders)):
                continue
            seen.add(found.file)
            if (below := script_tree(found.file)) is not None:  # else the check of imports tells it
                yield found.file, below
                waiting.append((found, below))


def _found(
    names: Collection[str], importer: FoundModule, search_path: Sequence[str]
) -> Iterator[FoundModule]:
    """The modules of dotted names, with the packages that they are in."""
    for name in names:
        words = absolute_name(name, importer).split(".")
        if words[0] in {"", *sys.stdlib_module_names}:
            continue
        for count in range(1, len(words) + 1):
            found, _ = find_module(".".join(words[:count]), search_path)
            if found is not None:
                yield found


def _is_installed(file: Path) -> bool:
    return "site-packages" in file.parts
