"""Calls of a script's Trainer, and of what it is given, that surely fail: told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write
from tests.config.test_script_starts import folder

__all__ = ["folder"]

NO_METHOD = "of Lightning's Trainer, which has no such method"
STOP, METRIC = "makes EarlyStopping without monitor, which it needs", 'monitor="val_acc"'
DATA = "makes Data without way and workers, which it needs"
HEAD = """\
import pytorch_lightning as pl
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor
from nets import Net, Data
"""
NETS = """\
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def __init__(self, lr=0.1): super().__init__()
    def training_step(self, batch, _): self.log("loss", 1.0)
    def validation_step(self, batch, _): self.log("val_acc", 1.0)
class Data(pl.LightningDataModule):
    def __init__(self, size, /, way, *, workers): super().__init__()
"""
FIT = "Trainer().fit(Net())"


def refusals(*words: str, arguments: tuple[str, ...] = ()) -> list[str]:
    """Of train.py here."""
    try:
        api.load("train.py", *words, arguments=arguments)
    except ConfigError as error:
        return [
            f"{it.message.removeprefix('train.py: script.path: ')} -> {it.hint}"
            for it in (error, *error.others)
        ]
    return []


def told(folder: Path, code: str, *words: str, arguments: tuple[str, ...] = ()) -> list[str]:
    """Each refusal in one line, as it is shown; none where the script is taken."""
    write(folder, NETS, "nets.py")
    write(folder, "class Trainer: ...\n", "mine.py")
    write(folder, f"{HEAD}{code}\n", "train.py")
    return refusals(*words, arguments=arguments)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "t = Trainer()\nt.train(Net(), 3)",
            f"train.py:6 calls train {NO_METHOD} -> write t.fit(Net(), 3)",
        ),
        (
            "def main():\n    pl.Trainer().evaluate(model=Net())\nmain()",
            f"train.py:6 calls evaluate {NO_METHOD} -> write Trainer(...).validate(model=Net())",
        ),
        (f"t = Trainer()\nif t.logger:\n    t.train(Net())\n{FIT}", ""),
        (f"def old():\n    Trainer().train(Net())\n{FIT}", ""),
        (f"from mine import Trainer\nTrainer().train(Net())\n{FIT}", ""),
        ("class Mine(Trainer):\n    def train(self, *_): self.fit(Net())\nMine().train(1)", ""),
        ("Trainer.train = Trainer.fit\nTrainer().train(Net())", ""),
        (f"t = Trainer()\nt = Net()\nt.train()\n{FIT}", ""),
        (f"net = Net()\nnet.train()\n{FIT}", ""),
    ],
)
def test_a_method_of_another_librarys_trainer_is_told(folder: Path, code: str, said: str) -> None:
    assert told(folder, code) == ([said] if said else [])


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("t = Trainer()\nTrainer.fit(Net(), 3)", "write t.fit(Net(), 3)"),
        ("pl.Trainer.test(Net())", "write pl.Trainer(...).test(Net())"),
        ("Trainer.fit(model=Net())", "write Trainer(...).fit(model=Net())"),
        ("t = Trainer()\nTrainer.fit(t, Net())", ""),
        ("Trainer.fit(pl.Trainer(), Net())", ""),
        ("def make(): return pl.Trainer()\nTrainer.fit(make(), Net())", ""),
        ("Trainer.fit(self=pl.Trainer(), model=Net())", ""),
    ],
)
def test_a_method_of_the_class_and_of_no_object_is_told(folder: Path, code: str, hint: str) -> None:
    said = told(folder, code)
    assert [it.partition(" -> ")[2] for it in said] == ([hint] if hint else [])
    assert not hint or "of the class, and of no object of it" in said[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            "t.fit(Net(), val_loaders=3)",
            "t.fit val_loaders, which Lightning's fit does not take -> write val_dataloaders=3",
        ),
        (
            "t.fit(Net(), train_dataloader=3)",
            "which Lightning's fit does not take -> write train_dataloaders=3",
        ),
        (
            "t.test(Net(), test_dataloaders=3)",
            "Lightning's test does not take -> write dataloaders=3",
        ),
        ("t.fit(Net(), epochs=3)", "does not take -> it takes model, train_dataloaders, val_data"),
        ("t.fit(model=Net(), datamodule=None, ckpt_path=None)", ""),
        ("t.fit(Net(), **{'val_loaders': 3})", ""),
        ("t.validate(Net(), dataloaders=3, verbose=False)", ""),
        ("if t.logger: t.fit(Net(), val_loaders=3)\nt.fit(Net())", ""),
    ],
)
def test_a_keyword_that_a_method_of_the_trainer_does_not_take_is_told(
    folder: Path, call: str, said: str
) -> None:
    found = [it for it in told(folder, f"t = Trainer()\n{call}") if "does not take" in it]
    assert len(found) == bool(said)
    assert not said or (found[0].startswith("train.py:6 gives t.") and said in found[0])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("optimizer.step", "optimizer.step"),
        ("    optimizer.zero_grad", "optimizer.zero_grad"),
        ("loss.backward", "loss.backward"),
        ("self.optimizers().step", "self.optimizers().step"),
        ("step = optimizer.step", ""),
        ("hooks.append(optimizer.step)", ""),
        ("optimizer.step()", ""),
        ("optimizer.param_groups", ""),
    ],
)
def test_a_method_that_is_named_and_not_called_is_told(folder: Path, lines: str, said: str) -> None:
    found = told(
        folder,
        f"{FIT}\ndef train(self, optimizer, loss, hooks):\n    if loss:\n        {lines.strip()}",
    )
    what = f"train.py:8 names {said} and does not call it, which does nothing -> write {said}()"
    assert found == ([what] if said else [])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("torch.optim.Adam(net.parameters, lr=1)", "torch.optim.Adam the method net.parameters"),
        ("AdamW(params=self.net.parameters)", "AdamW the method self.net.parameters"),
        ("SGD(net.named_parameters)", "SGD the method net.named_parameters"),
        ("torch.optim.Adam(net.parameters(), lr=1)", ""),
        ("torch.optim.Adam(self.params, lr=1)", ""),
        ("torch.optim.Adam([{'params': net.parameters()}])", ""),
        ("Wrapper(net.parameters)", ""),
        ("torch.optim.Adam()", ""),
    ],
)
def test_parameters_that_are_not_called_for_an_optimizer_are_told(
    folder: Path, call: str, said: str
) -> None:
    found = told(folder, f"{FIT}\ndef train(self, net):\n    return {call}")
    name = said.rpartition(" ")[2]
    what = f"train.py:7 gives {said} itself, and no parameters -> write {name}()"
    assert found == ([what] if said else [])


@pytest.mark.parametrize(
    ("arguments", "words", "refused"),
    [
        ('accelerator="cpu", precision=16', (), "precision=16), which does not work on a CPU ->"),
        ('precision="16-true"', ("script.accelerator=cpu",), "on a CPU (script.accelerator=cpu)"),
        ('precision="16"', ("script.accelerator=cpu",), "precision='16'), which does not work"),
        ("precision=16", (), ""),
        ('accelerator="gpu", precision=16', (), ""),
        ('precision="bf16-mixed"', ("script.accelerator=cpu",), ""),
        ("precision=given", ("script.accelerator=cpu",), ""),
        ("precision=16", ("script.accelerator=cpu", "script.launcher=none"), ""),
    ],
)
def test_a_precision_that_no_cpu_has_is_told(
    folder: Path, arguments: str, words: tuple[str, ...], refused: str
) -> None:
    said = told(folder, f"given = 32\nTrainer({arguments}).fit(Net())", *words)
    assert len(said) == bool(refused)
    if refused:
        assert said[0].startswith("train.py:6 has Trainer(precision=")
        assert refused in said[0]
        assert said[0].endswith('-> write precision="bf16-mixed", or leave it out')


PARSER = """\
import argparse
p = argparse.ArgumentParser()
p.add_argument("--epochs"%s)
args = p.parse_args()
"""


@pytest.mark.parametrize(
    ("option", "more", "words", "text"),
    [
        ("", "", ("--epochs", "3"), "'3'"),
        ("", "print(args)", ("--epochs=3",), "'3'"),
        (", default='5'", "", (), "'5'"),
        (", default=5", "", ("--epochs", "3"), "'3'"),
        (", default=5", "", (), ""),
        ("", "", (), ""),
        (", type=int", "", ("--epochs", "3"), ""),
        (", type=eval", "", ("--epochs", "3"), ""),
        ("", "args.epochs = int(args.epochs)", ("--epochs", "3"), ""),
        ("", "vars(args)['epochs'] = 3", ("--epochs", "3"), ""),
        ("", "args = args", ("--epochs", "3"), ""),
    ],
)
def test_a_number_of_epochs_that_is_a_text_is_told(
    folder: Path, option: str, more: str, words: tuple[str, ...], text: str
) -> None:
    code = f"{PARSER % option}{more}\nTrainer(max_epochs=args.epochs).fit(Net())"
    said = f"train.py:10 has Trainer(max_epochs=args.epochs), which is the text {text}"
    hint = 'write add_argument("--epochs", type=int)'
    assert told(folder, code, arguments=words) == ([f"{said} -> {hint}"] if text else [])


def test_epochs_that_nothing_counts_may_be_a_text(folder: Path) -> None:
    code = f"{PARSER % ''}Trainer(max_epochs=args.epochs).test(Net(), 3)"
    assert told(folder, code, arguments=("--epochs", "3")) == []
    other = "class Scaler:\n    def fit(self, *_): ...\nScaler().fit(1)\n"
    assert told(folder, f"{other}{code}", arguments=("--epochs", "3")) == []
    quick = code.replace("args.epochs)", "args.epochs, fast_dev_run=True)").replace("test(", "fit(")
    assert told(folder, quick, arguments=("--epochs", "3")) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("c = EarlyStopping()", f"{STOP} -> write EarlyStopping({METRIC})"),
        ("c = EarlyStopping(patience=3)", f"{STOP} -> write EarlyStopping(patience=3, {METRIC})"),
        ("d = Data(1)", f"{DATA} -> write Data(1, way=..., workers=...)"),
        ("c = EarlyStopping('loss')", ""),
        ("c = EarlyStopping(*['loss'])", ""),
        ("c = EarlyStopping(**{'monitor': 'loss'})", ""),
        ("d = Data(1, 2, workers=3)", ""),
        ("make = lambda: EarlyStopping()", ""),
        ("c = LearningRateMonitor()", ""),
        ("try:\n    EarlyStopping()\nexcept TypeError:\n    pass", ""),
    ],
)
def test_an_argument_that_is_needed_is_told(folder: Path, code: str, said: str) -> None:
    assert told(folder, f"{code}\n{FIT}") == ([f"train.py:5 {said}"] if said else [])


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("callbacks=[LearningRateMonitor]", "write LearningRateMonitor()"),
        ("callbacks=EarlyStopping", 'write EarlyStopping(monitor="val_acc")'),
        ("logger=[True, Own]", "write Own()"),
        ("callbacks=[LearningRateMonitor()]", ""),
        ("callbacks=[made]", ""),
        ("callbacks=made", ""),
    ],
)
def test_a_class_among_the_callbacks_is_told(folder: Path, given: str, hint: str) -> None:
    own = "class Own(pl.Callback): ...\nmade = Own()\n"
    said = told(folder, f"{own}Trainer({given}).fit(Net())")
    assert [it.partition(" -> ")[2] for it in said] == ([hint] if hint else [])
    assert not hint or "=...) the class " in said[0]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("logger=False, callbacks=[LearningRateMonitor()]", "leave logger=False out, or Learning"),
        ("logger=False, callbacks=LearningRateMonitor()", "leave logger=False out, or Learning"),
        ("logger=True, callbacks=[LearningRateMonitor()]", ""),
        ("callbacks=[LearningRateMonitor()]", ""),
        ("logger=False, callbacks=[EarlyStopping('loss')]", ""),
        ("logger=False, callbacks=[Own()]", ""),
        ("logger=False, callbacks=made", ""),
        ("logger=False", ""),
        (
            "logger=False, callbacks=[made, LearningRateMonitor()], fast_dev_run=True",
            "leave logger",
        ),
    ],
)
def test_a_callback_that_needs_a_logger_is_told(folder: Path, given: str, hint: str) -> None:
    own = "class Own(pl.Callback): ...\nmade = Own()\n"
    said = told(folder, f"{own}Trainer({given}).fit(Net())")
    assert [it.partition(" -> ")[2].startswith(hint) for it in said] == ([True] if hint else [])


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        ("n = float(sys.argv[1])", (), "reads sys.argv[1], and the script is given no arguments"),
        ("n = Net(lr=sys.argv[2])", ("a",), "reads sys.argv[2], and the script is given 1 argum"),
        ("n = float(sys.argv[1])", ("0.1",), ""),
        ("n = float(sys.argv[0 - 1])", (), ""),
        ("if len(sys.argv) > 1:\n    n = float(sys.argv[1])", (), ""),
        ("n = float(sys.argv[1]) if sys.argv[1:] else 1", (), ""),
        ("if len(sys.argv) < 2:\n    sys.exit('usage')\nn = float(sys.argv[1])", (), ""),
        ("try:\n    n = float(sys.argv[1])\nexcept IndexError:\n    n = 1", (), ""),
        ("sys.argv += ['1']\nn = float(sys.argv[1])", (), ""),
        ("sys.argv[1:] = ['1']\nn = float(sys.argv[1])", (), ""),
    ],
)
def test_a_word_that_is_read_and_not_typed_is_told(
    folder: Path, code: str, words: tuple[str, ...], said: str
) -> None:
    found = told(folder, f"import sys\n{code}\n{FIT}", arguments=words)
    assert len(found) == bool(said)
    assert not said or found[0].startswith(f"train.py:6 {said}")
    assert not said or found[0].endswith(" -> type them behind --: train.py -- VALUE")


def test_all_of_a_script_is_told_at_once(folder: Path) -> None:
    code = (
        't = Trainer(precision=16, callbacks=[EarlyStopping()], accelerator="cpu")\nt.train(Net())'
    )
    lines = [it.partition(" ")[0] for it in told(folder, code)]
    assert lines == ["train.py:5", "train.py:5", "train.py:6"]
