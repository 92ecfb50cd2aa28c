"""`test`, `validate` and `predict` as ranks do them: each sample once, whatever the shape."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed import checkpoint as dcp

from hpc_train.errors import CheckError
from hpc_train.plan.plan import ObjectSpec, Plan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.training.predictions import in_order
from hpc_train.training.weights import load_weights
from tests.training.launched import Ended, make_plan, run_ranks

MODULE = "tests.training.evaluated"


def a_plan(folder: Path, ranks: int, **data: Any) -> Plan:
    return make_plan(
        folder,
        ranks_per_node=ranks,
        model=ObjectSpec(f"{MODULE}.Weighted", {}),
        data=ObjectSpec(f"{MODULE}.NumbersData", data),
        global_batch_size=4 * ranks,
        loggers=[],
    )


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a training by two ranks."""
    folder = tmp_path_factory.mktemp("trained")
    ended = run_ranks(a_plan(folder, 2), folder / "run")
    assert ended.codes == [0, 0], ended.log(0)
    (state,) = RunDir(folder / "run").checkpoints.iterdir()
    return state / "model.ckpt"


def evaluate(plan: Plan, weights: Path, verb: str, folder: Path) -> tuple[Ended, RunDir]:
    plan = dataclasses.replace(plan, verb=verb, weights=str(weights))
    return run_ranks(plan, folder / "evaluated", timeout_s=250), RunDir(folder / "evaluated")


@pytest.mark.parametrize(
    ("ranks", "verb", "n"), [(1, "test", 11), (2, "validate", 7), (3, "test", 11)]
)
def test_every_sample_is_evaluated_once_with_the_trained_weights(
    ranks: int, verb: str, n: int, tmp_path: Path, weights: Path
) -> None:
    ended, run = evaluate(a_plan(tmp_path, ranks, n=n), weights, verb, tmp_path)
    assert ended.codes == [0] * ranks, ended.log(0)
    metrics = json.loads((run.metrics / "final.json").read_text())
    assert (metrics["seen"], metrics["sum"]) == (n, sum(range(n)))
    trained = torch.load(weights, weights_only=True)["state_dict"]["layer.weight"].mean()
    assert metrics["weight"] == pytest.approx(float(trained))
    ran = json.loads(ended.attempt.environment.read_text())
    assert ran["torch"]["version"] == torch.__version__
    assert "pytorch-lightning" in ran["packages"]
    assert not run.checkpoints.exists(), "nothing is trained, nothing is saved"


def test_predictions_come_in_the_order_of_the_data_set(tmp_path: Path, weights: Path) -> None:
    plan = a_plan(tmp_path, 3, n=10, shuffle=True, loaders=2)
    ended, run = evaluate(plan, weights, "predict", tmp_path)
    assert ended.codes == [0, 0, 0], ended.log(0)
    assert sorted(path.name for path in run.predictions.iterdir()) == [
        "predictions-0.pt", "predictions-1.pt"
    ]  # fmt: skip
    assert f"predictions  {run.predictions}/predictions-0.pt" in ended.log(0)
    for number, n in enumerate((10, 11)):
        got = torch.load(run.predictions / f"predictions-{number}.pt", weights_only=True)
        assert got.tolist() == list(range(n))


@pytest.mark.parametrize(
    ("kind", "what"),
    [("table", "a Table a batch"), ("mean", "a Tensor a batch, without a row a sample")],
)
def test_outputs_that_are_left_apart_are_noted_with_how_to_read_them(
    tmp_path: Path, weights: Path, kind: str, what: str
) -> None:
    """torch.load alone refuses a DataFrame, and the run was complete without a word."""
    plan = a_plan(tmp_path, 1, n=4)
    model = ObjectSpec(f"{MODULE}.Weighted", {"kind": kind})
    plan = dataclasses.replace(plan, training=dataclasses.replace(plan.training, model=model))
    ended, run = evaluate(plan, weights, "predict", tmp_path)
    assert ended.codes == [0], ended.log(0)
    (note,) = read_notes(run.attempt(0))
    file = run.predictions / "predictions-rank-0.pt"
    read = f'torch.load("{file}", weights_only=False)["outputs"]'
    assert note.startswith(f"predict_step gives {what}, so that there is no predictions.pt: {read}")
    assert note.endswith("in the order of the data, return a tensor with a row a sample")
    assert len(torch.load(file, weights_only=False)["outputs"]) == 2


def test_a_stream_is_predicted_by_one_rank_and_refused_to_two(
    tmp_path: Path, weights: Path
) -> None:
    ended, run = evaluate(a_plan(tmp_path, 1, stream=True), weights, "predict", tmp_path)
    assert ended.codes == [0], ended.log(0)
    got = torch.load(run.predictions / "predictions.pt", weights_only=True)
    assert got.tolist() == [0, 1, 2, 3, 4]
    ended, _ = evaluate(a_plan(tmp_path / "b", 2, stream=True), weights, "predict", tmp_path / "b")
    assert 0 not in ended.codes
    assert "predict with one rank: --nodes 1 --gpus 1" in ended.log(0)


def test_what_all_ranks_evaluate_is_said_to_be_so(tmp_path: Path, weights: Path) -> None:
    ended, _ = evaluate(a_plan(tmp_path, 2, n=1), weights, "test", tmp_path)
    assert ended.codes == [0, 0], ended.log(0)
    assert "each of the 2 ranks evaluates all that it gives" in ended.log(0)


@pytest.mark.parametrize("verb", ["test", "fit"])
def test_weights_of_another_model_are_refused_in_one_line(
    verb: str, tmp_path: Path, weights: Path
) -> None:
    plan = a_plan(tmp_path, 1)
    other = ObjectSpec(f"{MODULE}.Weighted", {"width": 3})
    plan = dataclasses.replace(plan, training=dataclasses.replace(plan.training, model=other))
    ended, _ = evaluate(plan, weights, verb, tmp_path)
    assert ended.codes == [3]
    (line,) = [line for line in ended.log(0).splitlines() if line.startswith("error: ")]
    assert f"the weights in {weights} do not fit Weighted: size mismatch for layer.weight" in line
    assert "Traceback" not in ended.log(0)


def test_a_run_begins_with_the_weights_alone(tmp_path: Path, weights: Path) -> None:
    plan = dataclasses.replace(a_plan(tmp_path, 1), weights=str(weights))
    training = dataclasses.replace(plan.training, trainer={"accelerator": "cpu", "max_steps": 1})
    ended = run_ranks(dataclasses.replace(plan, training=training), tmp_path / "run")
    assert ended.codes == [0], ended.log(0)
    assert "training from step 0 on 1 rank" in ended.log(0)
    (state,) = RunDir(tmp_path / "run").checkpoints.iterdir()
    assert state.name == "step-000000001", "steps are counted anew"
    before, after = (
        torch.load(path, weights_only=True)["state_dict"]["layer.weight"].item()
        for path in (weights, state / "model.ckpt")
    )
    gradient = 2 * before * sum(i * i for i in range(4)) / 4
    assert after == pytest.approx(before - 1e-3 * gradient), "one step from these weights"


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_weights_in_shards_are_read_by_one_process_or_refused(tmp_path: Path) -> None:
    saved, model = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    dcp.save({"model": saved.state_dict()}, checkpoint_id=str(tmp_path / "model"), no_dist=True)
    load_weights(model, tmp_path / "model")
    assert torch.equal(model.weight, saved.weight)
    with pytest.raises(
        CheckError, match=r"do not fit Sequential: missing \['0.bias', '0.weight'\]"
    ):
        load_weights(torch.nn.Sequential(model), tmp_path / "model")


def test_a_file_that_holds_no_weights_is_refused(tmp_path: Path) -> None:
    torch.save({"x": 1}, tmp_path / "x.ckpt")
    with pytest.raises(CheckError, match=r"x\.ckpt holds no state_dict: has x"):
        load_weights(torch.nn.Linear(1, 1), tmp_path / "x.ckpt")
    torch.save([1], tmp_path / "x.ckpt")
    with pytest.raises(CheckError, match=r"x\.ckpt holds no state_dict: list"):
        load_weights(torch.nn.Linear(1, 1), tmp_path / "x.ckpt")


def test_a_whole_model_is_told_by_the_file_that_the_user_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "weights" / "net.pt"
    link.parent.mkdir()
    torch.save(torch.nn.Linear(1, 1), link)
    plan = dataclasses.replace(a_plan(tmp_path, 1), weights="/data/net.pt")
    with pytest.raises(CheckError) as refused:
        load_weights(torch.nn.Linear(1, 1), link, plan)
    assert refused.value.message == "/data/net.pt holds no state_dict: Linear"
    said = "WARNING: net.pt holds more than tensors and is read in full"
    assert capfd.readouterr().err == f"{said}: torch.nn.modules.linear.Linear\n"


def test_a_bare_state_dict_is_taken(tmp_path: Path) -> None:
    saved, model = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    torch.save(saved.state_dict(), tmp_path / "x.pt")
    load_weights(model, tmp_path / "x.pt")
    assert torch.equal(model.weight, saved.weight)


def test_outputs_with_a_row_a_sample_are_put_in_order() -> None:
    indices = [[2, 0], [1]]
    tensors = [torch.tensor([2.0, 0.0]), torch.tensor([1.0])]
    names = [["c", "a"], ["b"]]
    assert in_order(indices, tensors).tolist() == [0.0, 1.0, 2.0]
    assert in_order(indices, names) == ["a", "b", "c"]
    both = in_order(indices, [{"x": x, "n": n} for x, n in zip(tensors, names, strict=True)])
    assert (both["x"].tolist(), both["n"]) == ([0.0, 1.0, 2.0], ["a", "b", "c"])
    first, _ = in_order(indices, list(zip(tensors, names, strict=True)))
    assert first.tolist() == [0.0, 1.0, 2.0]
    ragged = in_order(indices, [torch.zeros(2, 3), torch.ones(1, 2)])
    assert [len(row) for row in ragged] == [3, 2, 3]
    assert in_order([], []) == []


@pytest.mark.parametrize("output", [torch.tensor(1.0), torch.zeros(3), None, [1, 2, 3]])
def test_outputs_without_a_row_a_sample_have_no_order(output: Any) -> None:
    with pytest.raises(ValueError, match="not a row for each sample"):
        in_order([[0, 1]], [output])
