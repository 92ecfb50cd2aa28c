"""`env.conda` and `env.modules` on a host that has neither conda nor module."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS

CONDA = "note: no conda on this host: whether env.conda=ml loads only the nodes can tell"
MODULE = "note: no module on this host: whether env.modules=cuda loads only the nodes can tell"


@pytest.mark.parametrize("how", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("words", "notes"),
    [
        (("env.conda=ml",), [CONDA]),
        (("env.modules=[cuda]",), [MODULE]),
        (("env.modules=[cuda]", "env.conda=ml"), [MODULE]),
        ((), []),
    ],
)
def test_what_only_the_nodes_can_tell_is_noted(hpc, taken, words, notes, how):
    if shutil.which("conda") or Path("/etc/profile.d/modules.sh").exists():
        pytest.skip("this host has them")
    said = hpc("submit", DIGITS, *how, *words)
    assert said.code == 0, said
    assert [it for it in said.err.splitlines() if it.startswith("note: ")] == notes


def test_a_conda_that_is_here_is_checked_and_not_noted(hpc, taken):
    taken.has("conda", "echo :")
    said = hpc("submit", DIGITS, "--dry-run", "env.conda=ml")
    assert CONDA not in said.err


@pytest.mark.parametrize("how", [(), ("--dry-run",)])
def test_a_path_without_what_the_job_starts_is_noted(hpc, taken, how) -> None:
    """It was told when the job had begun: srun is not on the PATH."""

    def notes(*words: str) -> list[str]:
        said = hpc("submit", DIGITS, *how, *words)
        assert said.code == 0, said
        return [it for it in said.err.splitlines() if it.startswith("note: ")]

    path = "env.variables.PATH=/opt/x/bin"
    what = f"note: {path} takes the place of the whole PATH of the job, and has no srun"
    fix = "on this host: in its place a line of env.setup: export PATH=/opt/x/bin:$PATH"
    assert notes(path) == [f"{what} {fix}"]
    activates = "env.setup=['[ ! -e x/activate ] || . x/activate']"
    assert notes(path, activates) == [f"{what} and no python {fix}"]
    assert notes(f"{path}:{taken.folder}") == []
    assert notes("env.variables.PATH=${oc.env:PATH}") == []
    assert notes("env.variables.A=/opt/x/bin") == []


def test_a_named_node_that_is_drained_is_told_at_the_submission(hpc, taken):
    taken.says("7|PENDING|Priority|N/A")
    taken.has(
        "sinfo",
        'case "$*" in *%E*) echo "a*|n3|drained|fan broken";; *) exit 1;; esac',
    )
    said = hpc("submit", DIGITS, "--nodes", "1", "--gpus", "1", "slurm.nodelist=n3")
    assert said.code == 0, said
    assert 'note: n3 is drained ("fan broken"): the job waits for it' in said.err


@pytest.mark.parametrize(
    ("line", "installs"),
    [
        ("pip install wandb", True),
        ("python -m pip install -q wandb", True),
        ("uv sync", True),
        ("echo pip installs", False),
        ("pip list", False),
    ],
)
def test_a_line_of_setup_that_installs_is_noted(hpc, taken, line: str, installs: bool):
    taken.says("7|PENDING|Priority|N/A")
    said = hpc("submit", DIGITS, f'env.setup=["true","{line}"]')
    assert said.code == 0, said
    note = f"note: env.setup.1 installs ({line}): every node does that, at every attempt, into one"
    assert (note in said.err) == installs


@pytest.mark.parametrize("how", [(), ("--dry-run",)])
def test_a_file_to_source_that_only_the_nodes_may_have_is_noted(hpc, taken, tmp_path, how) -> None:
    """Nothing was said; the job trained in another environment, and was complete."""

    def notes(*lines: str) -> list[str]:
        said = hpc("submit", DIGITS, *how, f"env.setup=[{','.join(map(repr, lines))}]")
        assert said.code == 0, said
        return [it for it in said.err.splitlines() if it.startswith("note: ")]

    home = Path.home()
    absent = "is not there on this host; on a node without it the job"
    assert notes("source ~/no/v/bin/activate") == [
        f"note: env.setup.0: {home}/no/v/bin/activate {absent} ends before its training"
    ]
    assert notes("true", ". no/site.sh") == [
        f"note: env.setup.1: {tmp_path}/no/site.sh {absent} goes on behind that line"
    ]
    (tmp_path / "site.sh").touch()
    for line in (
        "source site.sh",
        ". no/site.sh || true",
        "[ -e no/site.sh ] && . no/site.sh",
        "cd sub; . no/site.sh",
        "source $HOME/no/site.sh",
    ):
        assert notes(line) == []
    assert notes("cd sub", ". no/site.sh") == []


@pytest.mark.parametrize("how", [(), ("--dry-run",)])
def test_a_cd_that_the_training_does_not_follow_is_noted(hpc, taken, tmp_path, how) -> None:
    """As in an old batch script: the training began where it was submitted, without a word."""

    def notes(*lines: str) -> list[str]:
        said = hpc("submit", DIGITS, *how, f"env.setup=[{','.join(map(repr, lines))}]")
        assert said.code == 0, said
        return [it for it in said.err.splitlines() if it.startswith("note: ")]

    moved = "note: env.setup.1: `cd /srv/sets` moves the job's shell and not the training, whose"
    fix = "write whole paths (/srv/sets/...), or call os.chdir in your code"
    told = [f"{moved} relative paths begin in {tmp_path}: {fix}"]
    assert notes("true", "cd /srv/sets") == told
    assert notes("cd /srv/sets; make; cd $SLURM_SUBMIT_DIR") == []
