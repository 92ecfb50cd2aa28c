"""A variable of the shell among a script's arguments in a file: noted, as no shell fills it in."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hpc_train import api
from tests.config.files import write


def notes_of(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    monkeypatch.chdir(folder)
    write(folder, "import sys\nprint(sys.argv)\n", "train.py")
    lines = "".join(f"  - {yaml.safe_dump(it, width=999).splitlines()[0]}\n" for it in words)
    text = f"name: x\nscript:\n  path: train.py\n  accelerator: cpu\n  args:\n{lines}"
    return [it for it in api.load(write(folder, text)).notes if "no shell fills" in it]


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("$EPOCHS", 'write its value, or "${oc.env:EPOCHS}" for that of the shell that submits'),
        ("$lr", 'write its value, or "${oc.env:lr}" for that'),
        ("$HOME/data", '"${oc.env:HOME}/data"'),
        ("--lr=$LR", '"--lr=${oc.env:LR}"'),
        ("/scratch/$USER/x", '"/scratch/${oc.env:USER}/x"'),
        ("$SLURM_JOB_ID", 'a rank knows it: os.environ["SLURM_JOB_ID"] in the script'),
    ],
)
def test_a_variable_is_noted_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, fix: str
) -> None:
    (said,) = notes_of(tmp_path, monkeypatch, "--word", word)
    assert f"cfg.yaml:7: script.args.1 is {word}, and no shell fills it in: " in said
    assert fix in said


def test_each_of_several_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(notes_of(tmp_path, monkeypatch, "$A", "--b", "$B", "c", "$C")) == 3


@pytest.mark.parametrize(
    "word",
    ["^foo$", "$", "$5", "5$", "a$b", "pa$$word", "$x$", "$X_{i}$", r"\$EPOCHS", "US$", "$A$"],
)
def test_other_words_with_that_sign_are_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    assert notes_of(tmp_path, monkeypatch, "--word", word) == []


def test_what_is_written_in_its_place_is_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHS", "7")
    assert notes_of(tmp_path, monkeypatch, "${oc.env:EPOCHS}") == []
    assert api.load("cfg.yaml").config.script.args == ["7"]


def test_what_is_typed_was_the_shells_to_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes_of(tmp_path, monkeypatch, "x")
    loaded = api.load("cfg.yaml", arguments=["--epochs", "$EPOCHS"])
    assert loaded.config.script.args == ["--epochs", "$EPOCHS"]
    assert not any("no shell" in it for it in loaded.notes)
