"""Completion, by click's own classes and by the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from hpc_train.cli.completions import class_paths, key_words, run_words
from hpc_train.cli.main import COMMANDS, cli
from tests.cli.test_main import HEAVY

MODULES = {
    "nets.py": "import torch\nclass Net(pl.LightningModule):\n  x = 1\nclass Deep(Net): ...\n"
    "class Digits(\n    pl.LightningDataModule,\n): ...\nraise SystemExit('imported')\n",
    "parts/blocks.py": "class Block: ...\n    class Inner: ...\n",
    ".venv/lib.py": "class Hidden: ...\n",
    "broken.py": "class Half(\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with modules, a config and runs."""
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "cfg.yaml").write_text("name: x\n")
    for run in ("digits/20260101-000001-aaaa", "digits/20260102-000001-bbbb", "other/20260103-x"):
        (tmp_path / "runs" / run).mkdir(parents=True)
        (tmp_path / "runs" / run / "plan.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HPC_TRAIN_RUNS_DIR", raising=False)
    return tmp_path


def offered(*words: str) -> list[str]:
    """What is offered for the last word."""
    found = ShellComplete(cli, {}, "hpc-train", "_HPC_TRAIN_COMPLETE")
    return [item.value for item in found.get_completions(list(words[:-1]), words[-1])]


def test_commands_and_options_are_offered() -> None:
    assert offered("") == list(COMMANDS)
    assert offered("re") == ["render", "resume", "report"]
    assert offered("submit", "cfg.yaml", "--no") == ["--nodes"]
    assert offered("list", "--sort", "s") == ["state", "step"]


@pytest.mark.parametrize("command", ["status", "logs", "cancel", "rm", "report", "diagnose"])
def test_runs_are_offered_by_name_and_id(folder: Path, command: str) -> None:
    assert offered(command, "d") == ["digits"]
    assert offered(command, "20260102") == ["20260102-000001-bbbb"]
    assert offered(command, "") == [
        *("digits", "other"),
        *("20260103-x", "20260102-000001-bbbb", "20260101-000001-aaaa"),
    ]
    assert offered(command, "nothing") == []
    assert offered(command, "--runs-dir", str(folder / "absent"), "d") == []


def test_keys_values_and_classes_are_offered(folder: Path) -> None:
    assert offered("submit", "cfg.yaml", "slurm.no") == ["slurm.nodelist=", "slurm.nodes="]
    assert offered("submit", "cfg.yaml", "seed=1", "preflight.mode=") == [
        f"preflight.mode={word}" for word in ("off", "quick", "full")
    ]
    assert offered("resume", "digits", "requeue.en") == ["requeue.enabled="]
    assert offered("submit", "cfg.yaml", "requeue.enabled=t") == ["requeue.enabled=true"]
    assert offered("submit", "cfg.yaml", "model.class_path=nets.") == [
        "model.class_path=nets.Deep",
        "model.class_path=nets.Net",
    ]
    assert offered("submit", "cfg.yaml", "data.class_path=n") == ["data.class_path=nets.Digits"]
    assert offered("submit", "cfg.yaml", "no.such.key=") == []


@pytest.mark.parametrize(
    ("typed", "incomplete", "words"),
    [
        (["seed"], "", []),
        (["preflight.mode"], "", ["off", "quick", "full"]),
        (["preflight.mode", "=", "off"], "slurm.nodes", ["slurm.nodes="]),
        (["preflight.mode", "="], "q", ["quick"]),
        (["model.class_path", "="], "parts", ["parts.blocks.Block"]),
        (["="], "slurm.mem_per_c", ["slurm.mem_per_cpu="]),
        (["seed", "=", "1"], "model.cl", ["model.class_path="]),
        (["seed=1"], "model.cl", ["model.class_path="]),
    ],
)
def test_bash_splits_at_the_sign_and_gets_the_value_alone(
    folder: Path, typed: list[str], incomplete: str, words: list[str]
) -> None:
    assert key_words(typed, incomplete) == words


def test_classes_are_found_in_the_text_and_nothing_is_imported(folder: Path) -> None:
    assert class_paths(folder, "") == ["nets.Deep", "nets.Net", "parts.blocks.Block"]
    assert class_paths(folder / "absent", "") == []


def test_completing_loads_no_heavy_library(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "hpc_train.cli"],
        env={
            **os.environ,
            "_HPC_TRAIN_COMPLETE": "bash_complete",
            "COMP_WORDS": "hpc-train submit cfg.yaml model.class_path = ne",
            "COMP_CWORD": "5",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,nets.Deep", "plain,nets.Net"]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.split("\n")}
    assert loaded & HEAVY == set()


@pytest.mark.slow
def test_ten_thousand_runs_and_many_modules_are_offered_at_once(folder: Path) -> None:
    for number in range(10_000):
        (folder / "runs" / "digits" / f"20270101-{number:06d}-0000").mkdir()
    for number in range(300):
        (folder / f"module_{number}.py").write_text("class A:\n    x = 1\n" * 100)

    def least_s(call: Callable[[], object]) -> float:
        times = []
        for _ in range(5):
            began = time.process_time()
            call()
            times.append(time.process_time() - began)
        return min(times)

    assert len(run_words("", None)) == 32
    # Of the CPU, and some ten times what it takes: whoever read each run would take longer.
    assert least_s(lambda: run_words("2027", None)) < 0.5
    assert least_s(lambda: class_paths(folder, "")) < 0.5


# --- the shells


@pytest.fixture
def path(folder: Path) -> str:
    """A PATH with `hpc-train`."""
    command = folder / "bin" / "hpc-train"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m hpc_train.cli "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}:/usr/bin:/bin"


def said_by(shell: str, script: str, path: str) -> str:
    done = subprocess.run(
        [shell, "-c", script],
        env={**os.environ, "PATH": path, "HOME": str(Path.cwd()), "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


BASH = """
eval "$(hpc-train completion bash)"
compopt() { printf 'compopt %%s %%s\n' "$1" "$2"; }
COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_hpc_train_completion hpc-train
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("hpc-train stat", "status\n"),
        ("hpc-train status dig", "digits\n"),
        ("hpc-train submit cfg.yaml requeue.bud", "compopt -o nospace\nrequeue.budget=\n"),
        ("hpc-train submit cfg.yaml preflight.mode = qu", "quick\n"),
        ("hpc-train submit cfg.yaml model.class_path =", "nets.Deep nets.Net parts.blocks.Block\n"),
        ("hpc-train submit cf", "compopt -o default\n\n"),
    ],
)
def test_bash_completes(path: str, words: str, said: str) -> None:
    assert said_by("bash", BASH % words, path) == said


def test_an_interactive_bash_completes_at_tab(path: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        env={**os.environ, "PATH": path, "TERM": "dumb", "PS1": "$ "},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, b'eval "$(hpc-train completion bash 2>/dev/null)"; echo rea""dy\n')
    shown = ""
    typed = False
    deadline = time.monotonic() + 120
    while "submit cfg.yaml requeue.budget=" not in shown and time.monotonic() < deadline:
        shown += os.read(ours, 4096).decode(errors="replace")
        if "ready\r" in shown and not typed:
            os.write(ours, b"hpc-train sub\tcf\trequeue.bud\t7")
            typed = True
    process.kill()
    process.wait(timeout=60)
    os.close(ours)
    assert "submit cfg.yaml requeue.budget=" in shown


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stat", ["status"]),
        ("status dig", ["digits"]),
        ("submit cfg.yaml preflight.mode=qu", ["preflight.mode=quick"]),
        ("submit cfg.yaml requeue.bud", ["-S", "requeue.budget="]),
    ],
)
def test_zsh_completes(path: str, words: str, said: list[str]) -> None:
    script = (
        "compdef() { :; }\n"
        '_describe() { print -l -- "${completions_with_descriptions[@]%%:*}"; }\n'
        'compadd() { local -a all; all=("$@"); print -l -- "${all[@]}"; }\n'
        'eval "$(hpc-train completion zsh)"\n'
        f"words=(hpc-train {words}); CURRENT=$#words\n"
        "rehash; _hpc_train_completion"
    )
    printed = said_by("zsh", script, path).split()
    assert set(said) <= set(printed), printed


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("hpc-train stat", ["status"]),
        ("hpc-train status dig", ["digits"]),
        ("hpc-train submit cfg.yaml preflight.mode=qu", ["preflight.mode=quick"]),
        ("hpc-train submit cf", ["cfg.yaml"]),
    ],
)
def test_fish_completes(path: str, words: str, said: list[str]) -> None:
    script = f"hpc-train completion fish | source; complete --do-complete '{words}'"
    assert [line.split("\t")[0] for line in said_by("fish", script, path).splitlines()] == said


@pytest.mark.parametrize("shell", ["tcsh", ""])
def test_another_shell_is_told_which_there_are(
    hpc, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("SHELL", shell and f"/bin/{shell}")
    said = hpc("completion")
    assert (said.code, "name one of bash, zsh, fish" in said.err) == (2, True)
    assert isinstance(cli, click.Group)
