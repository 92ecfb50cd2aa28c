"""Names of Python's own modules and of NumPy that are gone, told before the queue."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hpc_train.config.python_text.gone_names import gone_module, gone_name, numpy_version
from tests.config.files import told_of_script, write

told = partial(told_of_script, about="is gone since", gpus=1)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said_of(folder: Path, text: str) -> tuple[tuple[str, str] | None, list[str]]:
    refused, notes = told(folder, f"import collections, inspect, torch\n{text}\nprint(torch)\n")
    return (refused[0].replace(f"{folder}/", ""), refused[1]) if refused else None, notes


@pytest.mark.parametrize(
    ("line", "said", "fix"),
    [
        (
            "from collections import Mapping",
            "train.py:2: imports 'Mapping' from collections, which is gone since Python 3.10",
            "write from collections.abc import Mapping",
        ),
        (
            "from fractions import gcd as g, Fraction",
            "train.py:2: imports 'gcd' from fractions, which is gone since Python 3.9",
            "write from math import gcd",
        ),
        (
            "from itertools import chain, izip",
            "train.py:2: imports 'izip' from itertools, which is gone since Python 3.0",
            "write zip",
        ),
        (
            "import cPickle",
            "train.py:2: imports 'cPickle', which is gone since Python 3.0",
            "write import pickle",
        ),
        (
            "if __name__ == '__main__':\n    collections.Iterable",
            "train.py:3: has collections.Iterable, which is gone since Python 3.10",
            "write collections.abc.Iterable",
        ),
        (
            "class B(dict, collections.MutableMapping): ...",
            "train.py:2: has collections.MutableMapping, which is gone since Python 3.10",
            "write collections.abc.MutableMapping",
        ),
        (
            "class B:\n    x = 1\n    y = inspect.getargspec(print)",
            "train.py:4: has inspect.getargspec, which is gone since Python 3.11",
            "write inspect.getfullargspec",
        ),
        (
            "import asyncio\n@asyncio.coroutine\ndef go(): ...",
            "train.py:3: has asyncio.coroutine, which is gone since Python 3.11",
            "write async def in the place of the decorator",
        ),
        (
            "import numpy as np\ndef go(x=np.float(2)): ...",
            "train.py:3: has np.float, which is gone since NumPy 1.24",
            "write float",
        ),
    ],
)
def test_what_the_script_comes_to_is_refused(
    tmp_path: Path, line: str, said: str, fix: str
) -> None:
    if "numpy" in line and np.__version__ < "1.24":
        pytest.skip("its NumPy has the name")
    assert said_of(tmp_path, line) == ((said, fix), [])


def test_a_module_of_the_project_is_refused_as_well(tmp_path: Path) -> None:
    write(tmp_path, "import time\nBEGAN = time.clock()\n", "models/part.py")
    refused, _ = said_of(tmp_path, "from models import part")
    assert refused == (
        "models/part.py:2: has time.clock, which is gone since Python 3.8",
        "write time.perf_counter",
    )


USE = "inspect.getargspec(print)"
NOTED = "has inspect.getargspec, which is gone since Python 3.11: write inspect.getfullargspec"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"def go():\n    return {USE}", 3),
        (f"class A:\n    def go(self):\n        with torch.no_grad():\n            {USE}", 5),
        (f"import sys\nif len(sys.argv) > 1:\n    {USE}", 4),
        (f"go = lambda: {USE}", 2),
        (f"all = [{USE} for _ in range(2)]", 2),
        (f"def go():\n    {USE}\ndef other():\n    {USE}", 3),
    ],
)
def test_what_may_be_come_to_is_noted(tmp_path: Path, text: str, line: int) -> None:
    assert said_of(tmp_path, text) == (None, [f"train.py:{line} {NOTED}"])


def test_a_function_of_a_module_of_the_project_is_noted(tmp_path: Path) -> None:
    write(tmp_path, f"import inspect\ndef go():\n    return {USE}\n", "models/part.py")
    _, notes = said_of(tmp_path, "from models.part import go")
    assert notes == [f"models/part.py:3 {NOTED}"]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    from collections import Mapping\nexcept ImportError:\n    Mapping = dict",
        "import sys\nif sys.version_info < (3, 3):\n    from collections import Mapping",
        f"try:\n    {USE}\nexcept AttributeError:\n    pass",
        f"def go():\n    if hasattr(inspect, 'getfullargspec'):\n        return 1\n    {USE}",
        "inspect.getargspec = inspect.getfullargspec\ninspect.getargspec(print)",
        "import helper\ndef go():\n    inspect.getargspec(print)",
        "collections.OrderedDict()\nfrom collections import namedtuple, deque",
        "class My:\n    float = 1\nnp = My()\nprint(np.float)",
        "from typing import Mapping, Iterable",
        "import numpy as np\nprint(np.float32, np.int64, np.pi)",
    ],
)
def test_what_is_there_or_is_chosen_is_taken(tmp_path: Path, text: str) -> None:
    write(tmp_path, "import inspect\ninspect.getargspec = len\n", "helper.py")
    assert said_of(tmp_path, text) == (None, [])


def test_each_version_has_its_names() -> None:
    assert gone_module("imp", (3, 11)) == ("", "")
    assert gone_module("imp", (3, 12))[0] == "Python 3.12"
    assert gone_name("inspect", "getargspec", python=(3, 10)) == ("", "")
    assert gone_name("numpy", "bool", numpy="1.23.5") == ("", "")
    assert gone_name("numpy", "bool", numpy="1.26.4") == ("NumPy 1.24", "write bool")
    assert gone_name("numpy", "bool", numpy="2.1.0") == ("", "")
    assert gone_name("numpy", "Inf", written="np", numpy="1.26.4") == ("", "")
    assert gone_name("numpy", "Inf", written="np", numpy="2.0.0") == ("NumPy 2.0", "write np.inf")
    assert gone_name("numpy", "float", numpy="") == ("", "")
    assert numpy_version(tuple(sys.path)) == np.__version__
    assert numpy_version(("/nowhere",)) == ""


@pytest.mark.parametrize(
    "name",
    [
        *("asyncio.coroutine", "inspect.getargspec", "fractions.gcd", "string.letters"),
        *("collections.Mapping", "collections.Callable", "base64.encodestring", "sys.maxint"),
        *("itertools.izip_longest", "time.clock", "platform.linux_distribution"),
    ],
)
def test_what_is_written_today_is_there(name: str) -> None:
    module, _, last = name.rpartition(".")
    gone, fix = gone_name(module, last, python=(3, 13))
    of, _, today = fix.removeprefix("write ").rpartition(".")
    assert gone
    assert not hasattr(importlib.import_module(module), last)
    assert " " in fix[6:] or hasattr(importlib.import_module(of), today)
