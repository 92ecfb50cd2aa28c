"""A file of classes that starts a training as it is imported, which each of its ranks would do."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

import hpc_train
from hpc_train import api
from hpc_train.errors import ConfigError
from hpc_train.plan.env_names import RUN_DIR
from tests.config.files import MINIMAL, write
from tests.config.test_parsed_on_import import NETS

LOADS = 'loaded = hpc_train.load("cfg.yaml")\n'
RUNS = f"import hpc_train\n{LOADS}"
SAID = "runs as the file is imported, in each rank, of that training as well"
GUARD = 'if __name__ == "__main__":'
FIX = f"put it below `{GUARD}`"


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, tail: str, *, apart: bool = False) -> str:
    """What is refused where a file of the classes, or one that it imports, ends so."""
    monkeypatch.chdir(folder)
    write(folder, f"{NETS}{'from more import loaded' if apart else tail}", "nets.py")
    write(folder, tail, "more.py")
    try:
        api.load(write(folder, MINIMAL))
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("tail", "line", "call"),
    [
        (f"{RUNS}hpc_train.run_here(loaded)\n", 3, "hpc_train.run_here"),
        (f"{RUNS}run = hpc_train.submit(loaded)\nrun.wait()\n", 3, "hpc_train.submit"),
        (f"{RUNS}from hpc_train import submit_sweep as go\ngo(loaded)\n", 4, "go"),
        (f"{RUNS}with open('log', 'w') as f:\n    hpc_train.api.submit(loaded)\n", 4, ""),
        (f"loaded = 1\ndef main():\n    {RUNS[:17]}    hpc_train.submit(loaded)\nmain()\n", 4, ""),
        (f"{RUNS}hpc_train.Run.find('latest').wait()\n", 3, "hpc_train.Run.find('latest').wait"),
    ],
)
def test_a_call_that_each_rank_would_make_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str, line: int, call: str, apart: bool
) -> None:
    """Each training started another one, without end."""
    place = f"more.py:{line}" if apart else f"nets.py:{line + NETS.count(chr(10))}"
    said = told(tmp_path, monkeypatch, tail, apart=apart)
    assert said.startswith(f"cfg.yaml:3: model.class_path: {place}: {call}")
    assert said.endswith(f"(...) {SAID} -> {FIX}")


@pytest.mark.parametrize(
    "tail",
    [
        f"{GUARD}\n    {RUNS[:17]}    {LOADS}    hpc_train.run_here(loaded)\nloaded = 0\n",
        f"{RUNS}import os\nif 'RANK' not in os.environ:\n    hpc_train.submit(loaded)\n",
        f"{RUNS}def chain(trainer):\n    hpc_train.submit(loaded)\n",
        f"{RUNS}try:\n    hpc_train.submit(loaded)\nexcept Exception:\n    pass\n",
        f"{RUNS}hpc_train.render(loaded)\nhpc_train.list_runs()\n",
        "loaded = []\nloaded.append(1)\ndef submit(x): pass\nsubmit(loaded)\n",
    ],
)
def test_a_call_that_a_rank_may_not_make_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    assert told(tmp_path, monkeypatch, tail) == ""
    assert told(tmp_path, monkeypatch, tail, apart=True) == ""


def test_a_module_of_a_script_is_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"{RUNS}hpc_train.submit(loaded)\n", "more.py")
    script = write(tmp_path, "from more import loaded\nimport torch\n", "train.py")
    with pytest.raises(ConfigError) as refused:
        api.load(script)
    assert refused.value.message.endswith(f"more.py:3: hpc_train.submit(...) {SAID}")
    assert refused.value.hint == FIX


CALLS = ["submit(None)", "run_here(None)", "submit_sweep(None)"]
CALLS += [
    f"Run.__new__(hpc_train.Run).{it}"
    for it in ("wait()", "start('local')", "resume()", "evaluate('test')")
]


@pytest.mark.parametrize("call", CALLS)
def test_the_call_itself_is_refused_in_a_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Where the text alone does not tell: in a loop, or under a condition."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(RUN_DIR, "run")
    write(tmp_path, f"import hpc_train\nfor _ in [1]:\n    hpc_train.{call}\n", "begins.py")
    with pytest.raises(ConfigError) as refused:
        __import__("begins")
    name = call.replace(".__new__(hpc_train.Run)", "").partition("(")[0]
    assert refused.value.message == f"{tmp_path / 'begins.py'}:3: {name}(...) {SAID}"
    assert refused.value.hint == FIX
    assert "begins" not in sys.modules


@pytest.mark.parametrize("name", ["__main__", "begins"])
def test_what_a_script_does_itself_and_what_runs_later_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A callback that submits the next training, and a script that rank 0 has submit one."""
    monkeypatch.setenv(RUN_DIR, "run")
    later = name != "__main__"
    text = f"def chain():\n    hpc_train.submit(0)\n{'' if later else 'chain()'}\n"
    file, module = write(tmp_path, text, "begins.py"), ModuleType(name)
    module.__dict__["hpc_train"] = hpc_train

    def run() -> None:
        exec(compile(text, file, "exec"), module.__dict__)
        if later:
            module.chain()

    with pytest.raises(ConfigError, match="no loaded config"):  # not refused for where it is
        run()


def test_outside_of_a_rank_an_import_may_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(RUN_DIR, raising=False)
    write(tmp_path, "import hpc_train\nhpc_train.submit(0)\n", "begun.py")
    with pytest.raises(ConfigError, match="no loaded config"):
        __import__("begun")
