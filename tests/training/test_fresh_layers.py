"""`init_leave_out`: layers that begin fresh where a model takes the weights of another."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.errors import CheckError
from hpc_train.plan.plan import ObjectSpec, Plan
from hpc_train.runs.layout import RunDir
from hpc_train.training.weights import load_weights
from tests.training.launched import make_plan, run_ranks

MODELS = """\
import torch
import pytorch_lightning as pl

class Headed(pl.LightningModule):
    def __init__(self, classes: int = 2):
        super().__init__()
        self.body, self.head = torch.nn.Linear(1, 3), torch.nn.Linear(3, classes)
    def training_step(self, batch, batch_idx):
        return self.head(self.body(batch)).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.0)
"""


class Net(nn.Module):
    def __init__(self, classes: int = 2, hidden: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, hidden), nn.BatchNorm1d(hidden))
        self.head = nn.Linear(hidden, classes)


class Wrapped(nn.Module):
    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.net = Net(classes)


class Other(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.fc = Net().body, nn.Linear(4, 7)


def saved(model: nn.Module, folder: Path, above: str = "") -> Path:
    state = {f"{above}{name}": value + 1 for name, value in model.state_dict().items()}
    torch.save(state, folder / "old.ckpt")
    return folder / "old.ckpt"


def planned(weights: Path, *left_out: str) -> Plan:
    plan = make_plan(weights.parent, model=ObjectSpec("nets.Net", {}))
    return dataclasses.replace(plan, weights=str(weights), weights_left_out=[*left_out])


def begun(model: nn.Module, weights: Path, *left_out: str) -> dict[str, bool]:
    """Whether each top layer has other weights than before."""
    before = {name: value.clone() for name, value in model.state_dict().items()}
    load_weights(model, weights, planned(weights, *left_out))
    changed: dict[str, bool] = {}
    for name, value in model.state_dict().items():
        layer = name.rpartition(".")[0]
        changed[layer] = changed.get(layer, False) or not torch.equal(value, before[name])
    return changed


def refused(model: nn.Module, weights: Path, *left_out: str) -> CheckError:
    with pytest.raises(CheckError) as caught:
        load_weights(model, weights, planned(weights, *left_out))
    return caught.value


TAKEN = {"body.0": True, "body.1": True, "head": False}


@pytest.mark.parametrize("named", ["head", "head.", "head.*", "h?ad", "[gh]ead"])
def test_a_layer_that_is_left_out_begins_fresh_and_the_log_says_so(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert begun(Net(classes=5), saved(Net(), tmp_path), named) == TAKEN
    assert capsys.readouterr().out == (
        f"weights of {tmp_path / 'old.ckpt'}: left out (init_leave_out: {named}); begin fresh:"
        " head.weight, head.bias; 7 others are taken\n"
    )


def test_what_the_weights_alone_have_is_not_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = saved(Other(), tmp_path)
    assert begun(Net(), weights, "fc", "head") == TAKEN
    assert "head.bias; not of this model: fc.weight, fc.bias; 7 others" in capsys.readouterr().out
    fix = refused(Net(), weights).hint
    assert "submit again with init_leave_out=[head,fc], and these layers begin fresh; or " in fix
    fix = refused(Net(), weights, "head").hint
    assert "submit again with init_leave_out=[head,fc], and this layer begins fresh; or " in fix


@pytest.mark.parametrize(
    ("model", "above", "named"),
    [(Net(5), "module.", "head"), (Wrapped(5), "", "net.head"), (Wrapped(5), "net.", "net.head")],
)
def test_a_prefix_of_all_names_is_taken_away_or_added_beside_it(
    model: nn.Module, above: str, named: str, tmp_path: Path
) -> None:
    changed = begun(model, saved(Net(), tmp_path, above), named)
    assert {name.removeprefix("net."): it for name, it in changed.items()} == TAKEN


def test_the_fix_names_the_layers_that_do_not_fit(tmp_path: Path) -> None:
    weights = saved(Net(), tmp_path)
    fix = refused(Net(classes=5), weights).hint
    assert fix.startswith(
        "submit again with init_leave_out=[head], and this layer begins fresh; or they are of"
    )


@pytest.mark.parametrize(
    ("old", "now"),
    [(Net(), Net(hidden=5)), (nn.Linear(2, 2), nn.Linear(3, 3)), (Net(), nn.Linear(3, 3))],
)
def test_no_layers_are_named_where_the_whole_is_another_model(
    old: nn.Module, now: nn.Module, tmp_path: Path
) -> None:
    assert "init_leave_out" not in refused(now, saved(old, tmp_path)).hint


@pytest.mark.parametrize(
    ("named", "fix"),
    [
        (["haed"], "submit again with init_leave_out=[head]; their layers: body, head"),
        (
            ["body.1", "net"],
            (
                "submit again with init_leave_out=[body.1,LAYER], LAYER one of their layers:"
                " body.0, body.1, head.weight, head.bias"
            ),
        ),
        (["0", "head"], "submit again with init_leave_out=[body.0,head]; their layers: body, head"),
    ],
)
def test_a_name_that_fits_nothing_is_told_with_those_near_it(
    named: list[str], fix: str, tmp_path: Path
) -> None:
    error = refused(Net(), saved(Net(), tmp_path), *named)
    wrong = next(it for it in named if it not in ("body.1", "head"))
    assert f"init_leave_out: {wrong!r} fits no weight of the model, and none" in error.message
    assert error.hint == fix


def test_leaving_all_out_is_no_beginning_with_weights(tmp_path: Path) -> None:
    error = refused(Net(), saved(Net(), tmp_path), "*")
    assert "init_leave_out: * leaves out all weights of" in error.message


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_begins_so_and_its_resume_reads_no_weights_again(ranks: int, tmp_path: Path) -> None:
    (tmp_path / "headed.py").write_text(MODELS)
    body = {"body.weight": torch.full((3, 1), 7.0), "body.bias": torch.full((3,), 7.0)}
    torch.save({**body, "head.weight": torch.zeros(2, 3)}, tmp_path / "old.ckpt")
    plan = make_plan(
        tmp_path,
        ranks_per_node=ranks,
        model=ObjectSpec("headed.Headed", {"classes": 5}),
        data=ObjectSpec("tests.training.evaluated.NumbersData", {}),
        global_batch_size=4,
        trainer={"max_steps": 2},
        loggers=[],
    )
    weights = str(tmp_path / "old.ckpt")
    plan = dataclasses.replace(plan, weights=weights, weights_left_out=["head"])
    ended = run_ranks(plan, tmp_path / "run")
    assert ended.codes == [0] * ranks, ended.log(0)
    for rank in range(ranks):
        assert "begin fresh: head.weight, head.bias; 2 others are taken" in ended.log(rank)
    first = state_of(tmp_path, 2)
    assert all(torch.equal(first[name], value) for name, value in body.items())
    assert first["head.weight"].shape == (5, 3)
    (tmp_path / "old.ckpt").unlink()
    longer = dataclasses.replace(plan.training, trainer={"accelerator": "cpu", "max_steps": 3})
    plan = dataclasses.replace(plan, training=longer, reopened_step=2)
    ended = run_ranks(plan, tmp_path / "run", attempt=1)
    assert ended.codes == [0] * ranks, ended.log(0)
    assert "left out" not in ended.log(0)
    again = state_of(tmp_path, 3)
    assert all(torch.equal(again[name], value) for name, value in first.items())


def state_of(folder: Path, step: int) -> Any:
    state = RunDir(folder / "run").checkpoints / f"step-{step:09d}" / "model.ckpt"
    return torch.load(state, weights_only=True)["state_dict"]
