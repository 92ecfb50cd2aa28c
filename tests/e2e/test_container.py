"""A script in a container, from a snapshot, on the real Slurm; the container may be a stand-in."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_heartbeats
from tests.e2e.conftest import ROOT, Shell
from tests.runs.test_snapshot import git

SCRIPTS = ROOT / "tests" / "scripts"
MODERN = SCRIPTS / "modern.py"
STAND_IN = ROOT / "tests" / "containers" / "apptainer"


def image_in(folder: Path) -> Path:
    """The stand-in's "image"."""
    image = folder / "image.sif"
    image.write_text("".join(f"{path}\n" for path in installed()))
    return image


def installed() -> list[str]:
    """Folders with this Python and its packages, without hpc-train."""
    folders = {sys.prefix, sys.base_prefix, *sys.path, sysconfig.get_path("purelib")}
    return sorted(
        path for path in folders if Path(path).is_dir() and Path(path) not in (ROOT, Path())
    )


def contained(site: Shell) -> tuple[Path, list[str]]:
    """An image with this Python and its packages, without hpc-train; the options that use it.

    With apptainer itself where it is installed, else with a stand-in.
    """
    tools = site.folder / "tools"
    tools.mkdir()
    mounts: list[str] = []
    if found := shutil.which("apptainer"):
        image = site.folder / "image"
        sandbox(image)
        mounts = ["/usr", *installed()]
        # In a user namespace, as for users: root would ask for each capability that there is.
        call = f"APPTAINER_USERNS=1 exec {found}"
        record = 'printf "%q " "$@" >> "${0%/*}/calls"; echo >> "${0%/*}/calls"'
        (tools / "apptainer").write_text(f'#!/bin/bash\n{record}\n{call} "$@"\n')
        (tools / "apptainer").chmod(0o755)
    else:
        image = image_in(site.folder)
        shutil.copy(STAND_IN, tools / "apptainer")
    options = [f"env.setup=['export PATH={tools}:$PATH']", f"container.image={image}"]
    options += [f"container.python={sys.executable}", f"container.mounts=[{','.join(mounts)}]"]
    return image, options


def sandbox(image: Path) -> None:
    """An image that is a folder, with nothing in it but places for what is mounted."""
    for name in ("proc", "sys", "dev", "tmp", "etc", "root", "usr", "home", "var/tmp", "run"):
        (image / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (image / name).symlink_to(f"usr/{name}")
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (image / "etc" / name).touch()


@pytest.mark.slurm
def test_ranks_in_a_container_run_the_snapshot_also_after_an_edit_and_a_requeue(
    site: Shell,
) -> None:
    image, options = contained(site)
    project = site.folder / "project"
    project.mkdir()
    shutil.copy(MODERN, project / "train.py")
    git(project, "init", "-q")
    git(project, "add", ".")
    here = Shell(project, site.environment)
    run = here.submit(
        *("--nodes", 2, "--gpus", 1, "train.py", "script.accelerator=cpu", "snapshot=git"),
        *(*options, "--", 400, 0.03),
    )
    here.wait_until(run["run"], lambda status: status["step"] > 20)
    (project / "train.py").write_text("raise SystemExit('this was edited')\n")
    here.run("scontrol", "requeue", run["job_id"])
    ended = here.ended(run["run"])
    assert ended["state"] == "completed", ended
    attempts = ended["attempts"]
    assert len(attempts) == 2
    assert attempts[1]["first_step"] == attempts[0]["saved_step"] > 20
    found = RunDir(Path(run["run_dir"]))
    for number in (0, 1):
        known = json.loads(found.attempt(number).environment.read_text())
        assert known["variables"]["APPTAINER_CONTAINER"] == str(image), "rank 0 was inside"
        assert known["slurm"], "and the supervisor outside"
        assert known["sources"] == json.loads(found.environment.read_text())["sources"]
    calls = (site.folder / "tools" / "calls").read_text().splitlines()
    assert len(calls) == 4, "two ranks, twice"
    assert "code      train.py" in here.hpc("diff", run["run"]).stdout.splitlines()


@pytest.mark.slurm
def test_ranks_that_a_script_starts_in_a_container_are_followed(site: Shell) -> None:
    _, options = contained(site)
    shutil.copy(SCRIPTS / "spawned.py", site.folder)
    site.hpc(
        *("submit", "--nodes", 2, "--gpus", 2, "--wait", "spawned.py", "script.accelerator=cpu"),
        *("script.launcher=none", "script.resume.when=out/ckpt.pt", "preflight=off"),
        *(*options, "--", "--fail", 2, "--how", "SIGKILL"),
    )
    killed, whole = site.status("spawned")["attempts"]
    assert (killed["rank"], killed["outcome"]) == (2, "node_failure")
    beats = read_heartbeats(RunDir(Path(site.status("spawned")["run_dir"])).attempt(1))
    assert {(beat.rank, beat.node, beat.step) for beat in beats} == {
        (0, "node1", 12),
        (1, "node1", 12),
        (2, "node2", 12),
        (3, "node2", 12),
    }
    assert whole["outcome"] == "completed"
    calls = (site.folder / "tools" / "calls").read_text().splitlines()
    assert len(calls) == 4, "one a node, twice"
