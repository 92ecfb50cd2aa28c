"""A script's fit that begins with a checkpoint by its path: noted where it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.scripts.absent_checkpoints import INSTEAD
from tests.config.files import write

SCRIPT = """\
import pytorch_lightning as pl
from pytorch_lightning.demos.boring_classes import BoringModel
CKPT = "logs/a/last.ckpt"

def main():
    trainer = pl.Trainer(max_epochs=1)
    trainer.fit(BoringModel(), ckpt_path=CKPT)

if __name__ == "__main__":
    main()
"""
CALL = "trainer.fit(BoringModel(), ckpt_path=CKPT)"


def notes_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str] | None = None
) -> list[str]:
    monkeypatch.chdir(folder)
    text = SCRIPT
    for old, wanted in (new or {}).items():
        assert old in text
        text = text.replace(old, wanted)
    write(folder, text, "train.py")
    config = write(folder, "name: x\nscript: {path: train.py, accelerator: cpu}\n")
    return [it for it in api.load(config).notes if "ckpt_path" in it]


def test_the_folder_that_is_not_there_is_told_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "train.py:7: fit(ckpt_path=...) is logs/a/last.ckpt, and there is no"
    told = f"{said} folder logs, which would be in {tmp_path}: {INSTEAD}"
    assert notes_of(tmp_path, monkeypatch) == [told]
    literal = {CALL: CALL.replace("CKPT", '"logs/a/last.ckpt"'), 'CKPT = "logs/a/last.ckpt"\n': ""}
    assert notes_of(tmp_path, monkeypatch, literal) == [told.replace(":7:", ":6:")]
    (tmp_path / "logs").mkdir()
    (note,) = notes_of(tmp_path, monkeypatch)
    assert note.startswith(f"{said} folder logs/a, which would be in {tmp_path}: ")
    (tmp_path / "logs/a").mkdir()
    (note,) = notes_of(tmp_path, monkeypatch)
    assert note.startswith(f"{said} last.ckpt in logs/a: leave ckpt_path out")


def test_a_file_beside_the_script_and_a_whole_path_are_told_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (note,) = notes_of(tmp_path, monkeypatch, {"logs/a/last.ckpt": "last.ckpt"})
    assert f"there is no last.ckpt in ., which would be in {tmp_path}" not in note
    assert f"there is no last.ckpt in {tmp_path}: " in note
    (note,) = notes_of(tmp_path, monkeypatch, {"logs/a": f"{tmp_path}/gone"})
    assert f"and there is no folder {tmp_path}/gone: leave" in note


@pytest.mark.parametrize(
    "new",
    [
        {"logs/a/last.ckpt": "last"},
        {"logs/a/last.ckpt": "registry:mine"},
        {"logs/a/last.ckpt": "s3://bucket/last.ckpt"},
        {"logs/a/last.ckpt": "train.py"},
        {'"logs/a/last.ckpt"': 'made() or "logs/a/last.ckpt"'},
        {CALL: "trainer.fit(BoringModel())"},
        {CALL: "trainer.fit(BoringModel(), ckpt_path=None)"},
        {CALL: f"if made: {CALL}"},
        {CALL: f"trainer.fit(BoringModel()); {CALL}"},
        {CALL: f'save("logs/a/last.ckpt")\n    {CALL}'},
        {CALL: f'CKPT = "x"\n    {CALL}'},
        {CALL: "trainer.test(BoringModel(), ckpt_path=CKPT)"},
    ],
)
def test_what_may_be_there_by_then_is_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: dict[str, str]
) -> None:
    assert notes_of(tmp_path, monkeypatch, new) == []
