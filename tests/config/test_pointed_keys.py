"""Keys with points in a file: told where they belong in that file, with their values."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from tests.config.files import MINIMAL, refusal, write

HEAD = "base: base.yaml\nname: e\n"


@pytest.fixture(autouse=True)
def _base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, MINIMAL.replace("nets.Net}", "nets.Net, init_args: {lr: 1}}"), "base.yaml")


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        ("model.init_args.lr: 0.5", "write model: {init_args: {lr: 0.5}}"),
        (
            "model.init_args.lr: 0.5\nmodel.init_args.hidden: 8",
            "write model: {init_args: {lr: 0.5, hidden: 8}}",
        ),
        ("trainer.precision: '16'", "write trainer: {precision: '16'}"),
        (
            "model:\n  init_args:\n    lr: 0.05\nmodel.init_args.lr: 0.5",
            "there is model.init_args.lr on line 5: write 0.5 there",
        ),
        (
            "model:\n  init_args:\n    lr: 0.05\nmodel.init_args.width: 8\nmodel.init_args.n: 2",
            "there is model.init_args on line 4: write below it width: 8, n: 2",
        ),
        (
            "model: {init_args: {lr: 0.05}}\nmodel.init_args.width: 8",
            "there is model.init_args on line 3: write in its braces width: 8",
        ),
        (
            "model:\n  init_args: {lr: 1}\nmodel.init_args.lr: 0.5\nmodel.x.y: 3",
            (
                "there is model.init_args.lr on line 4: write 0.5 there; there is model on line 3:"
                " write below it x: {y: 3}"
            ),
        ),
    ],
)
def test_it_is_told_where_it_belongs_in_its_own_file(lines: str, fix: str) -> None:
    error = refusal(write(Path(), f"{HEAD}{lines}\n", "e.yaml"))
    assert error.hint == f"{fix}; keys with points are for the command line"


def test_what_is_told_is_taken() -> None:
    path = write(Path(), f"{HEAD}model.init_args.lr: 0.5\n", "e.yaml")
    line = refusal(path).hint.removeprefix("write ").partition(";")[0]
    loaded = load(write(Path(), f"{HEAD}{line}\n", "e.yaml"))
    assert loaded.config.model["init_args"] == {"lr": 0.5}


def test_one_of_the_base_is_told_with_its_own_lines() -> None:
    base = Path("base.yaml").read_text()
    write(Path(), f"{base}trainer.max_epochs: 3\n", "base.yaml")
    path = write(Path(), f"{HEAD}trainer: {{precision: 32}}\n", "e.yaml")
    assert refusal(path).hint.startswith("write trainer: {max_epochs: 3};")
