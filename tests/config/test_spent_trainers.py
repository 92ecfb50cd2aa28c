"""A script's Trainer that fits several models one after another: a note at submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load

HEAD = """\
import pytorch_lightning as pl
from pytorch_lightning.callbacks import EarlyStopping
from own import Net, folds, make
stop = EarlyStopping("val_loss")
trainer = MADE
"""
MADE = "pl.Trainer(max_epochs=3)"
LOOP = """\
for k in range(5):
    model = Net()
    trainer.fit(model, folds(k))
"""
OF_MODELS = """\
for model in [Net(1), Net(2)]:
    trainer.fit(model=model)
"""
MADE_THERE = """\
k = 0
while k < 3:
    trainer.fit(Net())
    k += 1
"""
IN_A_FUNCTION = """\
def one(k, runner):
    model = Net()
    runner.fit(model, folds(k))
for k in range(5):
    one(k, trainer)
"""
A_ROW = """\
trainer.fit(Net(1))
trainer.fit(Net(2))
"""
TRIED_AGAIN = """\
for size in (64, 32, 16):
    try:
        model = Net(size)
        trainer.fit(model)
        break
    except RuntimeError:
        pass
"""
A_BRANCH = """\
if folds:
    trainer.fit(Net(1))
else:
    trainer.fit(Net(2))
"""
INSIDE = """\
def one(k):
    runner = pl.Trainer(max_epochs=3)
    runner.fit(Net())
for k in range(5):
    one(k)
    own = pl.Trainer(max_epochs=3)
    own.fit(Net())
"""
COUNTS = "of line 5, which counts its epochs over all fits: from its max_epochs on no fit takes a"
COUNTS += " step; write"


def notes(folder: Path, text: str, made: str = MADE) -> list[str]:
    (folder / "own.py").write_text("def Net(*given): pass\n\nmake = folds = Net\n")
    (folder / "train.py").write_text(HEAD.replace("MADE", made) + text)
    (folder / "cfg.yaml").write_text("script: {path: train.py}\n")
    told = notes_on_code(load(folder / "cfg.yaml"), workdir=folder)
    return [it for it in told if "no fit takes a step" in it]


@pytest.mark.parametrize(
    ("text", "line", "loop"),
    [(LOOP, 8, 6), (OF_MODELS, 7, 6), (MADE_THERE, 8, 7), (IN_A_FUNCTION, 8, 9)],
)
def test_one_that_fits_in_a_loop_is_noted(tmp_path: Path, text: str, line: int, loop: int) -> None:
    says = f"train.py:{line} fits a new model in a loop with one Trainer {COUNTS}"
    fix = f"line 5 (trainer = ...) inside of the loop of line {loop}"
    assert notes(tmp_path, text) == [f"{says} {fix}"]


def test_one_that_fits_one_model_again_and_again_is_noted(tmp_path: Path) -> None:
    text = "model = Net()\nfor k in range(5):\n    trainer.fit(model, folds(k))\n"
    (said,) = notes(tmp_path, text)
    assert said.startswith(f"train.py:8 fits in a loop with one Trainer {COUNTS}")


def test_a_second_fit_behind_the_first_is_noted(tmp_path: Path) -> None:
    says = f"train.py:7 fits a second time with the Trainer {COUNTS}"
    assert notes(tmp_path, A_ROW) == [f"{says} trainer = {MADE} in front of line 7"]


def test_callbacks_that_are_made_before_go_with_it(tmp_path: Path) -> None:
    made = MADE.replace("3)", "3, callbacks=[stop])")
    assert notes(tmp_path, LOOP, made)[0].endswith(", and what makes its callbacks with it")


def test_the_limit_is_named_as_it_is_given(tmp_path: Path) -> None:
    (said,) = notes(tmp_path, LOOP, "pl.Trainer(max_steps=30)")
    assert "counts its steps over all fits: from its max_steps on" in said


@pytest.mark.parametrize(
    "text",
    [
        INSIDE,
        A_BRANCH,
        TRIED_AGAIN,
        "trainer.fit(Net())\ntrainer.test(Net())\n",
        LOOP + "    trainer.fit_loop.max_epochs += 3\n",
        LOOP.replace("fit(model", "validate(model"),
        LOOP.replace("folds(k))", "folds(k), ckpt_path='last')"),
        "trainer = make(5)\n" + LOOP,
        "for trainer in make(5):\n    trainer.fit(Net())\n",
        "model = Net()\nfor k in range(5):\n    trainer.fit(model, folds(k))\n    make(trainer)\n",
        LOOP + "    break\n",
        LOOP.replace("trainer.fit", "make(k).fit"),
    ],
)
def test_one_for_each_model_is_said_nothing_of(tmp_path: Path, text: str) -> None:
    assert notes(tmp_path, text) == []


@pytest.mark.parametrize(
    "made",
    ["pl.Trainer(max_epochs=-1)", "pl.Trainer(max_time='00:01:00')", "pl.Trainer(**make())"],
)
def test_one_without_a_known_end_is_said_nothing_of(tmp_path: Path, made: str) -> None:
    assert notes(tmp_path, LOOP, made) == []
