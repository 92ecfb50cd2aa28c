"""Classes of the user's that lack a method without which Python does not make them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.python_text.abstract_methods import lacking
from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write
from tests.config.test_script_trainer_calls import NETS, told

HEAD = (
    "from abc import ABC, ABCMeta, abstractmethod\nfrom pytorch_lightning.loggers import Logger\n"
)
BASE = """\
class Base(ABC):
    @abstractmethod
    def one(self, x: int, *rest, way="a"): ...
    @property
    @abstractmethod
    def two(self) -> int: ...
"""
ONE = "def one(self, x, *rest, way='a'): ..."
LM = "from pytorch_lightning import LightningModule\n"
HYPER = "def log_hyperparams(self, params, *args, **kwargs): ..."
BOTH = f"write {ONE}, and the property two (@property, def two(self): ...)"


@pytest.mark.parametrize(
    ("text", "lacks", "fix"),
    [
        (f"{BASE}class Own(Base): ...", "one and two", BOTH),
        (f"{BASE}class Mine(Base): two = 3\nclass Own(Mine): ...", "one", f"write {ONE}"),
        (f"{BASE}class Own(Base):\n    def one(self): ...\n    two = 3", "", ""),
        (f"{BASE}class Part:\n    one = two = 3\nclass Own(Part, Base): ...", "", ""),
        (
            f"{BASE}class Part:\n    one = 3\nclass Own(Part, Base): ...",
            "two",
            "write the property",
        ),
        (f"{BASE.replace('ABC', 'object')}class Own(Base): ...", "", ""),
        (f"{BASE.replace('ABC', 'metaclass=ABCMeta')}class Own(Base): ...", "one and two", BOTH),
        (f"{BASE}@register\nclass Own(Base): ...", "", ""),
        (f"{BASE}class Own(made_elsewhere(), Base): ...", "", ""),
        (
            "class Own(Logger):\n    def log_metrics(self, metrics, step=None): ...",
            "log_hyperparams, name and version",
            f"write {HYPER}, and the properties name and version (@property, def name(self): ...)",
        ),
        (f"{BASE}class A(Base): ...\nclass B(Base): one = two = 3\nclass Own(A, B): ...", "", ""),
        (f"{LM}{BASE}class Own(LightningModule, Base): ...", "", ""),
        (f"{LM}{BASE}class A(Base, LightningModule): one = 3\nclass Own(A): ...", "two", "write"),
        ("class Own: ...", "", ""),
    ],
)
def test_abstract_methods_that_nobody_gives_are_told(
    tmp_path: Path, text: str, lacks: str, fix: str
) -> None:
    write(tmp_path, f"{HEAD}{text}\n", "parts.py")
    path = [str(tmp_path), *sys.path]
    said, hint = lacking(locate("parts.Own", path), path)
    assert said == (f"lacks {lacks}, without which it cannot be made" if lacks else "")
    assert hint.startswith(fix) if fix else not hint


def test_a_logger_of_a_config_and_of_a_script_is_refused_before_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{HEAD}class Own(Logger):\n    def log_metrics(self, metrics, step=None): ...\n"
    write(tmp_path, own, "mylog.py")
    write(tmp_path, NETS.replace("size, /, way, *, workers", "size=1"), "nets.py")
    file = write(tmp_path, f"{MINIMAL}loggers:\n  - class_path: mylog.Own\n")
    with pytest.raises(ConfigError) as caught:
        check(load(file), workdir=tmp_path)
    assert "loggers.0.class_path: mylog.Own (mylog.py:3) lacks log_hy" in caught.value.message
    monkeypatch.chdir(tmp_path)
    code = "from mylog import Own\nTrainer(logger=Own()).fit(Net())"
    assert told(tmp_path, code)[0].startswith("train.py:6 makes Own, which lacks log_hyperparams")
