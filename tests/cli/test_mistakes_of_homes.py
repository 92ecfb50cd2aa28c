"""What stands in another key's place, and names that nothing has, are told where they belong."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpc_train
from hpc_train.errors import ConfigError
from tests.cli.mistaken import CONFIG, project, refused

__all__ = ["project"]

DATA = "data: {class_path: nets.Data}\n"
LOGS = """\
import pytorch_lightning as pl
class Logs(pl.LightningModule):
    def training_step(self, batch, index):
        self.log("loss", batch.mean(), on_epoch=True)
        return batch.mean()
    def validation_step(self, batch, index):
        {log}
    def configure_optimizers(self): ...
class Validated(pl.LightningDataModule):
    def train_dataloader(self): ...
    def val_dataloader(self): ...
"""


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("trainer", "{max_epochs: 1}"),
        ("trainer", "\n  max_epochs: 1"),  # its keys stand where they stood
        ("loggers", "[csv]"),
        ("slurm", "{nodes: 1}"),
    ],
)
@pytest.mark.parametrize("key", ["data", "model"])
def test_a_section_under_another_is_told_to_begin_its_line_at_the_left(
    hpc, project: Path, key: str, section: str, value: str
) -> None:
    text = CONFIG.replace("trainer:", "" if section == "trainer" else "trainer:")
    held = (
        f"{key}:\n  class_path: nets.{'Data' if key == 'data' else 'Net'}\n  {section}: {value}\n"
    )
    lines = [it for it in text.splitlines() if not it.startswith((f"{key}:", " {acc"))]
    (project / "cfg.yaml").write_text("\n".join(lines) + "\n" + held)
    fix = f"{section} is a key of its own, beside {key}: begin its line in the first column"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, f"{key}.{section} stands beside", fix)


def test_a_plain_word_beside_class_path_is_an_argument(hpc, project: Path) -> None:
    """`seed` and `name` are keys of a config and of many classes."""
    beside = "data: {class_path: nets.Data, seed: 3}\n"
    (project / "cfg.yaml").write_text(CONFIG.replace(DATA, beside))
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "data.seed", "put it under data.init_args")


def test_a_logger_among_the_callbacks_belongs_to_loggers(hpc, project: Path) -> None:
    held = (
        "callbacks: [{class_path: pytorch_lightning.loggers.CSVLogger, init_args: {save_dir: x}}]"
    )
    (project / "cfg.yaml").write_text(CONFIG.replace("max_epochs: 1", f"max_epochs: 1, {held}"))
    fix = "it belongs to loggers, a list beside trainer and not in it"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "CSVLogger is no Callback", fix)


def test_model_and_data_in_each_others_place_are_told_at_once(hpc, project: Path) -> None:
    (project / "one.py").write_text(
        "import pytorch_lightning as pl\n"
        "class Net(pl.LightningModule): ...\nclass Data(pl.LightningDataModule): ...\n"
    )
    text = CONFIG.replace("{class_path: nets.Net, init_args: {width: 3}}", "{class_path: one.Data}")
    (project / "cfg.yaml").write_text(text.replace("nets.Data", "one.Net"))
    fix = "one has Net, and Data belongs to data"
    refused(
        hpc, project, ["submit", "cfg.yaml"], 3, "one.Data (one.py:3) is no Lightn", fix, others=1
    )


@pytest.mark.parametrize("value", [0.1, 3, None])
def test_key_and_value_as_two_arguments_of_load(project: Path, value: object) -> None:
    with pytest.raises(ConfigError, match="is no key=value") as caught:
        hpc_train.load(project / "cfg.yaml", "model.init_args.lr", value)  # type: ignore[arg-type]
    assert caught.value.hint == f"write it without spaces: model.init_args.lr={value}"


@pytest.mark.parametrize(
    ("head", "fix"),
    [
        (
            "import argparse\n",
            "trainer belongs to a config, and fit.py makes its own: change it there",
        ),
        (
            "import hydra, argparse\n",
            "come behind --: hpc-train run fit.py -- trainer.max_epochs=3",
        ),
        ("", "arguments of fit.py come behind --: hpc-train run fit.py -- trainer.max_epochs=3"),
    ],
)
def test_a_key_of_a_config_beside_a_script(hpc, project: Path, head: str, fix: str) -> None:
    (project / "fit.py").write_text(
        f"{head}import pytorch_lightning as pl\npl.Trainer().fit(None)\n"
    )
    words = ["run", "fit.py", "trainer.max_epochs=3"]
    refused(hpc, project, words, 3, "nothing that hpc-train takes beside a script", fix)


def test_the_folder_of_runs_is_no_run(hpc, project: Path) -> None:
    (project / "runs" / "x").mkdir(parents=True)
    said = hpc("rm", "runs")
    assert said.code == 5
    assert "that is a folder of runs: name a run in it; `hpc-train list` shows them" in said.err


@pytest.mark.parametrize(
    ("log", "monitor", "told"),
    [
        ('self.log("val_loss", 1.0)', "val_los", "did you mean 'val_loss'?"),
        ('self.log("val_loss", 1.0)', "vall_loss", "did you mean 'val_loss'?"),
        ('self.log_dict({"val_loss": 1.0, "val_acc": 2.0})', "val_ac", "did you mean 'val_acc'?"),
        ('self.log("val_loss", 1.0)', "val_loss", ""),
        ('self.log("val_loss", 1.0)', "loss_epoch", ""),
        ('self.log("val_loss", 1.0)', "sharpness", 'val_loss, or self.log("sharpness", ...)'),
        ('self.log("val_loss", 1.0)', "validation_loss", "did you mean 'val_loss'?"),
        ('self.log("val_loss", 1.0)', "epoch", ""),  # ModelCheckpoint knows it
        ('self.log(f"val_{index}", 1.0)', "val_los", ""),
        ("self.log_dict(self.metrics())", "val_los", ""),
        ('self.log("val_loss", 1.0); helper(self)', "val_los", ""),
    ],
)
@pytest.mark.parametrize("own", ["", "...", "log = 'of its own'"])
def test_a_monitor_that_nothing_logs_is_a_note(
    hpc, project: Path, log: str, monitor: str, told: str, own: str
) -> None:
    """A callback of the user's own may log it: then one slip from a name is told alone."""
    told = "" if "log" in own and monitor in ("sharpness", "validation_loss") else told
    (project / "nets.py").write_text((project / "nets.py").read_text() + LOGS.format(log=log))
    stops = "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: M}}"
    text = CONFIG.replace(
        "{class_path: nets.Net, init_args: {width: 3}}", "{class_path: nets.Logs}"
    ).replace("nets.Data", "nets.Validated")
    (project / "own.py").write_text(
        f"from pytorch_lightning import Callback\nclass Own(Callback): {own or '...'}\n"
    )
    callbacks = f"{stops}, {{class_path: own.Own}}" if own else stops
    text = text.replace("max_epochs: 1", f"max_epochs: 1, callbacks: [{callbacks}]")
    (project / "cfg.yaml").write_text(text.replace("monitor: M", f"monitor: {monitor}"))
    said = hpc("submit", "cfg.yaml", "--dry-run")
    assert said.code == 0, said.err
    notes = [it for it in said.err.splitlines() if "init_args.monitor is" in it]
    assert len(notes) == bool(told)
    if told:
        assert notes[0].startswith("note: cfg.yaml:5: trainer.callbacks.0.init_args.monitor is")
        assert notes[0].endswith(told)


ON_CPUS = "write script.accelerator=cpu in place of trainer.accelerator=cpu"


@pytest.mark.parametrize(
    ("head", "words", "fix"),
    [
        ("import argparse\n", [], ON_CPUS),
        ("", [], ON_CPUS),
        ("import argparse\n", ["trainer.max_epochs=3"], f"{ON_CPUS}; trainer belongs to a config"),
        ("import hydra\n", [], "come behind --: hpc-train run fit.py -- trainer.accelerator=cpu"),
        ("import sys\nprint(sys.argv)\n", [], "fit.py -- trainer.accelerator=cpu"),
    ],
)
def test_cpus_for_a_script_have_a_key_of_their_own(
    hpc, project: Path, head: str, words: list[str], fix: str
) -> None:
    (project / "fit.py").write_text(f"{head}import pytorch_lightning as pl\n")
    typed = ["run", "fit.py", "trainer.accelerator=cpu", *words]
    refused(hpc, project, typed, 3, "nothing that hpc-train takes beside a script", fix)
