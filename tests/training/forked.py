"""Starts ranks off a process that has imported once what takes each of them seconds."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["start", "start_module"]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "tests.training.job",
        "tests.training.training",
        "hpc_train.training.rank",
        "hpc_train.training.resume.fit_with_resume",
        "hpc_train.training.trainer",
        "hpc_train.examples.digits",
        # Lightning imports these in the first steps.
        "attr",
        "fsspec.implementations.chained",
        "omegaconf",
    ]
)


def start(work: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that calls `work`, a function of a module."""
    process = _CONTEXT.Process(target=_work, args=(work, arguments))
    process.start()
    return process


def start_module(argv: Sequence[str], environment: Mapping[str, str]) -> BaseProcess:
    """Start `python -m MODULE`, as far as one that is forked can be the same."""
    _python, _m, module = argv
    return start(_run_module, module, dict(environment))


def _work(work: Callable[..., None], arguments: Sequence[Any]) -> None:
    multiprocessing.set_start_method("fork", force=True)  # as in a process of its own
    work(*arguments)


def _run_module(module: str, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, "")  # as `python -m` does
    runpy.run_module(module, run_name="__main__", alter_sys=True)
