"""Arguments of a ModelCheckpoint that somebody wrote into `checkpoint`, or a section like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import MINIMAL, refusal, write

CLASS = "class_path: pytorch_lightning.callbacks.ModelCheckpoint"
STOPS = """trainer:
  callbacks:
  - {class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: val_loss}}
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("monitor: val_acc", "checkpoint.monitor is no key of hpc-train"),
        (
            "monitor: val_acc, mode: max",
            "checkpoint.monitor is no key of hpc-train, and mode is none",
        ),
        (
            "mode: max, save_top_k: 2, every_n_epochs: 1",
            "checkpoint.mode is no key of hpc-train, and save_top_k, every_n_epochs are none",
        ),
        (
            "filename: best, save_last: true, save_weights_only: true",
            "checkpoint.filename is no key of hpc-train, and save_last, save_weights_only are none",
        ),
        ("mode: max", "checkpoint.mode is no key of hpc-train"),
        ("dirpath: models", "checkpoint.dirpath is no key of hpc-train"),
        (
            "save_on_train_epoch_end: true",
            "checkpoint.save_on_train_epoch_end is no key of hpc-train",
        ),
    ],
)
def test_all_of_them_are_told_once_with_the_callback_to_write(
    tmp_path: Path, keys: str, said: str
) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}checkpoint: {{{keys}}}\n"))
    assert error.message == f"cfg.yaml:5: {said}"
    assert error.hint == f"write trainer: {{callbacks: [{{{CLASS}, init_args: {{{keys}}}}}]}}"
    assert error.others == ()


def test_beside_other_callbacks_it_is_to_be_added_and_the_sections_own_keys_stay(
    tmp_path: Path,
) -> None:
    text = f"{MINIMAL}{STOPS}checkpoint: {{keep_last: 2, monitor: val_acc, mode: max}}\n"
    error = refusal(write(tmp_path, text))
    added = f"{{{CLASS}, init_args: {{monitor: val_acc, mode: max}}}}"
    assert error.hint == f"add {added} to trainer.callbacks"


def test_a_trainer_without_callbacks_gets_them(tmp_path: Path) -> None:
    text = f"{MINIMAL}trainer: {{max_epochs: 2}}\ncheckpoint: {{save_top_k: 2}}\n"
    error = refusal(write(tmp_path, text))
    assert (
        error.hint == f"write below trainer: callbacks: [{{{CLASS}, init_args: {{save_top_k: 2}}}}]"
    )


def test_a_model_checkpoint_that_is_there_takes_them(tmp_path: Path) -> None:
    text = f"{MINIMAL}{STOPS}  - {{{CLASS}}}\ncheckpoint: {{monitor: val_acc, mode: max}}\n"
    error = refusal(write(tmp_path, text))
    assert error.hint == "write below trainer.callbacks.1.init_args: monitor: val_acc, mode: max"


@pytest.mark.parametrize("name", ["ckpt", "model_checkpoint", "checkpointing"])
def test_a_section_of_another_name_that_has_only_such_keys_is_the_callback(
    tmp_path: Path, name: str
) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}{name}: {{monitor: val_acc, mode: max}}\n"))
    form = f"{{{CLASS}, init_args: {{monitor: val_acc, mode: max}}}}"
    assert error.message == f"cfg.yaml:5: {name} is no key of hpc-train"
    assert error.hint == f"write trainer: {{callbacks: [{form}]}}"


def test_a_section_of_another_name_with_our_keys_is_checkpoint(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}ckpt: {{every_n_steps: 5}}\n"))
    assert error.hint == "write checkpoint"


@pytest.mark.parametrize(
    "form",
    [
        f"{CLASS}, init_args: {{monitor: val_acc}}",
        "class_path: hooks.Saver",
        "_target_: pytorch_lightning.callbacks.ModelCheckpoint, monitor: val_acc",
    ],
)
@pytest.mark.parametrize("name", ["checkpoint", "model_checkpoint"])
def test_the_callback_as_a_class_in_the_section_is_told_as_a_whole(
    tmp_path: Path, form: str, name: str
) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}{name}: {{{form}}}\n"))
    assert error.hint == f"write trainer: {{callbacks: [{{{form}}}]}}"
    assert error.others == ()


def test_each_so_many_steps_may_be_meant_as_either(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}checkpoint: {{every_n_train_steps: 50}}\n"))
    assert error.hint.startswith("write every_n_steps for what a run goes on from; ")
    assert "init_args: {every_n_train_steps: 50}" in error.hint


def test_what_is_typed_is_told_with_its_place(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, MINIMAL), "checkpoint.mode=max")
    assert error.message == "command line: checkpoint.mode is no key of hpc-train"
    assert error.hint == "write it under init_args of a ModelCheckpoint in trainer.callbacks"


@pytest.mark.parametrize("word", ["max", "min"])
def test_a_mode_at_the_top_is_a_callbacks(tmp_path: Path, word: str) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}mode: {word}\n"))
    assert error.hint == (
        "write it under init_args of the ModelCheckpoint or EarlyStopping that it is for"
    )


def test_another_mode_at_the_top_is_the_sections(tmp_path: Path) -> None:
    assert "did you mean" in refusal(write(tmp_path, f"{MINIMAL}mode: git\n")).hint


@pytest.mark.parametrize(
    ("key", "meant"), [("every_n_step", "every_n_steps"), ("keep_lst", "keep_last")]
)
def test_a_slip_of_a_key_of_the_section_stays_one(tmp_path: Path, key: str, meant: str) -> None:
    error = refusal(write(tmp_path, f"{MINIMAL}checkpoint: {{{key}: 5}}\n"))
    assert error.hint == f"did you mean 'checkpoint.{meant}'?"


def test_a_script_gives_them_to_its_own_callback(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    text = "name: a\nscript: {path: train.py}\ncheckpoint: {monitor: val_acc, save_top_k: 2}\n"
    error = refusal(write(tmp_path, text))
    assert error.hint == (
        "the script gives its callbacks itself: of Lightning,"
        " ModelCheckpoint(monitor='val_acc', save_top_k=2)"
    )


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ("true", "monitor: val_loss, patience: 3"),
        ("{monitor: val_acc, mode: max, patience: 5}", "monitor: val_acc, mode: max, patience: 5"),
    ],
)
def test_a_section_for_early_stopping_is_that_callback(
    tmp_path: Path, given: str, arguments: str
) -> None:
    text = f"{MINIMAL}trainer: {{max_epochs: 2}}\nearly_stopping: {given}\n"
    form = f"{{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {{{arguments}}}}}"
    assert refusal(write(tmp_path, text)).hint == f"write below trainer: callbacks: [{form}]"
