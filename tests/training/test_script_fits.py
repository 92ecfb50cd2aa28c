"""Scripts that know nothing of hpc-train: disturbed, their own results are those of a quiet run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.config.schema import CheckpointConfig
from hpc_train.errors import RunFailedError
from hpc_train.plan.plan import Batch, ScriptPlan, Shape
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.ranks import read_beginning, read_exits
from hpc_train.supervisor.script_resume import script_environment
from tests.training.launched import free_port, make_plan
from tests.training.ranks import Run

SCRIPTS = Path(__file__).parents[1] / "scripts"


class Scripted(Run):
    """A run of one of the scripts, in a folder of its own."""

    def __init__(self, path: Path, script: str, *args: str, **checkpoint: Any) -> None:
        super().__init__(path, module="tests.training.script_job")
        self.script = ScriptPlan(str(SCRIPTS / f"{script}.py"), list(args))
        self.checkpoint = CheckpointConfig(every_n_minutes=None, **checkpoint)
        self.folders: list[str] = []  # of modules that its ranks alone find

    def go(self, world: int = 2, faults: str = "") -> list[int]:
        plan = dataclasses.replace(
            make_plan(self.path, ranks_per_node=world),
            script=self.script,
            batch=Batch(0, 0, 0),
            checkpoint=self.checkpoint,
            shape=Shape(nodes=1, ranks_per_node=world, gpus_per_node=0),
        )
        self.dir.plan.write_text(plan.to_json())
        added = script_environment(plan, self.dir, self.attempt, print)
        return self.run(world, faults, port=free_port(), environment=added, folders=self.folders)

    def result(self) -> Any:
        return torch.load(self.path / "final.pt")

    def told(self) -> dict[str, float]:
        """What the script says of its result."""
        return dict(json.loads((self.path / "result.json").read_text()))

    def said(self, attempt: int = 0) -> str:
        return self.log(attempt, 0)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    return bool(torch.equal(first, second))


def disturbed(run: Scripted, world: int, *faults: str) -> Scripted:
    """One attempt for each fault, and one to the end."""
    for number, fault in enumerate(faults):
        codes = run.go(world, fault)
        assert not set(codes) & {0, 1}, (codes, run.said(number))
    assert run.go(world) == [0] * world, run.said(len(faults))
    return run


@pytest.mark.parametrize(
    ("world", "args", "faults"),
    [
        (2, ("--seed", "1", "--accumulate", "2"), ("stop@step=2:rank=1", "stop@step=9")),
        (3, ("--ckpt-path", "last"), ("stop@step=4", "kill@step=9:rank=2", "stop@validate=1")),
        (1, ("--seed", "3", "--patience", "1", "--epochs", "40"), ("kill@step=1", "stop@step=17")),
    ],
)
def test_a_script_that_is_stopped_and_killed_ends_with_the_weights_of_a_quiet_run(
    tmp_path: Path, world: int, args: tuple[str, ...], faults: tuple[str, ...]
) -> None:
    quiet = disturbed(Scripted(tmp_path / "quiet", "classic", *args), world)
    often = disturbed(
        Scripted(tmp_path / "often", "classic", *args, every_n_steps=3), world, *faults
    )
    assert same(often.result(), quiet.result())
    assert often.told() == quiet.told(), "the same best checkpoint was tested after the fit"
    assert newest_step(often.dir) == newest_step(quiet.dir) == quiet.told()["step"]
    assert f"{world} on cpu, strategy " in quiet.said()
    assert f"global batch: 8 samples a rank x {world} ranks" in quiet.said()
    if "--ckpt-path" in args:
        assert "ckpt_path='last' was for the first attempt" in often.said(len(faults))


@pytest.fixture(scope="module")
def quiet_fits(tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    return disturbed(Scripted(tmp_path_factory.mktemp("quiet"), "two_fits"), 2)


@pytest.mark.parametrize(
    "faults",
    [("stop@step=3",), ("stop@step=8", "kill@step=12"), ("stop@step=20", "stop@step=26:rank=1")],
)
def test_fits_that_were_over_are_passed_over_and_the_interrupted_one_goes_on(
    tmp_path: Path, quiet_fits: Scripted, faults: tuple[str, ...]
) -> None:
    quiet = quiet_fits
    often = disturbed(Scripted(tmp_path / "often", "two_fits", every_n_steps=2), 2, *faults)
    assert same(often.result(), quiet.result())
    drawn = [line for line in quiet.said().splitlines() if line.startswith("between")]
    assert drawn[0] in often.said(len(faults)), "what is drawn behind a fit that was over"
    began = [read_beginning(often.dir.attempt(number)) for number in (0, 1)]
    assert [it and it.step for it in began] == [0, int(faults[0].split("=")[1].split(":")[0])]
    # 6 steps of the first; a batch of the others is a step of each of two optimizers
    assert newest_step(often.dir) == newest_step(quiet.dir) == 6 + 12 + 12


def test_a_tuner_runs_again_in_each_attempt_and_each_sample_is_predicted_once(
    tmp_path: Path,
) -> None:
    quiet = disturbed(Scripted(tmp_path / "quiet", "tuned"), 2)
    often = disturbed(Scripted(tmp_path / "often", "tuned"), 2, "stop@step=3")
    assert same(often.result(), quiet.result())
    assert newest_step(often.dir) == 8
    assert "predicted 5" in quiet.log(0, 1)


@pytest.mark.parametrize(
    ("script", "args", "faults"),
    [
        ("cli_app", ("fit", "--trainer.max_epochs=2"), ("stop@step=6", "stop@validate=1")),
        ("cli_by_hand", ("--trainer.max_epochs=2",), ("stop@step=11:rank=1",)),
    ],
)
def test_an_app_of_lightnings_command_line_goes_on_in_its_folder(
    tmp_path: Path, script: str, args: tuple[str, ...], faults: tuple[str, ...]
) -> None:
    quiet = disturbed(Scripted(tmp_path / "quiet", script, *args), 2)
    often = disturbed(Scripted(tmp_path / "often", script, *args), 2, *faults)
    assert same(often.result(), quiet.result())
    configs = [path.parent.name for path in often.path.rglob("config.yaml")]
    assert configs == ["version_0"], "its own refuses a folder that has one"
    if script == "cli_by_hand":
        tested = next(line for line in quiet.said().splitlines() if line.startswith("tested"))
        assert tested in often.said(1)


@pytest.mark.parametrize("kind", ["ema", "swa", "swa-norm"])
def test_averages_of_weights_and_a_csv_file_are_those_of_a_quiet_run(
    tmp_path: Path, kind: str
) -> None:
    if kind == "ema" and not hasattr(pl.callbacks, "EMAWeightAveraging"):
        pytest.skip("Lightning has it since 2.6")
    quiet = disturbed(Scripted(tmp_path / "quiet", "averaged", kind), 1)
    faults = ("stop@step=4", "kill@step=8", "stop@step=23")
    often = disturbed(Scripted(tmp_path / "often", "averaged", kind, every_n_steps=5), 1, *faults)
    assert same(often.result(), quiet.result())
    (whole,) = quiet.path.rglob("metrics.csv")
    (file,) = often.path.rglob("metrics.csv")
    assert file.read_text() == whole.read_text(), "no line is lost, and none is there twice"
    assert file.parent.name == "version_0"


def test_another_number_of_ranks_keeps_the_global_batch_or_is_refused(tmp_path: Path) -> None:
    quiet = disturbed(Scripted(tmp_path / "quiet", "classic", "--seed", "1"), 2)
    run = Scripted(tmp_path / "run", "classic", "--seed", "1")
    run.go(2, "stop@step=5")
    assert run.go(3) == [3, 3, 3]
    assert "global_batch_size 16 cannot be split over 3 ranks" in run.said(1)
    assert "nearest shapes: --nodes 1 --gpus" in run.said(1)
    assert run.go(1) == [0]
    assert "the global batch stays 16: 2 ranks x 8 x 1 accumulated are now 1 x 8 x 2" in run.said(2)
    assert run.told()["step"] == quiet.told()["step"] == 3 * (120 // 16), "the same steps"


CATCHES = """
import sys
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

try:
    trainer = pl.Trainer(**{"max_epochs": 3, "logger": False, **eval(sys.argv[1])})
    trainer.fit(Net(), DataLoader(torch.randn(16, 1), batch_size=2))
except BaseException as error:
    print("caught", error)
finally:
    print("after the fit", flush=True)
    sys.exit(0)
"""


@pytest.mark.parametrize(
    ("arguments", "faults", "code", "said"),
    [
        ("{'devices': 8}", "", 3, "Trainer(devices=8), and this run has 2"),
        ("{'accelerator': 'tpu'}", "", 3, "'tpu' is not supported"),
        ("{'max_epochs': '2'}", "", 3, "max_epochs is the text '2': write int(max_epochs), or a"),
        ("{'strategy': 'ddp_spawn'}", "", 3, "ddp_spawn starts processes by itself"),
        (
            "{'callbacks': [pl.callbacks.GradientAccumulationScheduler({0: 2})]}",
            *("", 3, "the callback GradientAccumulationScheduler takes steps"),
        ),
        ("{}", "stop@step=2", 75, "stopped by SIGTERM: saved step 2"),
    ],
)
def test_a_refusal_and_a_stop_are_not_for_the_script_to_catch(
    tmp_path: Path, arguments: str, faults: str, code: int, said: str
) -> None:
    run = Scripted(tmp_path, "catches", arguments)
    (tmp_path / "catches.py").write_text(CATCHES, encoding="utf-8")
    run.script = ScriptPlan("catches.py", [arguments])
    codes = run.go(2, faults)
    # A callback is refused behind the rendezvous, in which a slow rank loses the one that has left.
    lost = {RunFailedError.exit_code} if "callbacks" in arguments else set()
    assert code in codes, run.said()
    assert {*codes} <= {code, *lost}, run.said()
    for rank in (0, 1):
        assert said in run.log(0, rank) or (rank and code == 75) or codes[rank] in lost
        assert "caught" not in run.log(0, rank)
        assert "after the fit" not in run.log(0, rank)
    if code == 3 and "callbacks" not in arguments:
        places = {it.where for it in read_exits(run.dir.attempt(0))}
        assert places == {f"{tmp_path / 'catches.py'}:17"}, "of the Trainer"


def test_a_lost_peer_is_not_for_the_script_to_catch_and_its_own_error_is_named(
    tmp_path: Path,
) -> None:
    run = Scripted(tmp_path, "catches", "{}")
    (tmp_path / "catches.py").write_text(CATCHES, encoding="utf-8")
    run.script = ScriptPlan("catches.py", ["{}"])
    assert run.go(2, "kill@step=2:rank=1") == [76, -9], run.said()
    assert "caught" not in run.said()

    leaves = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise SystemExit(1)\n"
    (tmp_path / "catches.py").write_text(leaves, encoding="utf-8")
    assert run.go(1) == [1]
    assert "error: ZeroDivisionError" in run.said(1)


def test_learning_rates_grow_with_the_ranks_also_in_a_run_that_goes_on_with_fewer(
    tmp_path: Path,
) -> None:
    def scaled(name: str, how: str, **given: Any) -> Scripted:
        run = Scripted(tmp_path / name, "scaled", how, every_n_steps=2)
        run.script = dataclasses.replace(run.script, **given)
        return run

    quiet = disturbed(scaled("quiet", "automatic", scale_lr="linear", warmup_steps=2), 2)
    assert "learning rates: 2 x the script's, reached over 2 steps" in quiet.said()
    steps = [line.split()[2:] for line in quiet.said().splitlines() if line.startswith("step ")]
    assert steps[:8] == [  # 1.5 x, then 2 x; half of it in the second epoch
        *(["0.15", "0.015"], ["0.2", "0.02"], ["0.2", "0.02"], ["0.2", "0.02"]),
        *[["0.1", "0.01"]] * 4,
    ]
    often = scaled("often", "automatic", scale_lr="linear", warmup_steps=2)
    assert often.go(2, "stop@step=1") == [75, 75]
    assert often.go(1) == [0], often.said(1)
    assert "2 ranks x 2 x 1 accumulated are now 1 x" in often.said(1)
    assert same(often.result(), quiet.result())

    refused = scaled("refused", "manual", scale_lr="sqrt")
    assert refused.go(2) == [3, 3]
    assert "script.scale_lr cannot scale" in refused.said()
