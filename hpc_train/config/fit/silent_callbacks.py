"""Callbacks that surely log no metric: told from the text of the class."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.python_text.class_kind import Located, locate
from hpc_train.config.specs import is_object, read_object

# Of Lightning's it alone puts something beside what is logged, the rates; DeviceStatsMonitor and
# ThroughputMonitor write to the loggers, where no monitor looks.
_LOG = ("LearningRateMonitor",)
_MAY_LOG = re.compile(r"log|metric|setattr|getattr|exec|eval|import", re.IGNORECASE)
_GIVEN = ("self", "trainer", "pl_module", "module", "model")  # what a hook may log with
_MOST_BASES = 6


def lightnings_callback(spec: Any, path: Sequence[str]) -> str:
    """The name of a callback's class where it is Lightning's own; empty for others."""
    found = locate(read_object(spec, "")[0], path) if is_object(spec) else None
    return found.name if found and is_lightnings(found.module) else ""


def is_silent(spec: Any, path: Sequence[str]) -> bool:
    """Whether a callback of a config logs nothing; False where it may."""
    found = locate(read_object(spec, "")[0], path) if is_object(spec) else None
    return found is not None and _is_silent(found, path, _MOST_BASES)


def logs_rates_alone(spec: Any, path: Sequence[str]) -> bool:
    """Whether a callback of a config is Lightning's own that logs the learning rates."""
    return lightnings_callback(spec, path) in _LOG


def _is_silent(found: Located, path: Sequence[str], steps: int) -> bool:
    if is_lightnings(found.module):
        return found.name not in _LOG
    definition = found.definition
    if not steps or not isinstance(definition, ast.ClassDef) or definition.decorator_list:
        return False
    if definition.keywords or not definition.bases or _MAY_LOG.search(ast.unparse(definition)):
        return False
    if any(_hands_over(it) for it in ast.walk(definition) if isinstance(it, ast.Call)):
        return False
    bases = (locate(f"{found.module}.{ast.unparse(it)}", path) for it in definition.bases)
    return all(it is not None and _is_silent(it, path, steps - 1) for it in bases)


def _hands_over(call: ast.Call) -> bool:
    """Whether other code gets what it could log with: not what `super()` and `print` are given."""
    if ast.unparse(call.func).startswith(("super().", "print")):
        return False
    given = [*call.args, *(it.value for it in call.keywords)]
    names = (it.value if isinstance(it, ast.Starred) else it for it in given)
    return any(isinstance(it, ast.Name) and it.id in _GIVEN for it in names)
