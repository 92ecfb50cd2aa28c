"""Weights that do not fit are told with the arguments that their model was made with."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hpc_train.errors import CheckError
from hpc_train.plan.plan import ObjectSpec, Plan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.weights_arguments import other_arguments, run_of_weights
from hpc_train.training.weights import load_weights
from tests.training.launched import make_plan

NETS = """\
SIZE = 3
class Net:
    def __init__(self, hidden=4, classes=2, act="relu", sizes=(1, 2), lr=0.1, width=SIZE,
                 deep=False): ...
class Other(Net): ...
"""


class Net(nn.Module):
    def __init__(self, hidden: int = 4, classes: int = 2, deep: bool = False, **_: Any) -> None:
        super().__init__()
        self.first = nn.Linear(3, hidden)
        self.wide = nn.Linear(hidden, 4 * hidden)
        self.last = nn.Linear(4 * hidden, classes)
        self.more = nn.Linear(1, 1) if deep else None


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the weights of a run would lie, in a folder with its code."""
    (tmp_path / "wide_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    run = RunDir(tmp_path / "runs" / "first" / "20260101-000000-aaaa")
    (run.path / "models").mkdir(parents=True)
    return run.path / "models" / "best.ckpt"


def made(weights: Path, **arguments: Any) -> None:
    """The run of the weights, with these arguments in its config."""
    plan = planned(weights, **arguments)
    weights.parents[1].joinpath("plan.json").write_text(plan.to_json())
    taken = {name: it for name, it in arguments.items() if name in ("hidden", "classes", "deep")}
    torch.save(Net(**taken).state_dict(), weights)


def planned(weights: Path, name: str = "Net", **arguments: Any) -> Plan:
    plan = make_plan(weights.parents[4], model=ObjectSpec(f"wide_nets.{name}", arguments))
    return replace(plan, weights=str(weights))


def fix_of(weights: Path, **arguments: Any) -> str:
    taken = {name: it for name, it in arguments.items() if name in ("hidden", "classes", "deep")}
    with pytest.raises(CheckError) as caught:
        load_weights(Net(**taken), weights, planned(weights, **arguments))
    assert "do not fit Net: " in caught.value.message
    return caught.value.hint


@pytest.mark.parametrize("is_written", [False, True])
def test_a_default_that_has_changed_in_the_code_is_told_as_the_weights_have_it(
    first: Path, is_written: bool
) -> None:
    """The text of the class has the new one alone: any other init_args were asked for."""
    made(first, **({"hidden": 8} if is_written else {}))
    arguments = {"hidden": 8, "classes": 2, "lr": 0.1}
    torch.save({"state_dict": Net(8).state_dict(), "hyper_parameters": arguments}, first)
    with pytest.raises(CheckError) as caught:
        load_weights(Net(), first, replace(planned(first), verb="test"))
    typed = "model.init_args.hidden=8, as first (20260101-000000-aaaa) had"
    assert caught.value.hint.startswith("hpc-train test ")
    assert caught.value.hint.endswith(f" {typed}")


ANEW = "; without init_from it begins anew"
WITHOUT_MORE = "submit again with init_leave_out=[more], and this layer begins fresh; or "
HAD = f"first (20260101-000000-aaaa) had, or name the weights of such a model{ANEW}"


@pytest.mark.parametrize(
    ("then", "now", "typed"),
    [
        ({}, {"hidden": 8}, "model.init_args.hidden=4"),
        ({"hidden": 8}, {}, "model.init_args.hidden=8"),
        ({"hidden": 8}, {"hidden": 4, "lr": 0.5}, "model.init_args.hidden=8"),
        ({}, {"hidden": 8, "act": "gelu"}, "model.init_args.hidden=4"),  # the text is no size
        ({}, {"classes": 5, "hidden": 8}, "model.init_args.classes=2 model.init_args.hidden=4"),
    ],
)
def test_the_arguments_that_the_weights_need_are_typed(
    first: Path, then: dict[str, Any], now: dict[str, Any], typed: str
) -> None:
    made(first, **then)
    assert fix_of(first, **now) == f"submit again with {typed} as {HAD}"


def test_of_other_keys_whatever_differs_is_typed_behind_the_layers_to_leave_out(
    first: Path,
) -> None:
    made(first)
    typed = "model.init_args.deep=false model.init_args.act=relu"
    fix = f"{WITHOUT_MORE}submit again with {typed} as {HAD}"
    assert fix_of(first, deep=True, act="gelu") == fix


def test_where_nobody_knows_them_the_fix_names_none(first: Path, tmp_path: Path) -> None:
    unknown = "they are of another model: name others, or give the model the init_args it had then"
    made(first)
    assert fix_of(first, name="Other", hidden=8) == unknown + ANEW  # another class
    alone = tmp_path / "alone.ckpt"  # no run's
    torch.save(Net().state_dict(), alone)
    with pytest.raises(CheckError) as caught:
        load_weights(Net(8), alone, replace(planned(first), weights=str(alone)))
    assert caught.value.hint == unknown + ANEW
    with pytest.raises(CheckError) as caught:  # of a test
        load_weights(Net(8), first)
    assert caught.value.hint == unknown


def test_an_argument_that_cannot_be_typed_is_named(first: Path) -> None:
    made(first)
    said = "first (20260101-000000-aaaa) had model.init_args.width (its default)"
    named = fix_of(first, deep=True, width=5)
    assert named.startswith(f"{WITHOUT_MORE}they are of another model: name others; first (2026")
    assert "had model.init_args.deep=false (its default), model.init_args.width (its def" in named
    assert said not in fix_of(first, hidden=8, width=5)  # the sizes are of hidden


def test_weights_that_fit_are_loaded(first: Path) -> None:
    made(first, hidden=8)
    model = Net(8)
    load_weights(model, first, planned(first, hidden=8))
    assert torch.equal(model.first.weight, torch.load(first)["first.weight"])


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ({}, {"hidden": 8}, "model.init_args.hidden=4 (its default), here 8"),
        ({"hidden": 8}, {}, "model.init_args.hidden=8, here 4"),
        ({"hidden": 8}, {"hidden": 4}, "model.init_args.hidden=8, here 4"),
        ({"hidden": 4}, {}, ""),  # as it is by default
        ({}, {"sizes": [1, 2]}, ""),
        ({}, {"sizes": [1, 3]}, "model.init_args.sizes=[1,2] (its default), here [1,3]"),
        ({}, {"act": "gelu"}, "model.init_args.act=relu (its default), here gelu"),
        ({"act": "a b"}, {}, "model.init_args.act 'a b', here relu"),
        ({}, {"act": None}, "model.init_args.act=relu (its default), here null"),
        ({}, {"lr": 3.0}, ""),  # a learning rate
        ({}, {"width": 5}, "model.init_args.width (its default), here 5"),  # Python alone knows
        ({"width": 5}, {}, "model.init_args.width=5, here its default"),
    ],
)
def test_an_argument_is_said_with_both_values(
    first: Path, then: dict[str, Any], now: dict[str, Any], said: str
) -> None:
    made(first, **then)
    run = run_of_weights(first)
    assert run is not None
    others = other_arguments(run, "wide_nets.Net", now, [str(Path.cwd())])
    assert [it.said for it in others] == ([said] if said else [])
    assert all(re.fullmatch(r"(?:model\.init_args\.\w+=\S+)?", it.typed) for it in others)


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net(4)


@pytest.mark.parametrize(
    ("saved", "model", "said"),
    [
        (lambda: nn.DataParallel(Net(4)), lambda: Net(4), "each name begins with 'module.'"),
        (Holder, lambda: Net(4), "each name begins with 'net.'"),
        (lambda: Net(4), Holder, "the names of the model begin with 'net.'"),
        (lambda: nn.DataParallel(Holder()), lambda: Net(4), "begins with 'module.net.'"),
        (lambda: Net(4), lambda: Net(4), ""),
    ],
)
def test_one_prefix_of_all_names_is_no_other_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], saved: Any, model: Any, said: str
) -> None:
    """As of DataParallel: it was told to be of another model."""
    given, taken = saved(), model()
    torch.save(given.state_dict(), tmp_path / "old.pt")
    load_weights(taken, tmp_path / "old.pt")
    for one, other in zip(given.parameters(), taken.parameters(), strict=True):
        assert torch.equal(one, other)
    told = capsys.readouterr().out
    assert (said in told) if said else told == ""


def test_a_prefix_of_some_names_is_left_alone(tmp_path: Path) -> None:
    state = nn.DataParallel(Net(4)).state_dict()
    state.pop("module.first.bias")
    torch.save(state, tmp_path / "old.pt")
    with pytest.raises(CheckError, match="do not fit Net: Missing key"):
        load_weights(Net(4), tmp_path / "old.pt")


def test_of_an_evaluation_its_own_command_and_the_changed_code_are_told(first: Path) -> None:
    made(first)
    run = RunDir(first.parents[1])
    weights = replace(planned(first, hidden=8), verb="test")
    with pytest.raises(CheckError) as caught:
        load_weights(Net(8), first, weights)
    typed = f"hpc-train test {run.run_id} model.init_args.hidden=4"
    assert caught.value.hint == f"{typed}, as first ({run.run_id}) had"
    document = {"workdir": str(first.parents[4]), "sources": {"wide_nets.py": "another"}}
    run.environment.write_text(json.dumps(document))
    with pytest.raises(CheckError) as caught:
        load_weights(Net(8), first, replace(planned(first), verb="test"))
    other = "they are of another model: name others, or give the model the init_args it had then"
    shown = f"hpc-train diff {run.run_id}"
    assert caught.value.hint == f"{other}, or its code: wide_nets.py ({shown})"
