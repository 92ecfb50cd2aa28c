"""A script that leaves with the result of its training: a note at submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load

SCRIPT = """\
import sys
import own
from own import evaluate, learn
from torch.distributed.elastic.multiprocessing.errors import record
import click

DECORATOR
def main():
    loss = own.learn()
    if loss is None:
        return 1
    RETURN

if __name__ == "__main__":
    LEAVE
"""
OWN = "def evaluate():\n    metrics = {}\n    return metrics\ndef learn():\n    return 0\n"


def notes(
    folder: Path, returns: str, leave: str = "sys.exit(main())", decorator: str = ""
) -> list[str]:
    text = SCRIPT.replace("RETURN", returns).replace("LEAVE", leave)
    (folder / "train.py").write_text(text.replace("DECORATOR", decorator))
    (folder / "own.py").write_text(OWN)
    (folder / "cfg.yaml").write_text("script: {path: train.py}\n")
    told = notes_on_code(load(folder / "cfg.yaml"), workdir=folder)
    return [it for it in told if "which is no exit code" in it]


@pytest.mark.parametrize(
    ("returns", "shown"),
    [
        ("return loss.item()", "loss.item()"),
        ("return loss", "loss"),
        ("return float(loss)", "float(loss)"),
        ("return best_acc", "best_acc"),
        ("return {'loss': loss}", "{'loss': loss}"),
        ("return loss, 3", "(loss, 3)"),
        ("with open('a') as file:\n        return 0.5", "0.5"),
    ],
)
def test_a_result_is_noted_with_what_to_write(tmp_path: Path, returns: str, shown: str) -> None:
    said = f"train.py:15 leaves with what main returns ({shown}), which is no exit code and"
    fix = "write main() in place of sys.exit(main())"
    wanted = f"{said} counts as 1: the run would end as failed; {fix}"
    (told,) = notes(tmp_path, returns)
    line = 15 + returns.count("\n")
    assert told == wanted.replace(":15", f":{line}")


@pytest.mark.parametrize(
    ("leave", "write"),
    [
        ("exit(main())", "write main() in place of exit(main())"),
        ("raise SystemExit(main())", "write main() in place of raise SystemExit(main())"),
        ("sys.exit(evaluate())", "write evaluate() in place of sys.exit(evaluate())"),
    ],
)
def test_each_way_to_leave_is_seen(tmp_path: Path, leave: str, write: str) -> None:
    (told,) = notes(tmp_path, "return loss", leave)
    assert told.endswith(f"; {write}")


def test_a_decorator_that_hands_the_result_on_is_seen_through(tmp_path: Path) -> None:
    assert len(notes(tmp_path, "return loss", decorator="@record")) == 1


@pytest.mark.parametrize(
    ("returns", "leave", "decorator"),
    [
        ("return 0", "sys.exit(main())", ""),
        ("return", "sys.exit(main())", ""),
        ("print(loss)", "sys.exit(main())", ""),
        ("return loss > 3", "sys.exit(main())", ""),
        ("return int(loss > 3)", "sys.exit(main())", ""),
        ("return (loss > 3).item()", "sys.exit(main())", ""),
        ("return status", "sys.exit(main())", ""),
        ("return 'no data'", "sys.exit(main())", ""),
        ("yield 1\n    return loss", "sys.exit(main())", ""),
        ("return loss", "main()", ""),
        ("return loss", "sys.exit(learn())", ""),
        ("return loss", "sys.exit(0 if main() < 3 else 1)", ""),
        ("return loss", "sys.exit(main())", "@click.command()"),
    ],
)
def test_what_is_an_exit_code_or_may_be_one_is_not_told(
    tmp_path: Path, returns: str, leave: str, decorator: str
) -> None:
    assert notes(tmp_path, returns, leave, decorator) == []
