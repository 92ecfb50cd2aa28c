"""A call of the Python interface that Python would refuse is told as an error of the config is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train.errors import ConfigError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.sweep_dir import SweepDir

LOADED: Any = object()  # what is refused is refused before it is looked at
RUN: Any = hpc_train.Run(RunDir(Path("/nowhere")))
SWEEP: Any = hpc_train.Sweep(SweepDir(Path("/nowhere")))
FUNCTIONS: Any = hpc_train


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            lambda: FUNCTIONS.submit_sweep(LOADED, wait=True),
            "wait is no argument of submit_sweep",
            "leave it out; sweep = submit_sweep(loaded), and sweep.status().state.ended tells",
        ),
        (
            lambda: FUNCTIONS.submit_sweep(LOADED, atmost=2),
            "atmost is no argument of submit_sweep",
            "did you mean 'at_most'?",
        ),
        (
            lambda: FUNCTIONS.submit_sweep(LOADED, sweep=["seed=1,2"]),
            "sweep is no argument of submit_sweep",
            "write hpc_train.submit_sweep(hpc_train.load(PATH, sweep=['seed=1,2']))",
        ),
        (
            lambda: FUNCTIONS.submit(LOADED, clustr="local"),
            "clustr is no argument of submit",
            "did you mean 'cluster'?",
        ),
        (
            lambda: FUNCTIONS.run_here(LOADED, nodes=3),
            "nodes is no argument of run_here",
            "write hpc_train.load(PATH, nodes=3), and run_here what it gives",
        ),
        (
            lambda: FUNCTIONS.render(LOADED, output="job.sbatch"),
            "output is no argument of render",
            "write Path('job.sbatch').write_text(hpc_train.render(loaded))",
        ),
        (
            lambda: FUNCTIONS.submit(LOADED, "local"),
            "submit takes 1 argument without a name, and 2 are there",
            "write submit(loaded, cluster=..., after=...)",
        ),
        (
            lambda: FUNCTIONS.submit(),
            "submit is called without loaded",
            "loaded = hpc_train.load('cfg.yaml') makes one",
        ),
        (
            lambda: FUNCTIONS.load(nodes=3),
            "load is called without path",
            "write hpc_train.load('cfg.yaml')",
        ),
        (
            lambda: FUNCTIONS.load("cfg.yaml", argumnets=["--lr"]),
            "argumnets is no option of hpc-train",
            "did you mean 'arguments'?",
        ),
        (
            lambda: FUNCTIONS.submit(LOADED, loaded=LOADED),
            "submit: multiple values for argument 'loaded'",
            "it takes loaded, cluster, after",
        ),
        (
            lambda: RUN.wait(timeout=3),
            "timeout is no argument of Run.wait",
            "did you mean 'timeout_s'?",
        ),
        (
            lambda: RUN.cancel(now=True),
            "now is no argument of Run.cancel",
            "write Run.cancel()",
        ),
        (
            lambda: FUNCTIONS.Run.find(),
            "Run.find is called without reference",
            "name a run, by its name, its id or its job's: find('latest')",
        ),
        (
            lambda: SWEEP.run("a", "b"),
            "Sweep.run takes 1 argument without a name, and 2 are there",
            "write Sweep.run(number)",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_told_with_what_to_write(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[], object],
    message: str,
    hint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cfg.yaml").write_text("name: x\n")
    with pytest.raises(ConfigError) as caught:
        call()
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_an_error_of_type_within_a_call_stays_what_it_is() -> None:
    with pytest.raises(TypeError):
        FUNCTIONS.list_runs(3.5)


def test_the_arguments_are_still_shown() -> None:
    assert list(inspect.signature(hpc_train.submit).parameters) == ["loaded", "cluster", "after"]
    assert list(inspect.signature(hpc_train.Run.wait).parameters) == ["self", "timeout_s"]
