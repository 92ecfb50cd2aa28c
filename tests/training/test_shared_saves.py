"""The path of what a rank saves, of whatever torch.save is given."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hpc_train.runs.layout import AttemptDir
from hpc_train.training.scripts.shared_saves import SharedSaves, path_saved_to


def test_a_path_is_told_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = str(tmp_path / "out/optimizer.bin")
    for given in ("out/optimizer.bin", Path("out/optimizer.bin"), tmp_path / "out/optimizer.bin"):
        assert path_saved_to(given) == wanted
    with Path("net.pt").open("wb") as stream:
        assert path_saved_to(stream) == str(tmp_path / "net.pt")
    assert path_saved_to(io.BytesIO()) == ""


def test_two_ranks_that_save_to_a_path_object_are_told_its_folder(tmp_path: Path) -> None:
    (tmp_path / "attempt").mkdir()
    attempt, target = AttemptDir(tmp_path / "attempt"), tmp_path / "out" / "net.pt"
    target.parent.mkdir()
    for rank in (0, 1):
        saves = SharedSaves(attempt, rank=rank, node="n1")
        saves.saving(target)
        SharedSaves(attempt, rank=rank, node="n1").saving(tmp_path / f"rank{rank}" / "net.pt")
    assert saves.told().startswith(f"WARNING: ranks 0 and 1 both write {target}: ")
