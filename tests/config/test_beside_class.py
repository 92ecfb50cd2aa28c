"""Arguments beside class_path: all of a class are told in one go, with what to write."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.checking import check_in, nets, refusal_in
from tests.config.files import write

__all__ = ["nets"]

DATA = "{class_path: nets.OpenData}"


@pytest.mark.parametrize(
    ("beside", "named", "form"),
    [
        (
            "width: 3, lr: 0.2",
            "model.width and model.lr stand",
            "init_args: {width: 3, lr: 0.2}",
        ),
        (
            "width: 3, init_args: {depth: 4}, lr: 3.0e-3",
            "model.width and model.lr stand",
            "init_args: {depth: 4, width: 3, lr: 0.003}",
        ),
        (
            "width: 3, depth: 4, lr: 0.2",
            "model.width, model.depth and model.lr stand",
            "init_args: {width: 3, depth: 4, lr: 0.2}",
        ),
    ],
)
def test_all_of_them_are_told_with_their_values(
    beside: str, named: str, form: str, nets: Path
) -> None:
    error = refusal_in(nets, f"{{class_path: nets.Net, {beside}}}", DATA)
    assert error.message == f"cfg.yaml:3: {named} beside class_path"
    assert error.hint == f"put them under model.init_args: {form}"
    assert not error.others
    check_in(nets, f"{{class_path: nets.Net, {form}}}", DATA)


def test_those_of_data_and_of_a_callback_are_told_beside_them(nets: Path) -> None:
    data = "{class_path: nets.Data, batch: 4, path: y}"
    stopping = "pytorch_lightning.callbacks.EarlyStopping"
    callback = f"{{class_path: {stopping}, monitor: a, patience: 3}}"
    more = f"trainer: {{callbacks: [{callback}]}}\n"
    error = refusal_in(nets, "{class_path: nets.Net, width: 3, lr: 1}", data, more)
    hints = [error.hint, *(it.hint for it in error.others)]
    assert hints == [
        "put them under model.init_args: init_args: {width: 3, lr: 1}",
        "put them under data.init_args: init_args: {batch: 4, path: y}",
        "put them under trainer.callbacks.0.init_args: init_args: {monitor: a, patience: 3}",
    ]


def test_one_alone_is_told_as_before(nets: Path) -> None:
    error = refusal_in(nets, "{class_path: nets.Net, width: 3}", DATA)
    assert error.message == "cfg.yaml:3: model.width stands beside class_path"
    assert error.hint == "put it under model.init_args"


def test_what_belongs_elsewhere_is_not_put_under_init_args(nets: Path) -> None:
    error = refusal_in(nets, "{class_path: nets.Net, width: 3, max_epochs: 5, lr: 0.1}", DATA)
    assert error.hint == "put them under model.init_args: init_args: {width: 3, lr: 0.1}"
    assert [it.hint for it in error.others] == ["write trainer.max_epochs"]


def test_of_those_that_were_typed_all_are_told_as_they_are_typed(nets: Path) -> None:
    text = f"name: x\nglobal_batch_size: 8\nmodel: {{class_path: nets.Open}}\ndata: {DATA}\n"
    config = write(nets, text)
    with pytest.raises(ConfigError) as caught:
        check(load(config, ["model.width=3", "model.lands=[a b, 'no']"]), workdir=nets)
    fix = caught.value.hint.removeprefix("write ")
    assert shlex.split(fix) == ["model.init_args.width=3", 'model.init_args.lands=[a b, "no"]']
    check(load(config, shlex.split(fix)), workdir=nets)
