"""The image definitions, as far as they can be checked where nothing builds them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[1]
DOCKER = (ROOT / "containers/Dockerfile").read_text(encoding="utf-8")
APPTAINER = (ROOT / "containers/hpc-train.def").read_text(encoding="utf-8")


def copied() -> dict[str, str]:
    """What the Dockerfile takes from the repository, and where it lies in the image's folder."""
    found = {}
    for line in re.findall(r"^COPY (.*)$", DOCKER, re.MULTILINE):
        *sources, target = line.split()
        found |= {name: name if target == "./" else target for name in sources}
    return found


def test_both_images_take_the_same_files_and_install_them_alike() -> None:
    of_apptainer = dict(re.findall(r"^    (\S+) /opt/hpc-train/(\S+)$", APPTAINER, re.MULTILINE))
    assert of_apptainer == copied()
    assert re.search(r"^From: (.*)$", APPTAINER, re.M)[1] in DOCKER  # type: ignore[index]
    (install,) = re.findall(r"python -m pip install .* \.", DOCKER)
    assert install in APPTAINER


def test_a_wheel_can_be_built_from_what_the_images_take(tmp_path: Path) -> None:
    for source, target in copied().items():
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, tmp_path / target)
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(tmp_path / "dist"),
    ]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    assert len(list((tmp_path / "dist").glob("hpc_train-*.whl"))) == 1


def test_the_base_without_gpus_has_a_python_that_is_allowed() -> None:
    (version,) = re.findall(r"BASE=python:3\.(\d+)-", DOCKER)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert int(version) >= int(project["requires-python"].removeprefix(">=3."))
