"""Arguments that a script surely gives a class that does not take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import write
from tests.config.test_script_starts import folder, said_of

__all__ = ["folder"]

HEAD = "import pytorch_lightning as pl\nfrom parts import Net, Open, Plain\n"
PARTS = (
    "import pytorch_lightning as pl\n"
    "class Net(pl.LightningModule):\n"
    "    def __init__(self, lr=0.1, hidden=16): super().__init__()\n"
    "class Open(pl.LightningModule):\n"
    "    def __init__(self, lr=0.1, **more): super().__init__()\n"
    "class Plain(pl.LightningModule): ...\n"
)
FIT = "pl.Trainer().fit(Net())\n"
MAIN = "if __name__ == '__main__':\n    main()\n"
NET, NOT = "train.py:3 gives Net the argument", ", which it does not take"
OWN = "class Data(pl.LightningDataModule):\n    def __init__(self, size): super().__init__()\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("pl.Trainer().fit(Net(learning_rate=1))", f"{NET} learning_rate{NOT} -> it takes lr, hid"),
        (
            "pl.Trainer(gradient_clip=1.0).fit(Net())",
            f"train.py:3 gives pl.Trainer the argument gradient_clip{NOT} -> did you mean 'gradien",
        ),
        (
            "pl.Trainer(gradient_clip=1.0, devcies=2).fit(Net())",
            f"train.py:3 gives pl.Trainer the arguments gradient_clip, devcies{NOT} -> gradient_cl",
        ),
        (
            f"def main():\n    Net(hiden=1)\n    {FIT}{MAIN}",
            "train.py:4 gives Net the argument hiden",
        ),
        (f"{OWN}pl.Trainer().fit(Net(), Data(sizes=3))", "train.py:5 gives Data the argument"),
        ("pl.Trainer().fit(Plain(lr=3))", f"train.py:3 gives Plain the argument lr{NOT} -> it ta"),
        ("pl.Trainer().fit(Net(lr=1, hidden=3))", ""),
        ("pl.Trainer(max_epochs=1, logger=False).fit(Net(**{'learning_rate': 1}))", ""),
        ("pl.Trainer().fit(Open(learning_rate=1))", ""),
        (f"def old(): return Net(learning_rate=1)\n{FIT}", ""),
        (f"if len(Net.__doc__ or ''):\n    Net(learning_rate=1)\n{FIT}", ""),
        (f"try:\n    Net(learning_rate=1)\nexcept TypeError:\n    pass\n{FIT}", ""),
        (f"from functools import partial\nmake = lambda: Net(learning_rate=1)\n{FIT}", ""),
        ("Net = dict\npl.Trainer().fit(Open(Net(learning_rate=1)))", ""),
        (f"import sys\nif len(sys.argv) > 9: sys.exit()\n{FIT}Net(learning_rate=1)", ""),
        ("Net.__init__ = lambda self, **_: None\npl.Trainer().fit(Net(learning_rate=1))", ""),
        (
            "from pytorch_lightning import Trainer\nclass Trainer(Trainer): 1\nTrainer(x=1).fit(1)",
            "",
        ),
        ("from others import Net\npl.Trainer().fit(Net(learning_rate=1))", ""),
        ("pl.Trainer = open\npl.Trainer(mine=1).fit(Net())", ""),
        ("class Trainer(pl.Trainer): ...\nTrainer(mine=1).fit(Net())", ""),
    ],
)
def test_an_argument_that_a_class_does_not_take_is_told(folder: Path, code: str, said: str) -> None:
    write(folder, PARTS, "parts.py")
    write(folder, PARTS.replace("lr", "learning_rate"), "others.py")
    text = said_of(folder, f"{HEAD}{code}\n")
    assert text.startswith(said) if said else text == ""
