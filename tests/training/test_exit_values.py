"""A script that leaves with its result, as its rank's end is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.plan.plan import ScriptPlan
from hpc_train.runs.ranks import ExitRecord, read_exits
from hpc_train.training.scripts.exit_values import fix_of_exit
from tests.training.test_script_fits import Scripted


def end_of(folder: Path, text: str) -> ExitRecord:
    run = Scripted(folder, "ends")
    (folder / "ends.py").write_text(f"import sys\ndef main(value):\n    return value\n{text}\n")
    run.script = ScriptPlan("ends.py", [])
    assert run.go(1) == [1]
    (record,) = read_exits(run.dir.attempt(0))
    return record


def test_a_float_is_told_as_no_exit_code_with_what_to_write(tmp_path: Path) -> None:
    record = end_of(tmp_path, "sys.exit(main(0.25))")
    fix = "write main(0.25) in place of sys.exit(main(0.25))"
    assert record.fix == f"sys.exit of a float, which is no exit code, counts as 1: {fix}"
    assert record.error == f"SystemExit: 0.25; {record.fix}"
    assert record.where == f"{tmp_path}/ends.py:4"


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ({"loss": 1}, "sys.exit of a dict, which is no exit code, counts as 1: leave the dict"),
        ((1, 2), "sys.exit of a tuple, which"),
        ("no data", ""),
        (3, ""),
        (None, ""),
    ],
)
def test_without_its_text_the_kind_is_told(value: object, fix: str) -> None:
    told = fix_of_exit(SystemExit(value), "")
    assert told.startswith(fix)
    assert bool(told) == bool(fix)


def test_a_text_that_a_call_gives_is_told_as_one_that_may_be_no_error(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("sys.exit(main())\nsys.exit('no data')\n")
    write = "write main() in place of sys.exit(main())"
    told = fix_of_exit(SystemExit("loss 0.3"), f"{file}:1")
    assert told == f"if that is no error, {write}: an exit with a text is one"
    assert fix_of_exit(SystemExit("no data"), f"{file}:2") == ""
    assert fix_of_exit(ValueError("x"), f"{file}:1") == ""
