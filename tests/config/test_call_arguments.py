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
            lambda: FUNCTIONS.submit("birds.yaml", lr=0.1),
            "lr is no argument of submit",
            "write hpc_train.submit(hpc_train.load('birds.yaml', 'model.init_args.lr=0.1'))",
        ),
        (
            lambda: FUNCTIONS.submit(LOADED, lr=0.1, nodes=2, max_epochs=3, seed=1),
            "lr is no argument of submit",
            (
                "write hpc_train.load(PATH, 'model.init_args.lr=0.1', 'trainer.max_epochs=3',"
                " 'seed=1', nodes=2), and submit what it gives"
            ),
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
            "argumnets is no argument of load",
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


class Module:
    """As torch's show themselves: over several lines."""

    def __repr__(self) -> str:
        return "Module(\n  (0): Linear()\n)"


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            lambda: FUNCTIONS.submit(model=Module(), data=3),
            "model is no argument of submit",
            f"write hpc_train.load(PATH, 'model.class_path={__name__}.Module'), and submit what it",
        ),
        (
            lambda: FUNCTIONS.load("cfg.yaml", model=Module()),
            f"model is an object of {__name__}.Module, and no text",
            f"write hpc_train.load(PATH, 'model.class_path={__name__}.Module')",
        ),
        (
            lambda: FUNCTIONS.load("cfg.yaml", data=Module),
            f"data is the class {__name__}.Module, and no text",
            f"write hpc_train.load(PATH, 'data.class_path={__name__}.Module')",
        ),
        (
            lambda: FUNCTIONS.load("cfg.yaml", callbacks=[Module()]),
            "callbacks is [Module( (0): Linear() )], and no text",
            f"'trainer.callbacks=[{{class_path: {__name__}.Module}}]'",
        ),
        (
            lambda: FUNCTIONS.load("cfg.yaml", trainer=Module()),
            f"trainer is an object of {__name__}.Module, and no text",
            "write hpc_train.load(PATH, 'trainer.NAME=VALUE')",
        ),
        (
            lambda: FUNCTIONS.load("cfg.yaml", Module()),
            f"an object of {__name__}.Module is no text",
            "write each override as 'trainer.max_epochs=3'",
        ),
        (
            lambda: FUNCTIONS.submit(Module()),
            f"an object of {__name__}.Module is no loaded config",
            f"a config has a class by its name: class_path: {__name__}.Module",
        ),
    ],
)
def test_an_object_in_a_texts_place_is_told_by_its_class_in_one_line(
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
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")
    assert "\n" not in str(caught.value)


def test_a_word_of_the_command_is_told_as_python_has_it() -> None:
    for name, written in (
        ("run", "hpc_train.run_here(hpc_train.load(PATH))"),
        ("status", "hpc_train.Run.find('latest').status()"),
        ("test", "hpc_train.Run.find('latest').evaluate('test')"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(hpc_train, name)
        assert str(caught.value).endswith(f"has no attribute '{name}': write {written}")


def test_a_name_of_lightnings_is_told_with_the_package_that_the_project_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for package in ("lightning.pytorch", "pytorch_lightning"):
        (tmp_path / "nets.py").write_text(f"from {package} import LightningModule\n")
        for name in ("Trainer", "LightningModule", "seed_everything"):
            with pytest.raises(AttributeError) as caught:
                getattr(hpc_train, name)
            said = f", it is Lightning's: write from {package} import {name}"
            assert str(caught.value).endswith(f"has no attribute '{name}'{said}")


def test_an_error_of_type_within_a_call_stays_what_it_is() -> None:
    with pytest.raises(TypeError):
        FUNCTIONS.list_runs(3.5)


def test_the_arguments_are_still_shown() -> None:
    assert list(inspect.signature(hpc_train.submit).parameters) == ["loaded", "cluster", "after"]
    assert list(inspect.signature(hpc_train.Run.wait).parameters) == ["self", "timeout_s"]
