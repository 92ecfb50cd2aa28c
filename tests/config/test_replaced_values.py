"""A list of a file that takes the place of its base's: which classes are gone, in one note."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write

SAVES = "{class_path: pytorch_lightning.callbacks.ModelCheckpoint}"
STOPS = "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: a}}"
OWN = "{_target_: own.Freeze}"


def notes(folder: Path, monkeypatch: pytest.MonkeyPatch, *files: str, word: str = "") -> list[str]:
    """Of files that each build on the one in front of it."""
    monkeypatch.chdir(folder)
    for number, more in enumerate(files):
        base = f"base: {number - 1}.yaml\n" if number else MINIMAL
        write(folder, f"{base}{more}\n", f"{number}.yaml")
    loaded = load(Path(f"{len(files) - 1}.yaml"), [word] if word else [])
    return [it for it in loaded.notes if "replaces the list" in it]


def callbacks(*items: str) -> str:
    return f"trainer: {{callbacks: [{', '.join(items)}]}}"


GONE = "1.yaml:2: trainer.callbacks replaces the list of 0.yaml:5, of which"


@pytest.mark.parametrize(
    ("base", "own", "said"),
    [
        (
            callbacks(SAVES, OWN),
            callbacks(STOPS),
            (
                f"{GONE} ModelCheckpoint, Freeze are gone: write them here as well, if that is"
                " meant to stay"
            ),
        ),
        (
            callbacks(SAVES, STOPS),
            callbacks(STOPS),
            f"{GONE} ModelCheckpoint is gone: write it here as well, if that is meant to stay",
        ),
        (
            "loggers: [csv, tensorboard]",
            "loggers: [tensorboard]",
            (
                "1.yaml:2: loggers replaces the list of 0.yaml:5, of which csv is gone: write it"
                " here as well, if that is meant to stay"
            ),
        ),
        (
            callbacks(SAVES),
            f"trainer: {{callbacks: {STOPS}}}",
            f"{GONE} ModelCheckpoint is gone: write it here as well, if that is meant to stay",
        ),
    ],
)
def test_the_classes_of_the_base_that_are_gone_are_noted_with_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, own: str, said: str
) -> None:
    assert notes(tmp_path, monkeypatch, base, own) == [said]


def test_of_several_files_each_is_named_whose_class_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (callbacks(SAVES), callbacks(OWN), callbacks(STOPS))
    (told,) = notes(tmp_path, monkeypatch, *files)
    assert "list of 0.yaml:5, 1.yaml:2, of which ModelCheckpoint, Freeze are gone" in told
    assert notes(tmp_path, monkeypatch, *files[:2], callbacks(OWN, SAVES)) == []
    word = "trainer.callbacks.0.init_args.monitor=b"
    assert notes(tmp_path, monkeypatch, *files, word=word) == [told]


@pytest.mark.parametrize(
    ("base", "own", "word"),
    [
        (callbacks(SAVES), "trainer: {callbacks: []}", ""),
        (callbacks(SAVES), "trainer: {callbacks: null}", ""),
        (callbacks(SAVES), callbacks(STOPS, SAVES), ""),
        (callbacks(SAVES), callbacks(SAVES.replace("pytorch_lightning", "lightning.pytorch")), ""),
        (callbacks(SAVES), "seed: 1", f"trainer.callbacks=[{STOPS}, {SAVES}]"),
        (callbacks(SAVES), callbacks(STOPS), f"trainer.callbacks=[{STOPS}]"),
        (callbacks(SAVES), "seed: 1", "trainer.callbacks=[]"),
        (callbacks(SAVES), "seed: 1", "trainer.callbacks=null"),
        ("loggers: [csv, tensorboard]", "seed: 1", "loggers=[csv]"),
        ("seed: 1", callbacks(STOPS), ""),
        ("seed: 1", "loggers: [csv]", ""),
        ("slurm: {extra: {a: 1}}", "slurm: {extra: {a: 2}}", ""),
        ("env: {modules: [gcc]}", "env: {modules: [cuda]}", ""),
    ],
)
def test_a_list_that_is_meant_or_lacks_nothing_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, own: str, word: str
) -> None:
    assert notes(tmp_path, monkeypatch, base, own, word=word) == []


TYPED = "command line: trainer.callbacks replaces the list of"


def test_callbacks_that_were_typed_are_noted_with_the_word_that_keeps_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (callbacks(SAVES, OWN), "seed: 1")
    (told,) = notes(tmp_path, monkeypatch, *files, word=f"trainer.callbacks=[{STOPS}]")
    said = f"{TYPED} 0.yaml:5, of which ModelCheckpoint, Freeze are gone: to add to it, write "
    assert told.startswith(said)
    (word,) = shlex.split(told.removeprefix(said))
    assert notes(tmp_path, monkeypatch, *files, word=word) == []
    added = load(Path("1.yaml"), [word]).config.trainer["callbacks"]
    assert [next(iter(it.values())).rpartition(".")[2] for it in added] == [
        "ModelCheckpoint",
        "Freeze",
        "EarlyStopping",
    ]


@pytest.mark.parametrize("word", [f"[{STOPS}]", STOPS])
def test_one_callback_of_the_file_that_is_gone_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    files = (callbacks(OWN), callbacks(STOPS, SAVES))
    (told,) = notes(tmp_path, monkeypatch, *files, word=f"trainer.callbacks={word}")
    assert told.startswith(f"{TYPED} 1.yaml:2, of which ModelCheckpoint is gone: to add to it")


def test_an_element_behind_the_last_is_told_with_the_whole_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, f"{MINIMAL}{callbacks(SAVES)}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, [f"trainer.callbacks.1={STOPS}"])
    (word,) = shlex.split(caught.value.hint.removeprefix("to add to it, write "))
    assert len(load(path, [word]).config.trainer["callbacks"]) == 2
