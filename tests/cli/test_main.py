"""What the command line loads, what it says of itself, and how it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.cli.main import COMMANDS, LazyGroup, cli
from tests.cli.conftest import DIGITS

HEAVY = {
    *("torch", "pytorch_lightning", "submitit", "jinja2", "rich", "omegaconf", "ClusterShell"),
    *("aiohttp", "apprise", "textual"),
}
# Frozen on purpose: a script of somebody's depends on each of these words.
SURFACE = {
    "submit": "account after at_most bench_first cluster devices dry_run follow gpus json name"
    " nodes partition partitions qos runs_dir smoke spares sweep test_only time verbose wait",
    "run": "account devices gpus master name node_rank nodes partition qos runs_dir spares time",
    "launch": "account gpus hosts name nodes partition qos runs_dir spares time",
    "render": "account at_most force gpus hosts launcher master name nodes output partition qos"
    " runs_dir spares sweep time",
    "resume": "account cluster dry_run follow gpus hosts json new_snapshot nodes partition qos"
    " runs_dir spares time verbose wait",
    "test": "account ckpt cluster follow gpus json nodes partition qos runs_dir time wait",
    "validate": "account ckpt cluster follow gpus json nodes partition qos runs_dir time wait",
    "predict": "account ckpt cluster follow gpus json nodes partition qos runs_dir time wait",
    "status": "best json runs_dir",
    "diff": "json runs_dir",
    "diagnose": "attempt json runs_dir",
    "report": "html json runs_dir",
    "bench": "account cluster dry_run gpus html json name no_wait nodes partition qos runs_dir"
    " show steps time vary",
    "list": "active all json n name points runs_dir sort state",
    "top": "active filter port runs_dir web",
    "logs": "all attempt follow n rank runs_dir supervisor",
    "cancel": "json runs_dir",
    "rm": "dry_run json runs_dir state yes",
    "du": "all json n runs_dir",
    "checkpoints": "best json monitor runs_dir verify",
    "preflight": "account attempt budget explain full gpus json nodes partition strict threshold",
    "nodes": "forget json",
    "notify": "account gpus name nodes partition qos runs_dir spares time",
    "init": "",
    "translate": "json keep_nccl",
    "completion": "",
    "doctor": "account gpus json nodes partition runs_dir",
}


def loaded_by(*words: str) -> set[str]:
    code = (
        "import sys\nfrom hpc_train.cli.main import main\n"
        f"try: main({list(words)!r})\nexcept SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["list"], ["submit", "--help"], ["top", "--help"]]
)
def test_the_command_line_starts_without_the_heavy_libraries(words: list[str]) -> None:
    assert loaded_by(*words) & HEAVY == set()


def test_a_word_of_help_loads_nothing_of_what_commands_do() -> None:
    own = {"hpc_train.api", "hpc_train.plan.plan", "hpc_train.runs.status"}
    assert loaded_by("--version") & own == loaded_by("--help") & own == set()


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
    assert "  fix: hpc-train submit " in said.err


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


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("home_is", ["there", "a file"])
def test_what_nobody_foresaw_is_two_lines_and_its_traceback_is_in_a_file(
    hpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool, home_is: str
) -> None:
    if home_is == "a file":
        (tmp_path / "state").write_text("")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = tmp_path / "runs" / "net" / "20260101-000000-0000"
    run.mkdir(parents=True)
    (run / "plan.json").write_text("{}")

    def fails(*_given: object, **_named: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("hpc_train.backends.observe.run_status", fails)
    said = hpc("status", "net", *(["--json"] if as_json else []))
    assert said.code == 1
    if as_json:
        document = json.loads(said.out)
        first, second = document["error"], document["hint"]
    else:
        first, second = said.err.splitlines()
    assert "ZeroDivisionError: division by zero" in first
    assert "hpc-train did not expect this; the traceback is in " in second
    file = Path(second.rpartition(" ")[2])
    assert file.is_relative_to(tmp_path)
    assert "Traceback (most recent call last)" in file.read_text()
    assert file.read_text().rstrip().endswith(first.removeprefix("error: "))
