"""An object that the `__init__` of a model or the data makes with arguments that do not fit it.

As `torchmetrics.Accuracy()`, which needs a task since version 0.11 of torchmetrics.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hpc_train.config.fit.late_loaders import run_by, surely_run
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.classes import parameters_of
from hpc_train.config.python_text.method_signatures import methods_of
from hpc_train.config.python_text.modules import full_name
from hpc_train.config.words import did_you_mean

_COUNT = re.compile(r"(?:n|num)_?(?:classes|labels)|classes")  # how many, among arguments
# Their layers are many and large to read, and a call that does not fit ends at once.
_NOT_READ = ("torch.", "torchvision.", "timm.", "transformers.")
_COUNT_OF_TASK = {"multiclass": "num_classes", "multilabel": "num_labels"}
_UNKNOWN = object()  # of a value that the text does not tell


def incomplete_calls(class_path: str, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Of each such line what is wrong, with its place, and what to write.

    Args:
        class_path: Of the model or the data.
        path: As `sys.path`, with the user's folder first.
    """
    found = locate(class_path, path)
    definition = found.definition if found else None
    if found is None or not isinstance(definition, ast.ClassDef) or definition.decorator_list:
        return
    start = methods_of(definition).get("__init__")
    if start is None or start.decorator_list:
        return
    own = _bound_in(start)
    for statement in surely_run(start):
        for call in run_by(statement):
            name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
            if not name or name.partition(".")[0] in own or not isinstance(call, ast.Call):
                continue
            made = _with_init(_class_of(name, found, path), path)
            if made and (wrong := _wrong(call, name, made, start)):
                said = f"{class_path}.__init__ calls {name} {wrong[0]}"
                yield f"{said} ({place_of(found, call.lineno, path)})", wrong[1]


def _bound_in(method: ast.FunctionDef) -> set[str]:
    """Names that are the method's own, whatever the module calls so."""
    bound = {it.arg for it in ast.walk(method) if isinstance(it, ast.arg)}
    for node in ast.walk(method):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(it.asname or it.name).partition(".")[0] for it in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
    return bound


def _class_of(name: str, found: Located, path: Sequence[str]) -> Located | None:
    """The class that a module names so; None where the text does not tell."""
    names = found.names
    if names is None:
        return None
    first = name.partition(".")[0]
    if first not in names.imports and name not in names.definitions:
        return None
    dotted = full_name(name, names.imports) if first in names.imports else f"{found.module}.{name}"
    if dotted.startswith(_NOT_READ):
        return None
    made = locate(dotted, path)
    definition = made.definition if made else None
    # A metaclass may take or give arguments of its own.
    is_plain = isinstance(definition, ast.ClassDef) and not definition.keywords
    return made if is_plain else None


def _with_init(made: Located | None, path: Sequence[str]) -> Located | None:
    """Of torchmetrics: the base that has the `__init__`, by its own name; else the class itself."""
    holder = made
    while holder and holder.names and holder.module.startswith("torchmetrics."):
        definition = holder.definition
        if not isinstance(definition, ast.ClassDef) or len(definition.bases) != 1:
            return made
        if {"__init__", "__new__"} & methods_of(definition).keys():
            return holder
        base = ast.unparse(definition.bases[0])
        holder = locate(full_name(base, holder.names.imports), path)
    return made


def _wrong(
    call: ast.Call, name: str, made: Located, method: ast.FunctionDef
) -> tuple[str, str] | None:
    """What does not fit, and what to write; None where nothing is sure."""
    words = [it.arg for it in call.keywords if it.arg]
    is_open = len(words) < len(call.keywords) or any(
        isinstance(it, ast.Starred) for it in call.args
    )
    names = made.names
    known = parameters_of(made.name, names, open_too=True) if names and not is_open else None
    if known is None or names is None:
        return None
    lacking = known.missing([*known.names[: len(call.args)], *words])
    closed = parameters_of(made.name, names)  # None with **kwargs
    unknown = closed.unknown(words) if closed else []
    written = ", ".join(ast.unparse(it) for it in (*call.args, *call.keywords))
    sep = ", " if written else ""
    if unknown:
        near = did_you_mean(unknown[0], known.names)
        hint = near or f"it takes {', '.join(known.names) or 'none'}"
        return f"with {', '.join(unknown)}, which it does not take", hint
    if lacking == ["task"]:
        return "without a task", f"write {name}({written}{sep}{_task(words, method)}"
    if lacking:
        more = ", ".join(f"{it}=..." for it in lacking)
        return f"without {', '.join(lacking)}", f"write {name}({written}{sep}{more})"
    if made.module.startswith("torchmetrics.") and (
        count := _lacking_count(call, made, known.names)
    ):
        more = f"{count}={_count_of(method) if count == 'num_classes' else 'N'}"
        return f"without {count}", f"write {name}({written}{sep}{more})"
    return None


def _lacking_count(call: ast.Call, made: Located, names: Sequence[str]) -> str:
    """`num_classes` or `num_labels` where a metric takes it or not, and with this task has to.

    Source: `__new__` of torchmetrics' Accuracy and the like, and
    `_multiclass_stat_scores_arg_validation` (functional/classification/stat_scores.py): without
    num_classes an average other than micro is an error.
    """
    given: dict[str, ast.expr] = dict(zip(names, call.args, strict=False))
    given |= {it.arg: it.value for it in call.keywords if it.arg}
    if "validate_args" in given:
        return ""
    if next(iter(names), "") == "task":
        count = _COUNT_OF_TASK.get(_constant(given.get("task")), "")
    else:
        is_of_many = made.name.startswith("Multiclass") and {"average", "top_k"} <= {*names}
        average = _constant(given.get("average", ast.Constant("macro")))
        count = "num_classes" if is_of_many and average not in ("micro", _UNKNOWN) else ""
    is_absent = _constant(given.get(count, ast.Constant(None))) is None
    return count if count in names and is_absent else ""


def _constant(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else _UNKNOWN


def _count_of(method: ast.FunctionDef) -> str:
    """The argument of `__init__` that is the number of classes; N where none is known."""
    arguments = (it.arg for it in (*method.args.args, *method.args.kwonlyargs))
    return next(filter(_COUNT.fullmatch, arguments), "N")


def _task(words: Sequence[str], method: ast.FunctionDef) -> str:
    """A task of torchmetrics, with the number of classes that it needs, as far as one is known."""
    if "num_labels" in words:
        return 'task="multilabel")'
    multiclass = 'task="multiclass"'
    if "num_classes" not in words:
        multiclass += f", num_classes={_count_of(method)}"
    return f'{multiclass}), or with task="binary"'
