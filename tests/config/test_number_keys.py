"""Whole numbers as keys of an argument, from the file and the command line to the class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.show import show_lines, to_yaml
from hpc_train.config.sweeps.sweep import load_point, sweep_points
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from hpc_train.training.build import build, put_on_path
from tests.config.checking import check_in, nets, refusal_in
from tests.config.files import refusal, write

__all__ = ["nets"]

HEAD = "name: x\nglobal_batch_size: 8\ndata: {class_path: nets.Data}\n"
WEIGHTS = "model: {class_path: keyed.Net, init_args: {weights: {0: 1.0, 1: 20.0}}}\n"
KEYED = """\
class Net:
    def __init__(self, weights=None, deep=None):
        self.weights, self.deep = weights, deep
"""


def planned(loaded: LoadedConfig) -> Plan:
    return make_plan(loaded.config, workdir="/x", python="python")


def made_of(loaded: LoadedConfig, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The model as a rank builds it, of a plan that was written and read."""
    write(folder, KEYED, "keyed.py")
    monkeypatch.setattr("sys.path", ["/nowhere"])
    put_on_path(folder)
    return build(Plan.from_json(planned(loaded).to_json()).training.model, key="model")


@pytest.mark.parametrize(
    ("overrides", "weights"),
    [
        ([], {0: 1.0, 1: 20.0}),
        (["model.init_args.weights={1: 3.0}"], {0: 1.0, 1: 3.0}),
        (["model.init_args.weights.1=3.0"], {0: 1.0, 1: 3.0}),
        (["model.init_args.weights.-1=3.0"], {0: 1.0, 1: 20.0, -1: 3.0}),
        (["model.init_args.weights=null"], None),
    ],
)
def test_a_number_as_a_key_reaches_the_class_as_a_number(
    overrides: list[str], weights: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(write(tmp_path, HEAD + WEIGHTS), overrides)
    assert made_of(loaded, tmp_path, monkeypatch).weights == weights


def test_numbers_are_kept_in_lists_and_below_other_keys_beside_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = [{0: {"a": {2: "x"}}, "b": 1}, {"0": 1}]
    typed = "model.init_args.deep=[{0: {a: {2: x}}, b: 1}, {'0': 1}]"
    loaded = load(write(tmp_path, HEAD + WEIGHTS), [typed, "model.init_args.deep.0.0.a.2=y"])
    deep[0][0] = {"a": {2: "y"}}  # type: ignore[index]
    assert made_of(loaded, tmp_path, monkeypatch).deep == deep


def test_the_config_of_a_run_loads_to_the_same_keys_and_a_text_is_another_training(
    tmp_path: Path,
) -> None:
    loaded = load(write(tmp_path, HEAD + WEIGHTS))
    again = load(write(tmp_path, to_yaml(loaded.config), "again.yaml"))
    assert again.config.model == loaded.config.model
    assert any(line.startswith("      1: 20.0") and "cfg" in line for line in show_lines(loaded))
    texts = load(
        write(tmp_path, HEAD + WEIGHTS.replace("0: 1", '"0": 1').replace("1: 2", '"1": 2'))
    )
    assert planned(texts).training.model.init_args["weights"] == {"0": 1.0, "1": 20.0}
    assert planned(texts).config_hash != planned(loaded).config_hash
    assert json.loads(planned(loaded).to_json())["schema_version"] == 1


def test_a_sweep_varies_such_a_mapping_or_one_of_its_values(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + WEIGHTS)
    for typed, last in (
        ("model.init_args.weights.1=2.0,3.0", {0: 1.0, 1: 3.0}),
        ("model.init_args.weights={0: 2.0},{0: 3.0}", {0: 3.0, 1: 20.0}),
    ):
        loaded = load(path, sweep=[typed])
        *_, point = sweep_points(loaded.config.sweep, loaded.origins)
        assert load_point(loaded, point).config.model["init_args"]["weights"] == last


@pytest.mark.parametrize(
    ("override", "said", "fix"),
    [
        (
            "model.init_args.deep={true: 1}",
            "the key model.init_args.deep.true is no text",
            '"true":',
        ),
        ("model.init_args.deep={0.5: 1}", "deep.0.5 is no text", "a list of pairs"),
        ("model.init_args.deep={010: 1}", "deep.010 is no text", '"010":'),
        ("slurm.extra={1: 2}", "the key slurm.extra.1 is no text", '"1":'),
        ("model.init_args={0: 1}", "the key model.init_args.0 is no text", '"0":'),
        ("model.init_args.weights={'1': 2}", "weights.1 is a text, and a number in cfg", "in both"),
    ],
)
def test_any_other_key_that_is_no_text_is_refused_on_the_command_line_too(
    override: str, said: str, fix: str, tmp_path: Path
) -> None:
    error = refusal(write(tmp_path, HEAD + WEIGHTS), override)
    assert error.message.startswith("command line: ")
    assert said in error.message
    assert fix in error.hint


def test_a_key_of_the_other_kind_than_the_class_says_is_refused(nets: Path) -> None:
    text = (
        "class Net:\n    def __init__(self, a: dict[int, float] = None, b: dict[str, int] = None):"
    )
    base = "import pytorch_lightning as pl\n" + text.replace("Net:", "Net(pl.LightningModule):")
    write(nets, f"{base}\n        super().__init__()\n", "typed.py")
    check_in(nets, '{class_path: typed.Net, init_args: {a: {1: 2.0}, b: {"1": 2}}}')
    error = refusal_in(nets, '{class_path: typed.Net, init_args: {a: {"1": 2.0}}}')
    assert "model.init_args.a is {'1': 2.0}, and typed.Net takes dict[int, float]" in error.message
    assert error.hint == "write the key 1 without quotes"
    error = refusal_in(nets, "{class_path: typed.Net, init_args: {b: {1: 2}}}")
    assert error.hint == 'write the key 1 in quotes: "1":'
