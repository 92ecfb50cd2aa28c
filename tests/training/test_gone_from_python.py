"""Names that Python and NumPy have no more, told where they fail."""

from __future__ import annotations

import numpy as np
import pytest

from hpc_train.training.failures.failure_words import fix_of


def failure_of(line: str) -> BaseException:
    with pytest.raises((AttributeError, ImportError)) as caught:
        exec(line, {})
    return caught.value


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (
            "import inspect; inspect.getargspec(print)",
            "write inspect.getfullargspec: inspect.getargspec is gone since Python 3.11",
        ),
        (
            "from collections import Mapping",
            "write collections.abc.Mapping: collections.Mapping is gone since Python 3.10",
        ),
        ("import cPickle", "write import pickle: cPickle is gone since Python 3.0"),
    ],
)
def test_python_names_are_told_with_those_of_today(line: str, fix: str) -> None:
    assert fix_of(failure_of(line)) == fix


@pytest.mark.skipif(np.__version__ < "1.24", reason="its NumPy has the name")
def test_numpy_names_are_told_with_those_of_today() -> None:
    told = fix_of(failure_of("import numpy as np; np.float(2)"))
    assert told == "write float: numpy.float is gone since NumPy 1.24"


@pytest.mark.parametrize("line", ["import inspect; inspect.getargs_of", "from json import nothing"])
def test_other_names_are_not(line: str) -> None:
    assert "is gone since" not in fix_of(failure_of(line))


@pytest.mark.parametrize("name", ["add_argparse_args", "from_argparse_args"])
def test_a_trainer_of_argparse_options_is_told_with_what_is_written_today(name: str) -> None:
    told = fix_of(failure_of(f"class Trainer: ...\nTrainer.{name}(None)"))
    assert told.startswith("write parser.add_argument(")
