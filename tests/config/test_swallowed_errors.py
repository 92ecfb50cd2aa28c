"""A loop whose errors an `except` swallows: a note at submission."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load

HEAD = """\
import sys, traceback, logging, argparse, torch, own
import torch.distributed as dist
parser = argparse.ArgumentParser()
logger = logging.getLogger(__name__)
def learn(batch):
    loss = net(batch).sum()
    loss.backward()
    opt.step()
def tell(error):
    print("failed", error)
def clean_up():
    dist.destroy_process_group()
    sys.exit(1)
"""
IN_A_LOOP = """\
def main():
    for epoch in range(3):
        try:
            for batch in data:
                learn(batch)
        except Exception as e:
            HANDLER
        print(epoch)
if __name__ == "__main__":
    main()
"""
AROUND = """\
def train():
    for batch in data:
        learn(batch)
def main():
    if not data:
        sys.exit("no data")
    try:
        train()
    except Exception as e:
        HANDLER
    AFTER
if __name__ == "__main__":
    LEAVE
"""
ALONE = """\
try:
    for batch in data:
        net(batch).sum().backward()
        opt.step()
except CAUGHT:
    HANDLER
AFTER
"""


def notes(
    folder: Path,
    text: str,
    handler: str = "print(e)",
    caught: str = "Exception as e",
    after: str = "pass",
    leave: str = "main()",
) -> list[str]:
    lines = []
    for line in text.splitlines():
        pad = line[: len(line) - len(line.lstrip())]
        bare = line.strip().replace("CAUGHT", caught).replace("AFTER", after)
        bare = bare.replace("HANDLER", handler).replace("LEAVE", leave)
        lines.append(textwrap.indent(bare, pad))
    (folder / "train.py").write_text(HEAD + "\n".join(lines) + "\n")
    if not (folder / "own.py").exists():
        (folder / "own.py").write_text("")
    (folder / "cfg.yaml").write_text("script: {path: train.py}\n")
    told = notes_on_code(load(folder / "cfg.yaml"), workdir=folder)
    return [it for it in told if "catches every error" in it]


def said(line: int, at: int, file: str = "train.py") -> str:
    return (
        f"{file}:{line} catches every error of the training (line {at}) and raises none again: the"
        " script would end with exit code 0, however far it came; write `raise` at the end of that"
        " except block"
    )


@pytest.mark.parametrize(
    "handler",
    [
        "print('training failed:', e); return",
        "traceback.print_exc()\nreturn None",
        "logger.exception('failed'); dist.destroy_process_group(); return",
        "tell(e); return",
        "if dist.get_rank() == 0:\n    print(e)\nreturn",
        "break",
    ],
)
def test_one_that_leaves_the_loop_is_noted(tmp_path: Path, handler: str) -> None:
    assert notes(tmp_path, IN_A_LOOP, handler) == [said(19, 18)]


@pytest.mark.parametrize("leave", ["main()", "sys.exit(main())"])
def test_one_around_the_training_is_noted(tmp_path: Path, leave: str) -> None:
    assert notes(tmp_path, AROUND, leave=leave) == [said(22, 21)]


@pytest.mark.parametrize("caught", ["Exception as e", "", "(ValueError, Exception) as e"])
def test_one_without_a_function_is_noted(tmp_path: Path, caught: str) -> None:
    assert notes(tmp_path, ALONE, "pass", caught) == [said(18, 16)]


def test_one_in_a_module_of_its_own_is_noted_there(tmp_path: Path) -> None:
    body = AROUND.partition("if __name__")[0].replace("HANDLER", "print(e)").replace("AFTER", "")
    (tmp_path / "own.py").write_text("from train import learn\n" + body.replace("sys.", ""))
    assert notes(tmp_path, "own.main()") == [said(10, 9, "own.py")]


@pytest.mark.parametrize(
    "handler",
    [
        "print(e); raise",
        "raise RuntimeError('failed') from e",
        "sys.exit(1)",
        "print(e); clean_up(); return",
        "parser.error(str(e)); return",
        "continue",
        "print(e)",  # goes on with the next epoch
        "torch.save(net.state_dict(), 'last.pt'); return",
        "own.handle(e); return",
        "self.failed = True; return",
        "return 1",
        "return False",
    ],
)
def test_one_that_goes_on_or_tells_of_it_is_not(tmp_path: Path, handler: str) -> None:
    assert notes(tmp_path, IN_A_LOOP, handler) == []


@pytest.mark.parametrize(
    ("handler", "after", "leave"),
    [
        ("failed = e", "sys.exit(1 if failed else 0)", "main()"),
        ("print(e)", "sys.exit(int(not done))", "main()"),
        ("print(e)", "return model", "sys.exit(0 if main() else 1)"),
        ("print(e)", "pass", "sys.exit(0 if main() else 1)"),
        ("print(e)", "if not finished: raise SystemExit(3)", "main()"),
    ],
)
def test_nor_one_whose_script_may_end_otherwise(
    tmp_path: Path, handler: str, after: str, leave: str
) -> None:
    assert notes(tmp_path, AROUND, handler, after=after, leave=leave) == []


@pytest.mark.parametrize(
    "caught",
    [
        "KeyboardInterrupt",
        "StopIteration",
        "torch.cuda.OutOfMemoryError",
        "(RuntimeError, ValueError)",
    ],
)
def test_nor_one_of_a_kind_of_its_own(tmp_path: Path, caught: str) -> None:
    assert notes(tmp_path, ALONE, "pass", caught) == []


EACH_BATCH = """\
def one(batch):
    try:
        learn(batch)
    except Exception as e:
        print(e)
for batch in data:
    one(batch)
"""
EACH_TRIAL = """\
def trial(lr):
    try:
        learn(lr)
    except Exception as e:
        print(e)
def every():
    trial(1)
for lr in (1, 2):
    every()
"""
NO_TRAINING = """\
def train():
    learn(1)
try:
    net.train()
except Exception as e:
    print(e)
"""
BEHIND_IT = """\
learn(1)
try:
    own.send("done")
except Exception as e:
    print(e)
"""


@pytest.mark.parametrize("text", [EACH_BATCH, EACH_TRIAL, NO_TRAINING, BEHIND_IT])
def test_nor_what_is_no_training_as_a_whole(tmp_path: Path, text: str) -> None:
    assert notes(tmp_path, text) == []
