"""Numbers that `train_dataloader` gives its DataLoader, held against the config."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_train.config.python_text.class_kind import locate, method_of
from hpc_train.config.schema import Config
from hpc_train.config.specs import read_object

_MOST_STEPS = 3  # of methods that call others of their class
_KEEPS_ALL = re.compile(r"self\.save_hyperparameters\((?:logger=\w+)?\)")
_FILLED_IN = "batch_size"  # what a rank gives the class where it takes it


@dataclass(frozen=True)
class _Data:
    """The data's class, what the config gives it, and where modules are found."""

    class_path: str
    given: Mapping[str, Any]
    path: Sequence[str]

    def method(self, name: str) -> ast.FunctionDef | None:
        found = method_of(self.class_path, name, self.path)
        return found[1] if found else None

    def assigned(self, name: str) -> ast.expr | None:
        """What `self.NAME` is, where one line of the class or of its `__init__` says it alone."""
        found, start = locate(self.class_path, self.path), self.method("__init__")
        definition = found.definition if found else None
        if not isinstance(definition, ast.ClassDef) or "setattr" in ast.unparse(definition):
            return None
        stored = [
            it
            for it in ast.walk(definition)
            if isinstance(it, (ast.Attribute, ast.Name)) and isinstance(it.ctx, ast.Store)
            if name == (it.attr if isinstance(it, ast.Attribute) else it.id)
        ]
        own = start.body if start is not None and start in definition.body else []
        lines = {f"self.{name}": own, name: definition.body}
        sure = [it for text, body in lines.items() for it in _values(body, text)]
        return sure[0] if len(stored) == len(sure) == 1 else None

    def keeps_arguments(self) -> bool:
        """Whether `__init__` says save_hyperparameters() of all that it takes, and changes none."""
        start = self.method("__init__")
        if start is None:
            return False
        arguments = {it.arg for it in (*start.args.args, *start.args.kwonlyargs)}
        stored = {
            it.id
            for it in ast.walk(start)
            if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
        }
        lines = map(ast.unparse, start.body)
        return not stored & arguments and any(map(_KEEPS_ALL.fullmatch, lines))


def loader_notes(class_path: str, config: Config, path: Sequence[str]) -> Iterator[str]:
    """A line each: more data workers than a rank's CPUs, a batch size that is not the config's."""
    data = _Data(class_path, read_object(config.data, "data")[1], path)
    workers, name = _written(data, "num_workers", 5)
    cpus = config.slurm.cpus_per_gpu
    if workers is not None and cpus is not None and workers > cpus:
        says = f"{class_path} has train_dataloader start {workers} workers a rank"
        fewer = f"data.init_args.{name}" if name else "num_workers"
        needed = (workers + 1) * max(1, config.slurm.gpus_per_node)
        more = f"slurm.cpus_per_gpu={workers + 1} where a node has {needed} CPUs"
        fix = f"{fewer}={cpus - 1}, or {more}"
        yield f"{says}, and slurm.cpus_per_gpu is {cpus}: write {fix}"
    size, total = _written(data, "batch_size", 1)[0], config.global_batch_size
    ranks = config.slurm.nodes * max(1, config.slurm.gpus_per_node)
    if size not in (None, total, config.micro_batch_size, total / ranks):
        decides = f"global_batch_size, {total}, decides what a rank has"
        fix = "let __init__ take batch_size, which is then filled in, and give the loader that"
        yield f"{class_path} has train_dataloader give batches of {size}, and {decides}: {fix}"


def _written(data: _Data, argument: str, place: int) -> tuple[int | None, str]:
    """The number in the DataLoader that train_dataloader makes, or a method that it calls.

    Args:
        data: The class.
        argument: Of DataLoader.
        place: Of the argument among those without a name.

    Returns:
        The number, None where none stands there, or where several loaders have not the same; and
        the argument of the class that it is, if it is one.
    """
    found = {_number(it, argument, place, data) for it in _loaders(data, "train_dataloader")}
    return next(iter(found)) if len(found) == 1 else (None, "")


def _loaders(data: _Data, method: str, steps: int = _MOST_STEPS) -> Iterator[ast.Call]:
    found = data.method(method) if steps else None
    for call in ast.walk(found) if found else ():
        if not isinstance(call, ast.Call):
            continue
        holder, _, name = ast.unparse(call.func).rpartition(".")
        if name == "DataLoader":
            yield call
        elif holder == "self" and name != method:
            yield from _loaders(data, name, steps - 1)


def _number(call: ast.Call, argument: str, place: int, data: _Data) -> tuple[int | None, str]:
    named = [it.value for it in call.keywords if it.arg == argument]
    value: ast.expr | None = (*named, *call.args[place : place + 1], None)[0]
    name = ""
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self":
        value = data.assigned(value.attr)
        name = value.id if isinstance(value, ast.Name) else ""
    elif isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self.hparams":
        name = value.attr if data.keeps_arguments() else ""
    if name:
        return _of_argument(name, data), name
    return (_whole(value.value) if isinstance(value, ast.Constant) else None), ""


def _of_argument(name: str, data: _Data) -> int | None:
    """What the config gives `__init__` under this name, or its default."""
    start = data.method("__init__")
    if start is None or name == _FILLED_IN:
        return None
    if name in data.given:
        return _whole(data.given[name])
    plain = [*start.args.posonlyargs, *start.args.args]
    of_plain = zip(reversed(plain), reversed(start.args.defaults), strict=False)
    defaults = [*of_plain, *zip(start.args.kwonlyargs, start.args.kw_defaults, strict=True)]
    found = next((value for it, value in defaults if it.arg == name), None)
    # A number that is 0 by default is filled in, too.
    return (_whole(found.value) or None) if isinstance(found, ast.Constant) else None


def _values(body: Sequence[ast.stmt], target: str) -> Iterator[ast.expr]:
    """What is assigned to `target`, under no condition, alone or as one of several."""
    for line in body:
        targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
        value = line.value if isinstance(line, (ast.Assign, ast.AnnAssign)) else None
        if value is None:
            continue
        for it in filter(None, targets):
            pairs = [(it, value)]
            if isinstance(it, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = [*zip(it.elts, value.elts, strict=False)]
            yield from (given for one, given in pairs if ast.unparse(one) == target)


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None
