"""Methods that are meant as hooks, under names that nobody calls."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.fit.near_hooks import meant_hook, near_hooks
from hpc_train.config.python_text.class_kind import locate

MODEL, DATA, CALLBACK = "LightningModule", "LightningDataModule", "Callback"


def notes(
    folder: Path, kind: str, *methods: str, base: str = "", below: str = "", class_: str = "It"
) -> list[str]:
    body = "".join(f"    def {it}(self): ...\n" for it in methods)
    head = f"import pytorch_lightning as pl\nclass It({base or f'pl.{kind}'}):\n"
    (folder / "own_hooks.py").write_text(f"{head}{body}{below}")
    path = [str(folder), *sys.path]
    found = locate(f"own_hooks.{class_}", path)
    assert found is not None
    return [*near_hooks(kind, f"own_hooks.{class_}", found, path)]


def test_a_hook_that_differs_by_a_slip_is_told_with_its_place(tmp_path: Path) -> None:
    assert notes(tmp_path, CALLBACK, "on_train_epoch_ends") == [
        (
            "own_hooks.It has an on_train_epoch_ends (own_hooks.py:3), which nothing calls:"
            " on_train_epoch_end may be meant"
        )
    ]
    assert len(notes(tmp_path, CALLBACK, "on_train_ends", "on_fit_begin", "on_fit_end")) == 2


@pytest.mark.parametrize(
    ("kind", "name", "hook"),
    [
        (MODEL, "on_validation_epoch_ends", "on_validation_epoch_end"),
        (MODEL, "on_val_epoch_end", "on_validation_epoch_end"),
        (MODEL, "onTrainEpochEnd", "on_train_epoch_end"),
        (MODEL, "on_training_epoch_begin", "on_train_epoch_start"),
        (MODEL, "on_train_step_end", "on_train_batch_end"),
        (MODEL, "on_epoch_train_end", "on_train_epoch_end"),
        (MODEL, "train_epoch_end", "on_train_epoch_end"),
        (MODEL, "valdation_step", "validation_step"),
        (MODEL, "val_step", "validation_step"),
        (MODEL, "eval_step", "validation_step"),
        (MODEL, "foward", "forward"),
        (DATA, "set_up", "setup"),
        (DATA, "preparedata", "prepare_data"),
        (DATA, "validation_dataloader", "val_dataloader"),
        (DATA, "val_loader", "val_dataloader"),
        (DATA, "val_dataloaders", "val_dataloader"),
        (CALLBACK, "set_up", "setup"),
        (CALLBACK, "on_load_checkpoints", "on_load_checkpoint"),
    ],
)
def test_the_hook_that_is_meant_is_named(kind: str, name: str, hook: str) -> None:
    assert meant_hook(name, kind, sys.path) == hook


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (MODEL, ("save_checkpoint", "load_checkpoint", "step", "train_one", "encode", "loss")),
        (MODEL, ("on_train_epoch_end", "validation_epoch_end", "_setup", "setup_model")),
        (MODEL, ("prepare_batch", "test_model", "predict", "evaluate", "optimizer", "log_images")),
        (DATA, ("prepare_dataset", "make_loader", "train_set", "dataloader", "split", "loader")),
        (CALLBACK, ("exception", "on_log", "on_improvement", "start", "end", "save", "update")),
    ],
)
def test_a_name_of_its_own_is_none(kind: str, names: tuple[str, ...]) -> None:
    assert [meant_hook(it, kind, sys.path) for it in names] == [""] * len(names)


SLIP = "on_train_epoch_ends"


@pytest.mark.parametrize(
    ("base", "below"),
    [
        ("", f"    def on_train_end(self, t, m): self.{SLIP}()\n"),
        ("", "    def on_train_epoch_end(self, t, m): ...\n"),
        ("", f"class Other:\n    def run(self, it): it.{SLIP}()\n"),
        ("", f"for hook in ('{SLIP}',): ...\n"),
        ("", "    def on_train_end(self, t, m): getattr(self, f'{t}s')()\n"),
        ("torch.Other", ""),
        ("pl.Callback, torch.Other", ""),
        ("pl.Callback, metaclass=type", ""),
    ],
)
def test_what_something_may_call_is_not_told(tmp_path: Path, base: str, below: str) -> None:
    assert notes(tmp_path, CALLBACK, SLIP, base=base, below=below) == []


def test_another_file_that_speaks_of_it_may_call_it(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "other.ipynb").write_text(f'"x.{SLIP}()"')
    assert notes(tmp_path, CALLBACK, SLIP) == []
    (tmp_path / "pkg" / "other.ipynb").write_text(f'"x.{SLIP}_too()"')
    assert len(notes(tmp_path, CALLBACK, SLIP)) == 1


@pytest.mark.parametrize("base", ["pl.callbacks.EarlyStopping", "pl.callbacks.ModelCheckpoint"])
def test_a_slip_below_lightnings_own_callback_or_ones_own_base_is_told(
    tmp_path: Path, base: str
) -> None:
    assert len(notes(tmp_path, CALLBACK, SLIP, base=base)) == 1
    below = "class Under(It):\n    def on_fit_end(self): ...\n"
    assert len(notes(tmp_path, CALLBACK, SLIP, below=below, class_="Under")) == 1
    below = "class Under(It):\n    def on_train_epoch_end(self): ...\n"
    assert notes(tmp_path, CALLBACK, SLIP, below=below, class_="Under") == []


def test_a_folder_of_many_files_is_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpc_train.config.fit.near_hooks._MOST_ENTRIES", 0)
    assert notes(tmp_path, CALLBACK, SLIP) == []
