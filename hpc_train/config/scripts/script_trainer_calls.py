"""Calls of a script's Trainer that surely fail where they are reached: told from its text."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from hpc_train.config.python_text.abstract_methods import lacking
from hpc_train.config.python_text.class_kind import Located, locate, method_of
from hpc_train.config.python_text.classes import parameters_of
from hpc_train.config.python_text.modules import read_names
from hpc_train.config.scripts.script_arguments import texts_without_type
from hpc_train.config.scripts.script_call_arguments import bound_once, sure_calls
from hpc_train.config.scripts.script_calls import classes_meant
from hpc_train.config.scripts.script_evaluations import wrong_evaluations
from hpc_train.config.scripts.script_samplers import refused_samplers
from hpc_train.config.scripts.script_trainers import imported, made_trainers
from hpc_train.config.scripts.script_words import is_only_read, untyped_word
from hpc_train.config.scripts.wanted_metric import wanted_metric
from hpc_train.config.trainer_args import NEED_A_LOGGER, NOT_ON_A_CPU, full_precision
from hpc_train.config.words import near_words

# Methods that other libraries' trainers have, and what Lightning's does it by.
MEANT_METHODS: Mapping[str, str] = {
    **dict.fromkeys(("train", "run", "start", "train_model", "fit_model", "learn"), "fit"),
    **dict.fromkeys(("evaluate", "eval", "val", "validation"), "validate"),
    **dict.fromkeys(("infer", "inference", "prediction"), "predict"),
}
_RUNS = ("fit", "validate", "test", "predict")
_HOLD_OBJECTS = ("callbacks", "logger", "strategy", "profiler")  # of a Trainer's arguments
_LONGEST = 60  # characters of arguments that are written again


@dataclass(frozen=True, kw_only=True)
class ScriptText:
    """A script, where it lies, and how it is started.

    Attributes:
        search_path: As `sys.path`, with the script's folder first.
        arguments: What it is given on its command line.
        on_cpu: Whether the command has it train on CPUs, whatever its Trainers say.
    """

    tree: ast.Module
    file: Path
    search_path: Sequence[str]
    arguments: Sequence[str] = ()
    on_cpu: bool = False


def wrong_calls(script: ScriptText) -> Iterator[tuple[int, str, str]]:
    """The line of each, what is wrong with it, and what to write."""
    stored = {it.attr for it in ast.walk(script.tree) if _is_set_elsewhere(it)}
    if stored & {"__init__", "Trainer", *MEANT_METHODS, *_RUNS}:
        return
    made = {id(it) for it in made_trainers(script.tree)}
    once = bound_once(script.tree)
    kinds = _trainer_classes(script.tree)
    calls = [it for it in sure_calls(script.tree) if _first_name(it) in once]
    classes = _Classes(script, once)
    held = [it for it in _held(script.tree, kinds) if it in once]
    fits = len(made) == 1 and any(
        _method(it) == "fit" and _is_of_trainer(it.func, held, kinds) for it in calls
    )
    for call in calls:
        told: Iterator[tuple[str, str]] = iter(())
        if id(call) in made:
            told = _of_trainer(call, script, classes, fits=fits)
        elif isinstance(call.func, ast.Attribute):
            told = _of_method(call, call.func, held, kinds, classes)
        told = itertools.chain(told, _lacking(call, classes, script))
        yield from ((call.lineno, said, hint) for said, hint in told)
    if len(made) == 1:
        trainer = next(it for it in made_trainers(script.tree) if id(it) in made)
        of_it = [it for it in calls if _is_of_trainer(it.func, held, kinds)]
        wrong = wrong_evaluations(script.tree, of_it, trainer, once, classes.of)
        yield from ((call.lineno, said, hint) for call, said, hint in wrong)
    yield from refused_samplers(script.tree, kinds, classes.of, script.search_path)
    if is_only_read(script.tree, once):
        yield from _untyped(script)


def _untyped(script: ScriptText) -> Iterator[tuple[int, str, str]]:
    """The first word of the command line that is read and is not there."""
    for call in sure_calls(script.tree):
        if word := untyped_word(call, len(script.arguments)):
            many = f"{len(script.arguments) or 'no'} argument{'s'[len(script.arguments) == 1 :]}"
            said = f"reads {word}, and the script is given {many}"
            yield call.lineno, said, f"type them behind --: {script.file.name} -- VALUE"
            return


def _of_trainer(
    call: ast.Call, script: ScriptText, classes: _Classes, *, fits: bool
) -> Iterator[tuple[str, str]]:
    """Values of a Trainer's arguments."""
    given = {it.arg: it.value for it in call.keywords if it.arg}
    on_cpu = script.on_cpu or _constant(given.get("accelerator")) == "cpu"
    precision = _constant(given.get("precision"))
    if on_cpu and isinstance(precision, str | int) and full_precision(precision) in NOT_ON_A_CPU:
        by = " (script.accelerator=cpu)" if script.on_cpu else ""
        said = f"has Trainer(precision={precision!r}), which does not work on a CPU{by}"
        yield said, 'write precision="bf16-mixed", or leave it out'
    if fits and "fast_dev_run" not in given and (epochs := given.get("max_epochs")) is not None:
        texts = texts_without_type(script.tree, script.arguments)
        option, text = texts.get(ast.unparse(epochs), ("", ""))
        if option:
            said = f"has Trainer(max_epochs={ast.unparse(epochs)}), which is the text {text!r}"
            yield said, f'write add_argument("{option}", type=int)'
    if fits and _constant(given.get("logger")) is False:
        for name in _without_logger(given.get("callbacks"), classes):
            said = f"has Trainer(logger=False) beside {name}, which refuses to train without one"
            yield said, f"leave logger=False out, or {name}"
    for name in _HOLD_OBJECTS:
        value = given.get(name)
        for item in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            if isinstance(item, ast.Name) and classes.of(item.id) is not None:
                said = f"gives Trainer({name}=...) the class {item.id}, and no object of it"
                yield said, f"write {_made(item.id, classes, script)}"


def _without_logger(callbacks: ast.expr | None, classes: _Classes) -> Iterator[str]:
    """Those of Lightning's in the list that need one."""
    for item in callbacks.elts if isinstance(callbacks, ast.List | ast.Tuple) else [callbacks]:
        name = ast.unparse(item.func) if isinstance(item, ast.Call) else ""
        found = classes.of(name) if name else None
        if found is not None and found.name in NEED_A_LOGGER:
            yield name


def _of_method(
    call: ast.Call,
    called: ast.Attribute,
    held: Collection[str],
    made: Collection[str],
    classes: _Classes,
) -> Iterator[tuple[str, str]]:
    """Methods that a Trainer has not, and such as are called on the class itself."""
    owner = ast.unparse(called.value)
    given = ", ".join(ast.unparse(it) for it in (*call.args, *call.keywords))
    given = given if len(given) <= _LONGEST else "..."
    if called.attr in MEANT_METHODS and _is_of_trainer(called, held, made):
        said = f"calls {called.attr} of Lightning's Trainer, which has no such method"
        name = owner if owner in held else "Trainer(...)"
        yield said, f"write {name}.{MEANT_METHODS[called.attr]}({given})"
    if called.attr in _RUNS and _is_of_trainer(called, held, made):
        yield from _unknown_words(call, called, classes)
    if owner in made and called.attr in _RUNS and not _may_be_trainer(call, classes):
        said = f"calls {owner}.{called.attr} of the class, and of no object of it"
        name = next(iter(held), f"{owner}(...)")
        yield said, f"write {name}.{called.attr}({given})"


def _unknown_words(
    call: ast.Call, called: ast.Attribute, classes: _Classes
) -> Iterator[tuple[str, str]]:
    """Keywords that a Trainer's method does not take, by Lightning's own text."""
    method = classes.trainers_method(called.attr)
    if method is None or method.args.kwarg:
        return
    known = [it.arg for it in (*method.args.args[1:], *method.args.kwonlyargs)]
    for it in (it for it in call.keywords if it.arg and it.arg not in known):
        gives = f"gives {ast.unparse(called)} {it.arg}"
        near, value = near_words(it.arg or "", known), ast.unparse(it.value)
        write = f"{near[0]}={value if len(value) <= _LONGEST else '...'}" if near else ""
        said = f"{gives}, which Lightning's {called.attr} does not take"
        yield said, f"write {write}" if near else f"it takes {', '.join(known)}"


def _may_be_trainer(call: ast.Call, classes: _Classes) -> bool:
    """Whether the first argument of `Trainer.fit(...)` may be one, as self."""
    if not call.args:
        return any(it.arg in (None, "self") for it in call.keywords)
    first = call.args[0]
    return not isinstance(first, ast.Call) or classes.of(ast.unparse(first.func)) is None


def _lacking(call: ast.Call, classes: _Classes, script: ScriptText) -> Iterator[tuple[str, str]]:
    """Methods that a class has to have, and arguments that its `__init__` needs."""
    name = ast.unparse(call.func)
    found = classes.of(name)
    if found is None or found.names is None or not isinstance(found.definition, ast.ClassDef):
        return
    lacks, hint = lacking(found, script.search_path)
    if lacks:
        yield f"makes {name}, which {lacks}", hint
    known = None if found.definition.keywords else parameters_of(found.name, found.names)
    is_open = any(isinstance(it, ast.Starred) for it in call.args)
    if known is None or is_open or any(it.arg is None for it in call.keywords):
        return
    given = {*known.names[: len(call.args)], *(it.arg for it in call.keywords if it.arg)}
    if missing := known.missing(given):
        said = f"makes {name} without {' and '.join(missing)}, which it needs"
        yield said, f"write {_made(name, classes, script, call)}"


def _made(name: str, classes: _Classes, script: ScriptText, call: ast.Call | None = None) -> str:
    """How an object of a class is made, with what it needs."""
    found = classes.of(name)
    known = parameters_of(found.name, found.names) if found and found.names else None
    given = [ast.unparse(it) for it in (*call.args, *call.keywords)] if call else []
    words = {it.arg for it in call.keywords if it.arg} if call else set()
    there = {*(known.names[: len(call.args)] if known and call else ()), *words}
    for needed in known.missing(there) if known else ():
        metric = wanted_metric(script.tree, script.search_path)
        given.append(f'{needed}="{metric}"' if needed == "monitor" else f"{needed}=...")
    written = ", ".join(given)
    return f"{name}({written if len(written) <= _LONGEST else '...'})"


class _Classes:
    """Names of a script that mean a class of Lightning's, its own or of a module beside it."""

    def __init__(self, script: ScriptText, once: Collection[str]) -> None:
        self._script = script
        self._own = classes_meant(script.tree, script.search_path)
        self._homes: dict[str, str] = {}
        for node in script.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._homes |= {
                    it.asname or it.name: f"{node.module}.{it.name}" for it in node.names
                }
        self._homes = {name: home for name, home in self._homes.items() if name in once}

    def trainers_method(self, name: str) -> ast.FunctionDef | None:
        """A method of Lightning's Trainer, of whichever of its packages is here."""
        for package in ("lightning.pytorch", "pytorch_lightning"):
            home = f"{package}.trainer.trainer.Trainer"
            if found := method_of(home, name, self._script.search_path):
                return found[1]
        return None

    def of(self, name: str) -> Located | None:
        """Where its text is; None where that is not told, or it is no class."""
        script, home = self._script, self._homes.get(name, "")
        found = None
        if name in self._own and not home:
            found = Located(script.file.stem, name, read_names(script.file))
        elif name in self._own or home.startswith(("pytorch_lightning.", "lightning.pytorch.")):
            found = locate(home, script.search_path)
        definition = found.definition if found else None
        is_plain = isinstance(definition, ast.ClassDef) and not definition.decorator_list
        is_one = found is not None and found.names is not None and name not in found.names.imports
        return found if is_plain and is_one else None


def _trainer_classes(tree: ast.Module) -> set[str]:
    """How a script writes Lightning's Trainer."""
    modules, names = imported(tree)
    alone = {name for name, what in names.items() if what == "Trainer"}
    return alone | {f"{module}.Trainer" for module in modules}


def _held(tree: ast.Module, kinds: Collection[str]) -> Iterator[str]:
    """Names that a statement binds to a new Trainer."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(value, ast.Call):
            names = [it.id for it in node.targets if isinstance(it, ast.Name)]
            yield from names if ast.unparse(value.func) in kinds else []


def _first_name(node: ast.expr) -> str:
    """The name that a chain of attributes and calls begins with."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _is_of_trainer(called: ast.expr, held: Collection[str], kinds: Collection[str]) -> bool:
    """Whether `called` is a method of a Trainer that has a name, or is made there."""
    owner = called.value if isinstance(called, ast.Attribute) else called
    is_new = isinstance(owner, ast.Call) and ast.unparse(owner.func) in kinds
    return is_new or ast.unparse(owner) in held


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _is_set_elsewhere(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether it puts something into a class or an object from outside."""
    is_stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return is_stored and isinstance(node, ast.Attribute) and ast.unparse(node.value) != "self"
