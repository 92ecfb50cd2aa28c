"""`args.NAME` that the script's own parser does not give is told before the queue."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from hpc_train.training.rank_failure import failure_of
from tests.config.files import write

HEAD = """\
import argparse
import pytorch_lightning as pl
from nets import Net
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--max-epochs", "-e", type=int, default=3)
parser.add_argument("--n", dest="layers", type=int, default=3)
"""
NETS = """\
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def __init__(self, lr=0.1, **more): super().__init__()
"""
ARGS = "args = parser.parse_args()\n"
FIT = "pl.Trainer().fit(Net(lr={}))\n"
MAIN = "if __name__ == '__main__':\n    main({})\n"
GET = f"def get():\n    {ARGS}"
BODY = "    pl.Trainer().fit(Net(lr=args.learning_rate))\n"


def said_of(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    monkeypatch.chdir(folder)
    write(folder, NETS, "nets.py")
    write(folder, HEAD + text, "train.py")
    try:
        api.load("train.py")
    except ConfigError as error:
        return f"{error.message.removeprefix('train.py: script.path: ')} -> {error.hint}"
    return ""


RATE = "reads args.learning_rate, which its parser does not give -> write args.lr, or add_argument("


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ARGS + FIT.format("args.learning_rate"), 9),
        (f"def main():\n    {ARGS}{BODY}{MAIN.format('')}", 10),
        (f"def main(args):\n{BODY}{MAIN.format('parser.parse_args()')}", 0),  # not looked at
        (f"{ARGS}def main(args):\n{BODY}{MAIN.format('args')}", 10),
        (f"{ARGS}def main(n, args=None):\n{BODY}{MAIN.format('1, args=args')}", 10),
        (f"def get():\n    return parser.parse_args()\nargs = get()\n{BODY[4:]}", 11),
        (
            f"def get():\n    {ARGS}    return args\ndef main():\n    args = get()\n{BODY}main()\n",
            13,
        ),
        (f"{ARGS}print(vars(args), args)\nNet(**vars(args))\n{BODY[4:]}", 11),
        (f"{ARGS}class Own:\n    def run(self, *args): ...\n{BODY[4:]}", 11),
    ],
)
def test_a_name_that_each_run_reads_is_refused_with_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int
) -> None:
    said = said_of(tmp_path, monkeypatch, text)
    assert said.startswith(f"train.py:{line} {RATE}") if line else said == ""


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("epochs", "write args.max_epochs, or add_argument("),
        ("n", "args has layers, lr, max_epochs; "),
        ("e", "args has layers, lr, max_epochs; "),
        ("max_epoch", "did you mean 'max_epochs'? or add_argument("),
        ("zzz", 'args has layers, lr, max_epochs; write add_argument("--zzz", ...)'),
    ],
)
def test_of_other_names_the_near_one_or_all_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fix: str
) -> None:
    said = said_of(tmp_path, monkeypatch, ARGS + FIT.format(f"args.{name}"))
    assert fix in said
    assert f"reads args.{name}," in said


LATE = FIT.format("args.learning_rate")


@pytest.mark.parametrize(
    "text",
    [
        ARGS + FIT.format("args.lr, n=args.layers, e=args.max_epochs"),
        f"{ARGS}args.learning_rate = args.lr\n{LATE}",
        f"{ARGS}setattr(args, 'learning_rate', 1)\n{LATE}",
        f"{ARGS}vars(args).update(learning_rate=1)\n{LATE}",
        f"{ARGS}more = vars(args)\nmore['learning_rate'] = 1\n{LATE}",
        f"{ARGS}args.__dict__['learning_rate'] = 1\n{LATE}",
        f"from nets import prepare\n{ARGS}prepare(args)\n{LATE}",
        f"def prepare(all): all.learning_rate = 1\n{ARGS}prepare(args)\n{LATE}",
        f"def prepare(args): args.learning_rate = 1\n{ARGS}prepare(args)\n{LATE}",
        f"{ARGS}other = args\nother.learning_rate = 1\n{LATE}",
        f"{ARGS}kept = [args]\nkept[0].learning_rate = 1\n{LATE}",
        f"{ARGS}if args.lr: {LATE}",
        f"{ARGS}print(args.learning_rate if hasattr(args, 'learning_rate') else 1)\n",
        f"{ARGS}try:\n    {LATE}except AttributeError: pass\n",
        f"from nets import add\nmore = parser.add_argument_group()\nadd(more)\n{ARGS}{LATE}",
        f"parser.set_defaults(learning_rate=1)\n{ARGS}{LATE}",
        f"args, _ = parser.parse_known_args()\n{LATE}",
        f"args = parser.parse_args(namespace=Net)\n{LATE}",
        f"{ARGS}args = Net(args)\n{LATE}",
        f"def main(args):\n{BODY}{ARGS}main(Net())\nmain(args)\n",
        f"class Own:\n    args = parser.parse_args()\n    args.learning_rate = 1\n{ARGS}{LATE}",
        f"{GET}    if 1: return args\n    return args\nown = get()\nown.learning_rate = 1\n{LATE}",
    ],
)
def test_what_may_be_there_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert "reads args" not in said_of(tmp_path, monkeypatch, text)


def test_of_a_run_that_fails_so_the_name_is_told_as_well() -> None:
    args = argparse.Namespace(lr=0.1, epochs=3)
    with pytest.raises(AttributeError) as caught:
        print(args.learning_rate)
    fix = 'write args.lr, or add_argument("--learning_rate", ...)'
    assert failure_of(caught.value).fix == fix
