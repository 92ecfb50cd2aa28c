"""What was meant by an attribute or a metric that there is not."""

from __future__ import annotations

import linecache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.failures.near_names import near_name


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(2, 1)
        self.val_set = [1, 2]


def asked(owner: Any, name: str) -> AttributeError:
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    return caught.value


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nett", "did you mean 'net'?"),
        ("val_sett", "did you mean 'val_set'?"),
        ("zzz", ""),
        ("_nett", ""),
    ],
)
def test_an_attribute_of_a_module_that_is_one_slip_away_is_named(name: str, meant: str) -> None:
    assert near_name(asked(Net(), name)) == meant
    assert fix_of(asked(Net(), name)) == meant


def test_a_name_of_lightning_1_is_told_as_it_is_today() -> None:
    assert near_name(asked(pl, "metrics")) == "write import torchmetrics as metrics"
    said = "write from pytorch_lightning.callbacks import DeviceStatsMonitor"
    assert near_name(asked(pl.callbacks, "GPUStatsMonitor")) == said


def test_a_method_of_another_librarys_trainer_is_told_by_lightnings() -> None:
    trainer = pl.Trainer.__new__(pl.Trainer)
    assert near_name(asked(trainer, "train")) == "write fit in its place"
    assert near_name(asked(Net(), "run")) == ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("many", [0, 1, 2])
def test_the_one_optimizer_of_a_trainer_is_told_in_its_list(many: int) -> None:
    trainer = pl.Trainer(accelerator="cpu", logger=False)
    weight = [torch.nn.Parameter(torch.zeros(1))]
    trainer.strategy.optimizers = [torch.optim.SGD(weight, lr=1.0) for _ in range(many)]
    with pytest.raises(AttributeError) as caught:
        _ = trainer.optimizer.param_groups  # type: ignore[attr-defined]
    told = f"write trainer.optimizers[0] in its place (optimizers is a list of {many})"
    none = "optimizers, a list, is empty there: configure_optimizers has made none so far"
    assert fix_of(caught.value) == (told if many else none)


@pytest.mark.filterwarnings("ignore")
def test_a_models_optimizer_and_schedule_are_told_as_the_method_that_gives_them() -> None:
    assert near_name(asked(Net(), "optimizer")) == "write self.optimizers() in its place"
    assert near_name(asked(Net(), "scheduler")) == "write self.lr_schedulers() in its place"
    assert near_name(asked(torch.nn.Linear(1, 1), "optimizer")) == ""
    schedule = SimpleNamespace(scheduler=1)
    trainer = pl.Trainer(accelerator="cpu", logger=False)
    trainer.strategy.lr_scheduler_configs = [schedule]  # type: ignore[list-item]
    assert near_name(asked(trainer, "lr_scheduler")).startswith(
        "write trainer.lr_scheduler_configs[0].scheduler in its place"
    )


def test_a_part_of_a_name_is_enough_where_one_alone_has_it() -> None:
    assert near_name(asked(SimpleNamespace(current_epoch=3, fit_loop=1), "epoch")) == (
        "did you mean 'current_epoch'?"
    )
    several = SimpleNamespace(first_epoch=1, last_epoch=2)
    assert "epoch" not in near_name(asked(several, "epochs_of_all"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("epoch", "current_epoch"), ("step", "global_step"), ("module", "lightning_module")],
)
def test_lightnings_own_name_of_a_word_is_meant(name: str, meant: str) -> None:
    assert near_name(asked(object.__new__(pl.Trainer), name)) == f"did you mean {meant!r}?"
    if name != "module":
        assert near_name(asked(Net(), name)) == f"did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        ("F.relu(1)", "write import torch.nn.functional as F at the top of that file"),
        ("os.sep", "write import os at the top of that file"),
        ("batchs", "did you mean 'batch'?"),
        (
            "get_ipython()",
            "leave out what a notebook alone runs: its line with get_ipython",
        ),
        ("display(1)", "display is a notebook's alone: write print(...), or take the line out"),
        ("zzz", ""),
    ],
)
def test_a_name_that_is_not_defined_is_told_with_what_was_forgotten(code: str, meant: str) -> None:
    with pytest.raises(NameError) as caught:
        exec(code, {"batch": 1})
    assert near_name(caught.value) == meant


def test_of_none_and_of_a_module_of_pythons_nothing_is_said() -> None:
    assert near_name(asked(None, "shape")) == ""
    assert near_name(asked(torch, "cudaa")) == ""


@pytest.mark.parametrize(
    ("name", "meant"), [("sgd", "SGD"), ("adam", "Adam"), ("Adamw", "AdamW"), ("Adams", "")]
)
def test_of_a_module_a_name_that_differs_in_case_alone_is_meant(name: str, meant: str) -> None:
    assert near_name(asked(torch.optim, name)) == (f"did you mean {meant!r}?" if meant else "")


@pytest.mark.parametrize("logged", [[], ["train_loss", "val_loss"]])
def test_a_metric_that_is_not_logged_is_told_with_those_that_are(logged: list[str]) -> None:
    found = dict.fromkeys(logged, torch.zeros(()))
    connector = SimpleNamespace(_callback_metrics=found, _logged_metrics={})
    trainer = SimpleNamespace(_logger_connector=connector, callback_metrics=found)
    with pytest.raises(KeyError) as caught:
        _ = trainer.callback_metrics["valloss"]
    told = "callback_metrics has train_loss, val_loss: did you mean 'val_loss'?"
    assert near_name(caught.value) == (told if logged else "")
    with pytest.raises(KeyError) as other:
        _ = {"val_loss": 1}["valloss"]
    assert near_name(other.value) == ""


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        ("data.test", ""),
        ("data.test()", "did you mean 'test_dataloader'?"),
        ("data.test.sum()", ""),
        ("data.helt_set", "did you mean 'held_set'?"),
    ],
)
def test_a_method_is_near_what_is_called_alone(tmp_path: Path, code: str, meant: str) -> None:
    class Data:
        held_set = 1

        def test_dataloader(self) -> None: ...

    assert near_name(raised(tmp_path, code, data=Data())) == meant


def raised(folder: Path, code: str, **given: Any) -> Exception:
    """What a file of that one line raises, with its text where tracebacks look for it."""
    path = folder / "line.py"
    path.write_text(code)
    linecache.checkcache(str(path))
    with pytest.raises((AttributeError, NameError)) as caught:
        exec(compile(code, str(path), "exec"), {}, given)
    return caught.value


class Staged(pl.LightningDataModule):
    def setup(self, stage: str) -> None:
        if stage == "fit":
            self.train = self.later = [1]

    def train_dataloader(self) -> Any:
        return self.train

    def test_dataloader(self) -> Any:
        return self.train

    def early(self) -> Any:
        return self.given

    def give(self) -> None:
        self.given = 1

    def one(self) -> None:
        self.twice = 1

    def other(self) -> None:
        self.twice = 2


def place_of(text: str) -> str:
    """The line of this file that has it first."""
    lines = Path(__file__).read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if text in line)
    return f"({Path(__file__).relative_to(Path.cwd())}:{number})"


def test_what_setup_sets_for_another_stage_alone_is_told_with_its_line() -> None:
    data = Staged()
    data.trainer = cast(
        "Any", SimpleNamespace(state=SimpleNamespace(fn=SimpleNamespace(value="test")))
    )
    with pytest.raises(AttributeError) as caught:
        data.test_dataloader()
    assert near_name(caught.value) == (
        f"{__name__}.Staged.setup sets self.train {place_of('self.train = self.later')}, and not"
        " for stage 'test': set it there for each stage that needs it"
    )


def test_what_a_method_sets_that_was_not_called_is_told_with_its_line() -> None:
    with pytest.raises(AttributeError) as caught:
        Staged().early()
    assert near_name(caught.value) == (
        f"{__name__}.Staged.give sets self.given {place_of('self.given = 1')}, and that line was"
        " not reached before"
    )
    assert "sets" not in near_name(asked(Staged(), "twice"))


def test_a_name_that_self_has_is_meant(tmp_path: Path) -> None:
    error = raised(tmp_path, "net(1)", self=Net())
    assert near_name(error) == "did you mean self.net?"
    assert near_name(raised(tmp_path, "net(1)", self=None)) == ""


class Forgets(pl.LightningDataModule):
    def __init__(self, root: str = "data", width: int = 1) -> None:
        super().__init__()
        self.wide = width

    def setup(self, stage: str) -> None:
        train = [1]  # noqa: F841 - without self

    def set_up(self) -> None:
        self.held = 1


def test_what_a_method_makes_without_self_is_told_with_its_line() -> None:
    made = place_of("train = [1]  # noqa")
    assert near_name(asked(Forgets(), "train")) == (
        f"{__name__}.Forgets.setup {made} makes train without self: write self.train = ... there"
    )
    taken = place_of('def __init__(self, root: str = "data"')
    assert near_name(asked(Forgets(), "root")) == (
        f"{__name__}.Forgets.__init__ {taken} takes root: write self.root = root there"
    )


def test_what_init_keeps_under_another_name_is_told_with_that_name() -> None:
    assert near_name(asked(Forgets(), "width")) == "did you mean 'wide'?"


def test_what_a_misspelt_hook_sets_is_told_with_the_hooks_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = near_name(asked(Forgets(), "held"))
    assert said.endswith("and nothing calls set_up: rename it to setup")


@pytest.mark.parametrize(
    ("monitor", "told"),
    [("val_accuracy", "did you mean 'val_acc'?"), ("val_loss", ""), ("epochs", "")],
)
def test_a_monitor_that_was_not_logged_is_told_with_the_one_that_is_meant(
    monitor: str, told: str
) -> None:
    logged = {"train_loss": torch.zeros(()), "val_acc": torch.zeros(())}
    stops = pl.callbacks.EarlyStopping(monitor)
    with pytest.raises(RuntimeError) as caught:
        stops._validate_condition_metric(logged)
    assert fix_of(caught.value) == told
    keeps = f"`ModelCheckpoint(monitor='{monitor}')` could not find the monitored key in the"
    names = [*logged, "epoch", "step"]
    hint = f"HINT: Did you call `log('{monitor}', value)` in the `LightningModule`?"
    assert fix_of(ValueError(f"{keeps} returned metrics: {names}. {hint}")) == told
    lowers = f"ReduceLROnPlateau conditioned on metric {monitor} which is not available."
    assert fix_of(ValueError(f"{lowers} Available metrics are: {[*logged]}. Condition")) == told
