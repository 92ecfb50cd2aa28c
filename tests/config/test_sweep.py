"""Which points a sweep has, and which sweeps are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hpc_train import sweeps
from hpc_train.api import load
from hpc_train.config.sweeps.sweep import is_plain, load_point, plain_point, sweep_points
from hpc_train.errors import HpcTrainError
from hpc_train.plan.sweep_plan import SweepPlan, array_text
from tests.cli.conftest import DIGITS

LR = "model.init_args.lr"


def test_the_points_are_all_combinations_and_the_last_key_changes_first() -> None:
    loaded = load(DIGITS, sweep=[f"{LR}=1e-3,0.01", "seed=range(1,6,2)"])
    points = sweep_points(loaded.config.sweep, loaded.origins)
    assert [tuple(point.values()) for point in points] == [
        (lr, seed) for lr in (1e-3, 0.01) for seed in (1, 3, 5)
    ]
    assert list(points[0]) == [LR, "seed"]


def test_a_sweep_in_a_file_is_written_by_dotted_keys_or_by_sections(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = f"defaults: [{DIGITS}]\nsweep:\n  {LR}: [0.1, 0.2]\n  trainer: {{max_epochs: [1]}}\n"
    file.write_text(f"{text}  seed: range(2)\n")
    plan, _ = sweeps.plan_sweep(load(file))
    assert len(plan.points) == 4
    assert plan.plan_of(3).training.trainer["max_epochs"] == 1
    assert (plan.plan_of(3).training.seed, plan.plan_of(2).training.seed) == (1, 0)
    # The command line takes the place of a key of the file.
    assert len(sweeps.plan_sweep(load(file, sweep=["seed=7"]))[0].points) == 2


def test_one_value_makes_a_sweep_of_one_point() -> None:
    plan, _ = sweeps.plan_sweep(load(DIGITS, sweep=["seed=3"]))
    assert [point.overrides for point in plan.points] == [{"seed": 3}]
    assert plan.plan_of(0).training.seed == 3


@pytest.mark.parametrize(
    "sweep",
    [
        [f"{LR}=0.1,0.2,3", "seed=range(2)"],  # made from the first point's config
        ["trainer.max_epochs=1,2", f"{LR}=[0.1, 0.2]"],  # read anew
        ["global_batch_size=96,192"],
        ["model.init_args={lr: 0.5},{lr: 0.25}"],
    ],
)
def test_a_point_has_the_plan_and_the_config_of_its_values_on_the_command_line(
    sweep: list[str],
) -> None:
    loaded = load(DIGITS, sweep=sweep)
    plan, configs = sweeps.plan_sweep(loaded)
    back = SweepPlan.from_json(plan.to_json())
    for number, point in enumerate(plan.points):
        alone = load_point(loaded, point.overrides)
        from hpc_train.api import plan as plan_one

        assert back.plan_of(number) == plan_one(alone, for_script=True)
        own = configs[number] if len(configs) > 1 else plain_point(configs[0], point.overrides)
        assert own == alone.config
    assert is_plain(loaded, [point.overrides for point in plan.points]) == (len(configs) == 1)


def test_a_value_that_is_made_of_a_swept_one_follows_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"defaults: [{DIGITS}]\nseed: 1\nmodel: {{init_args: {{width: '${{seed}}'}}}}\n"
    )
    plan, configs = sweeps.plan_sweep(load(file, sweep=["seed=8,16"]))
    widths = [plan.plan_of(number).training.model.init_args["width"] for number in (0, 1)]
    assert widths == [8, 16]
    assert [config.model["init_args"]["width"] for config in configs] == [8, 16]


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        (["seed="], "sweep.seed has no values"),
        (["seed=range(0)"], "sweep.seed has no values"),
        (["seed=range(100000)"], "100,000 points"),
        (["seed=range(300)", f"{LR}=range(300)"], "90,000 points"),
        (["seed=range(1,9,0)"], "whose step is 0"),
        (["seed=range(x)"], "sweep.seed is 'range(x)'"),
        (["seed=1,2,1"], "sweep.seed has 1 twice"),
        (["seed"], "--sweep seed has no values"),
        (["seeed=1,2"], "did you mean 'seed'"),
        ([f"{LR}r=1,2"], "did you mean 'lr'"),
        (["trainer.max_epoch=1,2"], "did you mean 'trainer.max_epochs'"),
        (["seed=1,-4"], "point 1 of the sweep (seed=-4)"),
        (["global_batch_size=96,7", f"{LR}=1,2"], "point 2 of the sweep (global_batch_size=7"),
        (["slurm.time=0:10:00,0:20:00"], "share"),
        (["slurm.nodes=1,2"], "share"),
        (["name=a,b"], "share"),
        (["env.variables.X=a,b"], "share"),
        (["sweep.seed=1,2"], "sweep"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(sweep: list[str], said: str) -> None:
    with pytest.raises(HpcTrainError) as caught:
        sweeps.plan_sweep(load(DIGITS, sweep=sweep))
    assert said in str(caught.value)


def test_a_time_is_no_range() -> None:
    assert load(DIGITS, sweep=["slurm.time=0:30:00"]).config.sweep == {"slurm.time": ["0:30:00"]}


def test_one_training_alone_is_not_made_of_a_sweep() -> None:
    from hpc_train import api

    with pytest.raises(HpcTrainError, match="many trainings"):
        api.plan(load(DIGITS, sweep=["seed=1,2"]))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([0], "0"), ([0, 1, 2], "0-2"), ([1, 3, 4, 9], "1,3-4,9"), (range(1000), "0-999")],
)
def test_tasks_are_written_as_sbatch_takes_them(numbers: list[int], text: str) -> None:
    assert array_text(numbers) == text
    assert array_text(numbers, 4) == f"{text}%4"


WHOLE_KEY = ", each by its whole key, as model.init_args"
OF_WANDB = "is as Weights & Biases has it; here each key has its values"
WRITTEN_OUT = ", with all values written out: no range is searched"


@pytest.mark.parametrize(
    ("section", "said", "hint"),
    [
        (
            "{method: grid, parameters: {lr: {values: [0.1, 0.01]}, n: {value: 3}}}",
            f"mine.yaml:2: sweep.parameters {OF_WANDB}",
            f"write sweep: {{{LR}: [0.1, 0.01], n: [3]}}{WHOLE_KEY}.n",
        ),
        (
            "{parameters: {lr: {values: [0.1, 0.01]}, max_epochs: {value: 3}, seed: {value: 3}}}",
            f"mine.yaml:2: sweep.parameters {OF_WANDB}",
            f"write sweep: {{{LR}: [0.1, 0.01], trainer.max_epochs: [3], seed: [3]}}",
        ),
        (
            f"{{parameters: {{{LR}: {{min: 0.001, max: 0.1}}}}}}",
            f"sweep.parameters {OF_WANDB}",
            f"write sweep: {{{LR}: [0.001, 0.1]}}{WRITTEN_OUT}",
        ),
        (
            f"{{{LR}: {{min: 0.001, max: 0.1, distribution: uniform}}}}",
            f"sweep.{LR} is a range of Weights & Biases",
            f"write sweep: {{{LR}: [0.001, 0.1]}}{WRITTEN_OUT}",
        ),
        (
            "{model: {init_args: {lr: {value: 0.1}}}}",
            f"sweep.{LR} is a range of Weights & Biases",
            f"write sweep: {{{LR}: [0.1]}}",
        ),
    ],
)
def test_a_sweep_of_wandb_is_told_as_it_is_written_here(
    tmp_path: Path, section: str, said: str, hint: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"defaults: [{DIGITS}]\nsweep: {section}\n")
    with pytest.raises(HpcTrainError) as caught:
        sweeps.plan_sweep(load(file))
    assert said in caught.value.message
    assert caught.value.hint == hint


@pytest.mark.parametrize("section", ["{min: [1], max: [2]}", "{values: [1]}", "{value: [1, 2]}"])
def test_arguments_of_such_names_are_no_range(section: str) -> None:
    sweep = {"model": {"init_args": yaml.safe_load(section)}}
    assert sweep_points(sweep, load(DIGITS).origins)
