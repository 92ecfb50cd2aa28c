"""What hpc-train sets itself, and what a callback takes: the fix is what can be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from tests.config.checking import check_in, nets, refusal_in
from tests.config.files import MINIMAL, write

__all__ = ["nets"]

MODEL = "{class_path: nets.Net, init_args: {width: 3}}"
CALLBACKS = """\
import pytorch_lightning as pl
from pytorch_lightning import Callback
from pytorch_lightning.callbacks import Callback as Base, EarlyStopping

class Hello(Callback): ...
class Hi(Base): ...
class Hey(pl.Callback): ...
class Ho(pl.callbacks.Callback): ...
class Late(Hello): ...
class Taking(Callback):
    def __init__(self, often: int = 3, *, first: str): ...
class Stopping(EarlyStopping): ...
class Both(Callback, Exception): ...
"""


@pytest.mark.parametrize(
    ("asked", "shape", "hint"),
    [
        (
            4,
            "",
            "leave it out and write micro_batch_size: 2 (8 = 2 x 4 x 1 rank); or global_batch_",
        ),
        (4, "", "or global_batch_size: 32 with micro_batch_size: 8, where 8 was one rank's batch"),
        (2, "slurm: {nodes: 2}", "micro_batch_size: 2 (8 = 2 x 2 x 2 ranks); or global_batch_size"),
        (3, "", "leave it out: global_batch_size: 24 with micro_batch_size: 8, where 8 was one ra"),
        ("four", "", "leave it out: it follows from global_batch_size and micro_batch_size"),
    ],
)
def test_accumulation_is_told_as_batches(nets: Path, asked: object, shape: str, hint: str) -> None:
    more = f"trainer: {{accumulate_grad_batches: {asked}}}\n{shape}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    assert error.message.endswith("trainer.accumulate_grad_batches is set by hpc-train")
    assert hint in error.hint


def test_a_run_saves_whatever_the_trainer_is_told(nets: Path) -> None:
    more = "trainer: {enable_checkpointing: false}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    assert error.hint == (
        "leave it out: a run always saves, by checkpoint.every_n_minutes (10) or"
        " checkpoint.every_n_steps, and keeps the newest 3 (checkpoint.keep_last)"
    )


@pytest.mark.parametrize("name", ["Hello", "Hi", "Hey", "Ho", "Late"])
def test_a_callback_without_an_init_takes_nothing(nets: Path, name: str) -> None:
    write(nets, CALLBACKS, "calls.py")
    more = f"trainer: {{callbacks: [{{class_path: calls.{name}, init_args: {{x: 1}}}}]}}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    said = f"trainer.callbacks.0.init_args.x: calls.{name} takes no such argument"
    assert error.message == f"cfg.yaml:5: {said}"
    assert error.hint == "leave it out: it takes none"


@pytest.mark.parametrize(
    "spec",
    [
        "{class_path: calls.Hello}",
        "{class_path: calls.Hello, init_args: {}}",
        "{class_path: calls.Stopping, init_args: {monitor: loss}}",
        "{class_path: calls.Taking, init_args: {first: a}}",
        "{class_path: calls.Both, init_args: {x: 1}}",
    ],
)
def test_what_a_callback_takes_is_taken(nets: Path, spec: str) -> None:
    write(nets, CALLBACKS, "calls.py")
    check_in(nets, MODEL, more=f"trainer: {{callbacks: [{spec}]}}\n")


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("calls.Hello", "{class_path: calls.Hello}"),
        ("calls.Taking", "{class_path: calls.Taking, init_args: {first: ...}}"),
        ("no.Such", "{class_path: no.Such, init_args: {...}}"),
        ("EarlyStopping",
         "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: ...}}"),
    ],
)  # fmt: skip
def test_the_form_of_a_callback_has_the_arguments_that_it_needs(
    nets: Path, monkeypatch, written: str, form: str
) -> None:
    write(nets, CALLBACKS, "calls.py")
    monkeypatch.chdir(nets)
    more = f"trainer: {{callbacks: [{written}]}}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    assert error.hint == f"write {form}"


def test_the_points_of_a_form_are_no_arguments(nets: Path) -> None:
    error = refusal_in(nets, "{class_path: nets.Net, init_args: {...}}")
    assert error.message == "cfg.yaml:3: model.init_args is {...}"
    assert "write name: value" in error.hint


def test_braces_in_the_place_of_a_text_are_one_in_quotes(nets: Path) -> None:
    spec = "{class_path: pytorch_lightning.callbacks.ModelCheckpoint, init_args: {filename: {x}}}"
    more = f"trainer: {{callbacks: [{spec}]}}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    assert error.hint == 'put it in quotes: "{x}"'


@pytest.mark.parametrize(
    ("asked", "shape", "hint"),
    [
        ("2", "", "write gpus_per_node: 2 below slurm, or --gpus 2"),
        ("'4'", "", "write gpus_per_node: 4 below slurm, or --gpus 4"),
        (
            "[0, 1, 2]",
            "slurm: {gpus_per_node: 1}",
            "write gpus_per_node: 3 below slurm, or --gpus 3",
        ),
        ("2", "slurm: {gpus_per_node: 2}", "leave it out: slurm.gpus_per_node: 2 is there"),
        ("-1", "", "write how many a node has: slurm.gpus_per_node: N, or --gpus N"),
        ("true", "", "write how many a node has: slurm.gpus_per_node: N, or --gpus N"),
    ],
)
def test_devices_are_told_with_their_number(nets: Path, asked: str, shape: str, hint: str) -> None:
    more = f"trainer: {{devices: {asked}}}\n{shape}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    assert error.message.endswith("trainer.devices is set by hpc-train")
    assert error.hint == hint


@pytest.mark.parametrize(
    ("asked", "more", "hint"),
    [
        ("3", "", "write nodes: 3 below slurm, or --nodes 3"),
        ("'2'", "slurm: {nodes: 1}", "write nodes: 2 below slurm, or --nodes 2"),
        ("3", "slurm: {nodes: 3}", "leave it out: slurm.nodes: 3 is there"),
        ("auto", "", "write slurm.nodes, or --nodes"),
    ],
)
def test_nodes_are_told_with_their_number(nets: Path, asked: str, more: str, hint: str) -> None:
    more = f"trainer: {{num_nodes: {asked}}}\n{more}\n"
    assert refusal_in(nets, MODEL, "{class_path: nets.Data}", more).hint == hint


@pytest.mark.parametrize("shape", ["", "slurm: {gpus_per_node: 1, nodes: 2}\n"])
def test_one_device_is_left_out_where_a_node_has_one_rank(
    nets: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.chdir(nets)
    write(nets, f"{MINIMAL}trainer: {{devices: 1, max_epochs: 2}}\n{shape}")
    read = load("cfg.yaml")
    assert read.config.trainer == {"max_epochs": 2}
    assert "left out, since it changes nothing: trainer.devices: 1" in read.notes[0]


@pytest.mark.parametrize(
    ("asked", "shape", "hint"),
    [
        ("1", "slurm: {gpus_per_node: 4}", "write gpus_per_node: 1 below slurm, or --gpus 1"),
        ("[0]", "", "write gpus_per_node: 1 below slurm, or --gpus 1"),
        ("true", "", "write how many a node has: slurm.gpus_per_node: N, or --gpus N"),
    ],
)
def test_another_device_than_the_one_of_a_node_is_refused(
    nets: Path, asked: str, shape: str, hint: str
) -> None:
    more = f"trainer: {{devices: {asked}}}\n{shape}\n"
    assert refusal_in(nets, MODEL, "{class_path: nets.Data}", more).hint == hint


def test_a_cluster_environment_of_lightnings_is_told_to_be_left_out(nets: Path) -> None:
    """As its pages on Slurm have it; the fix named no place."""
    kind = "lightning.pytorch.plugins.environments.SLURMEnvironment"
    plugins = f"[{{class_path: {kind}, init_args: {{auto_requeue: true}}}}]"
    more = f"trainer: {{plugins: {plugins}}}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    assert error.message.endswith("trainer.plugins is set by hpc-train")
    assert error.hint.startswith("leave trainer.plugins out: the cluster environment and going on")


@pytest.mark.parametrize(("value", "shown"), [("3", "3"), ("0.5", "0.5"), ("[1]", "...")])
def test_an_argument_with_its_section_before_it_is_told_without(
    nets: Path, value: str, shown: str
) -> None:
    """`did you mean 'trainer.max_epochs'?` named what was refused."""
    more = f"trainer:\n  trainer.max_epochs: {value}\n"
    error = refusal_in(nets, MODEL, "{class_path: nets.Data}", more)
    assert error.hint == f"it stands below trainer already: write max_epochs: {shown}"
