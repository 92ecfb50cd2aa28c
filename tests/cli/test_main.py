"""What the command line loads, what it says of itself, and how it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hpc_train.cli.main import COMMANDS, LazyGroup, cli
from tests.cli.conftest import DIGITS

HEAVY = {"torch", "pytorch_lightning", "submitit", "jinja2", "rich", "omegaconf", "ClusterShell"}
# Frozen on purpose: a script of somebody's depends on each of these words.
SURFACE = {
    "submit": "account cluster dry_run follow gpus json name nodes partition qos runs_dir spares"
    " test_only time wait",
    "run": "account gpus name nodes partition qos runs_dir spares time",
    "render": "account force gpus name nodes output partition qos runs_dir spares time",
    "resume": "cluster follow gpus json nodes partition runs_dir spares time wait",
    "status": "json runs_dir",
    "list": "active all json n runs_dir",
    "logs": "attempt follow rank runs_dir supervisor",
    "cancel": "json runs_dir",
    "checkpoints": "json runs_dir verify",
    "preflight": "account attempt budget explain full gpus json nodes partition strict threshold",
    "nodes": "forget json",
}


def loaded_by(*words: str) -> set[str]:
    code = (
        "import sys\nfrom hpc_train.cli.main import main\n"
        f"try: main({list(words)!r})\nexcept SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["list"], ["submit", "--help"]])
def test_the_command_line_starts_without_the_heavy_libraries(words: list[str]) -> None:
    assert loaded_by(*words) & HEAVY == set()


def test_rendering_loads_neither_torch_nor_submitit() -> None:
    assert loaded_by("render", DIGITS) & {"torch", "pytorch_lightning", "submitit", "rich"} == set()


@pytest.mark.parametrize("name", sorted(SURFACE))
def test_the_options_of_a_command_stay(name: str) -> None:
    assert isinstance(cli, LazyGroup)
    command = cli.get_command(None, name)
    options = {
        max(option.opts, key=len).lstrip("-").replace("-", "_")
        for option in command.params
        if option.param_type_name == "option"
    }
    assert options == set(SURFACE[name].split())


def test_every_command_of_the_help_exists_and_explains_itself() -> None:
    for name in COMMANDS:
        assert cli.get_command(None, name).help, name


def test_a_misspelt_command_names_the_nearest(hpc) -> None:
    said = hpc("sumbit", DIGITS)
    assert said.code == 2
    assert "Did you mean 'submit'?" in said.err


def test_an_error_is_two_lines_without_a_traceback(hpc) -> None:
    said = hpc("status", "nothing-like-it")
    assert said.code == 5
    assert said.err.startswith("error: no run answers to 'nothing-like-it'")
    assert "  fix: " in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_an_error_as_json_is_one_document_on_stdout(hpc) -> None:
    said = hpc("status", "nothing-like-it", "--json")
    document = json.loads(said.out)
    assert document["exit_code"] == said.code == 5
    assert document["error"]
    assert document["hint"]
