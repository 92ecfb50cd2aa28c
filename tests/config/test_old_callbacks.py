"""Callbacks by arguments of Lightning 1's Trainer, and Trainers that are named in other ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import told_of_script

HEAD = "import pytorch_lightning as pl\nfrom pytorch_lightning.callbacks import ModelCheckpoint\n"
OLD = "Lightning 2"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ("checkpoint_callback=best", "write callbacks=[best]"),
        ("checkpoint_callback=ModelCheckpoint(monitor='a')", "[ModelCheckpoint(monitor='a')]"),
        ("early_stop_callback=stop, checkpoint_callback=best", "write callbacks=[stop, best]"),
        ("callbacks=[bar], checkpoint_callback=best", "write callbacks=[bar, best]"),
        ("callbacks=many, checkpoint_callback=best", "write callbacks=[*many, best]"),
        ("checkpoint_callback=False", "write enable_checkpointing=False"),
        ("checkpoint_callback=None", "leave it out"),
        ("checkpoint_callback=args.keep", "[args.keep]; if it is True or False: enable_checkp"),
        ("early_stop_callback=False", "leave it out"),
        ("early_stop_callback=True", "write callbacks=[EarlyStopping(monitor="),
    ],
)
def test_callbacks_of_lightning_1_go_into_the_list(tmp_path: Path, given: str, fix: str) -> None:
    refused, _ = told_of_script(tmp_path, f"{HEAD}pl.Trainer({given})\ngo()\n", about=OLD, gpus=1)
    assert refused is not None
    assert refused[0].startswith("train.py:3 has Trainer(")
    assert fix in refused[1]


def test_two_callbacks_beside_another_argument_are_told_once(tmp_path: Path) -> None:
    call = "pl.Trainer(gpus=2, early_stop_callback=stop, checkpoint_callback=best)\ngo()\n"
    refused, _ = told_of_script(tmp_path, HEAD + call, about=OLD, gpus=1)
    assert refused == (
        (
            "train.py:3 has Trainer(gpus=..., early_stop_callback=..., checkpoint_callback=...),"
            " which cannot be here or in Lightning 2"
        ),
        (
            "gpus: leave it out, and submit the script with --gpus N;"
            " early_stop_callback, checkpoint_callback: write callbacks=[stop, best]"
        ),
    )


BRANCHES = f"""{HEAD}
def train(args):
    if args.kind:
        trainer = pl.Trainer(gpus=1, checkpoint_callback=best)
    else:
        trainer = pl.Trainer(gpus=2)
    trainer.fit(args.model)

parser.set_defaults(func=train)
args = parser.parse_args()
args.func(args)
"""


def test_trainers_of_all_branches_are_noted(tmp_path: Path) -> None:
    refused, notes = told_of_script(tmp_path, BRANCHES, about=OLD, gpus=1)
    gpus = "leave it out, and submit the script with --gpus N"
    first = "train.py:6 has Trainer(gpus=..., checkpoint_callback=...), which Lightning 2 refuses"
    assert refused is None
    assert notes == [
        f"{first}: gpus: {gpus}; checkpoint_callback: write callbacks=[best]",
        f"train.py:8 has Trainer(gpus=...), which Lightning 2 refuses: {gpus}",
    ]


@pytest.mark.parametrize(
    "text",
    [
        BRANCHES.replace("gpus=2", "devices=2"),  # as by the version
        BRANCHES.replace("gpus=2", "**options"),
        BRANCHES.replace("pl.Trainer", "Trainer"),
    ],
)
def test_a_trainer_that_may_be_made_leaves_them_untold(tmp_path: Path, text: str) -> None:
    assert told_of_script(tmp_path, text, about=OLD, gpus=1) == (None, [])


@pytest.mark.parametrize(
    ("line", "trainer"),
    [
        ("from pytorch_lightning.trainer import Trainer", "Trainer"),
        ("from pytorch_lightning.trainer.trainer import Trainer as T", "T"),
        ("from lightning.pytorch.trainer import Trainer", "Trainer"),
        ("from pytorch_lightning import trainer", "trainer.Trainer"),
        ("from pytorch_lightning.trainer import trainer as t", "t.Trainer"),
        ("import pytorch_lightning.trainer as t", "t.Trainer"),
        ("import pytorch_lightning.trainer", "pytorch_lightning.trainer.Trainer"),
        ("import pytorch_lightning.callbacks", "pytorch_lightning.Trainer"),
        ("from pytorch_lightning import *", "Trainer"),
        ("import pytorch_lightning as pl\nT = pl.Trainer", "T"),
    ],
)
@pytest.mark.parametrize("call", ["(gpus=2)", ".add_argparse_args(p)"])
def test_trainers_by_other_names_are_refused_as_well(
    tmp_path: Path, line: str, trainer: str, call: str
) -> None:
    refused, _ = told_of_script(tmp_path, f"{line}\n{trainer}{call}\ngo()\n", about=OLD, gpus=1)
    assert refused is not None
    assert "cannot be here or in Lightning 2" in refused[0]


@pytest.mark.parametrize(
    "text",
    [
        "from pytorch_lightning import *\nclass Trainer: ...\nTrainer(gpus=2)",
        "from mine.trainer import Trainer\nTrainer(gpus=2)",
        "from pytorch_lightning.callbacks import *\nTrainer(gpus=2)",
        "import transformers as pl\npl.Trainer(gpus=2)",
    ],
)
def test_other_trainers_are_taken(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "trainer.py").write_text("class Trainer: ...\n")
    refused, notes = told_of_script(tmp_path, f"{text}\ngo()\n", about=OLD, gpus=1)
    assert notes == []
    assert refused is None or "transformers" in refused[0]
