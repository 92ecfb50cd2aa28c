"""What is taken for granted of Trainers that a script imports; without it a script trains as one
process, or each rank by itself, and nothing of it is saved."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from hpc_train.training.private import versions
from hpc_train.training.private.after_import import hold_hydra_clock
from hpc_train.training.private.launch_method import launch_method
from hpc_train.training.private.lightning import pl
from hpc_train.training.private.lightning_trainer import (
    check_tuners,
    distributed_sampler,
    is_tuning,
)
from hpc_train.training.private.script_places import keep_places, places
from hpc_train.training.private.trainer_hooks import RUNS, follow_trainers

pytestmark = pytest.mark.filterwarnings("ignore")

FOLLOWED = """
from hpc_train.training.private.trainer_hooks import follow_trainers

class Hooks:
    def arguments(self, trainer, given):
        print(sorted(given))
        return {**given, "accelerator": "cpu", "devices": 1, "logger": False}
    def run(self, trainer, name, method, given):
        print(name, sorted(given.arguments))

follow_trainers(Hooks())
{imports}
trainer = Trainer(max_epochs=1)
trainer.fit(1, ckpt_path="x")
trainer.predict(model=1)
from hpc_train.training.private.lightning import PACKAGE
print(PACKAGE, trainer._signal_connector.register_signal_handlers())
"""


@pytest.mark.parametrize(
    ("imports", "package"),
    [
        ("from lightning.pytorch import Trainer; import pytorch_lightning", "lightning.pytorch"),
        ("import pytorch_lightning as pl; Trainer = pl.Trainer", "pytorch_lightning"),
    ],
)
def test_a_trainer_is_met_however_it_is_imported_and_decides_the_package(
    imports: str, package: str
) -> None:
    program = FOLLOWED.replace("{imports}", imports)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "['max_epochs']",
        "fit ['ckpt_path', 'model']",
        "predict ['model']",
        f"{package} None",
    ], done.stderr


def test_what_is_followed_keeps_its_signature_and_its_subclasses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lightning's CLI reads the signature; PL_TRAINER_* are read behind our arguments."""
    monkeypatch.setattr(versions, "_in_use", [])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("__init__", *RUNS):
        monkeypatch.setattr(pl.Trainer, name, getattr(pl.Trainer, name))
    before = inspect.signature(pl.Trainer.__init__), inspect.signature(pl.Trainer.fit)
    seen: list[Any] = []

    class Hooks:
        def arguments(self, trainer: Any, given: dict[str, Any]) -> dict[str, Any]:
            seen.append(type(trainer).__name__)
            return {**given, "accelerator": "cpu", "logger": False}

        def run(self, trainer: Any, name: str, method: Any, given: Any) -> None:
            seen.append((name, list(given.arguments.values())))

    follow_trainers(Hooks())
    assert before == (inspect.signature(pl.Trainer.__init__), inspect.signature(pl.Trainer.fit))

    class Own(pl.Trainer):
        pass

    Own(max_epochs=2).test("model", None)
    assert seen == ["Own", ("test", ["model", None])]


def make(**arguments: Any) -> Any:
    return pl.Trainer(accelerator="cpu", logger=False, **arguments)


def test_lightnings_own_sampler_is_switched_for_a_while() -> None:
    """`_accelerator_connector.use_distributed_sampler`: predict would do all samples on each."""
    trainer = make(use_distributed_sampler=False)
    with distributed_sampler(trainer, use=True):
        assert trainer._accelerator_connector.use_distributed_sampler
    assert not trainer._accelerator_connector.use_distributed_sampler


def test_a_tuner_is_told_from_a_fit_and_tuning_inside_of_one_is_refused() -> None:
    """`_early_exit` of its callbacks: trial steps would be saved as the fit's own."""
    finder = pl.callbacks.LearningRateFinder()
    trainer = make(callbacks=[finder])
    assert not is_tuning(trainer)
    with pytest.raises(Exception, match="LearningRateFinder takes steps within a fit"):
        check_tuners(trainer, is_script=True)
    finder._early_exit = True
    assert is_tuning(trainer)
    check_tuners(make(callbacks=[pl.callbacks.EarlyStopping("x")]), is_script=False)


def test_checkpoints_and_loggers_go_on_in_the_folders_where_they_were(tmp_path: Path) -> None:
    """`dirpath`: with another one the best file is forgotten; `_version`: a board a try."""
    loggers = [
        pl.loggers.TensorBoardLogger(tmp_path),
        pl.loggers.CSVLogger(tmp_path, name="first"),
    ]
    callbacks = [pl.callbacks.ModelCheckpoint(dirpath=tmp_path)]
    first = pl.Trainer(accelerator="cpu", logger=loggers, callbacks=callbacks)
    for logger in loggers:
        logger.log_metrics({"loss": 0.1}, step=0)
    loggers[1].log_metrics({"loss": 0.2}, step=1)
    saved = places(first)
    loggers[1].log_metrics({"loss": 0.3, "more": 1}, step=2)
    loggers[1].save()

    again = [
        pl.loggers.TensorBoardLogger(tmp_path / "second"),
        pl.loggers.CSVLogger(tmp_path, name="second"),
    ]
    callbacks = [pl.callbacks.ModelCheckpoint(dirpath="/other")]
    later = pl.Trainer(accelerator="cpu", logger=again, callbacks=callbacks)
    again[1].log_hyperparams({"lr": 1})  # begins a folder of its own
    keep_places(later, saved)
    assert later.checkpoint_callback.dirpath == str(tmp_path)
    assert [logger.log_dir for logger in again] == [logger.log_dir for logger in loggers]
    again[1].log_metrics({"loss": 0.4}, step=2)
    again[1].save()
    rows = Path(again[1].log_dir, "metrics.csv").read_text().splitlines()
    assert rows == ["loss,more,step", "0.1,,0", "0.2,,1", "0.4,,2"]


def test_a_run_at_wandb_goes_on_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """`_id` and `_wandb_init`; W&B itself is not installed here, so nothing of it is asked."""
    monkeypatch.setattr("pytorch_lightning.loggers.wandb._WANDB_AVAILABLE", True)
    first = pl.loggers.WandbLogger(id="abc", log_model=False)
    second = pl.loggers.WandbLogger()
    keep_places(pl.Trainer(logger=second), places(pl.Trainer(logger=first)))
    assert second._wandb_init["id"] == second.version == "abc"
    assert second._wandb_init["resume"] == "allow"


def test_hydras_clock_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`setup_globals` of hydra.core.utils, here a stand-in: Hydra 1.3 asks for OmegaConf < 2.4."""
    package = tmp_path / "hydra" / "core"
    package.mkdir(parents=True)
    (package / "utils.py").write_text(
        "import datetime\n"
        "from omegaconf import OmegaConf\n"
        "def setup_globals():\n"
        "    now = datetime.datetime.now\n"
        "    OmegaConf.register_new_resolver('now', lambda it: now().strftime(it), replace=True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    hold_hydra_clock(datetime(2020, 2, 3, 4, 5, 6).astimezone().timestamp())
    importlib.import_module("hydra.core.utils").setup_globals()
    try:
        made = OmegaConf.create({"dir": "outputs/${now:%Y-%m-%d}/${now:%H-%M-%S}"})
        assert made.dir == "outputs/2020-02-03/04-05-06"
    finally:  # other tests of this process have no Hydra
        OmegaConf.clear_resolver("now")
        for module in ("hydra.core.utils", "hydra.core", "hydra"):
            del sys.modules[module]


def test_how_a_strategy_would_start_processes_is_known() -> None:
    """`_start_method`: a second generation of ranks would wait for ever."""
    assert launch_method(pl.strategies.DDPStrategy(start_method="spawn")) == "spawn"
    assert launch_method(pl.strategies.DDPStrategy()) == "popen"
    assert launch_method(pl.strategies.SingleDeviceStrategy()) == ""
