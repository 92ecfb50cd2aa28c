"""A wheel alone, in a new environment of each Python: `make release-check PYTHONS="3.10 3.13"`.

Each installs the wheel with what it depends on, tells its version, renders, and trains the project
of `hpc-train init` on two ranks; then the same by `uv tool install`. The last environment's parts
are written into dist/sbom.cdx.json (CycloneDX). Without GPUs, and without the pins of
constraints.txt: what a user gets today. It needs the network, gigabytes of disk, and minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.licences_page import FORBIDDEN

ROOT = Path(__file__).parents[1]
LONGEST_NAME = 200  # what is longer is a licence's text, which may speak of others
DIST = ROOT / "dist"
TOOLS = Path(sys.executable).parent


def main(pythons: list[str]) -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    run(TOOLS / "python", "-m", "hatchling", "build", "-d", DIST)
    (wheel,) = DIST.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        for number, python in enumerate(pythons or [sys.executable]):
            place = Path(folder, f"python-{number}")
            run(TOOLS / "uv", "venv", "--quiet", "--python", python, place)
            run(TOOLS / "uv", "pip", "install", "--quiet", "--python", place / "bin/python", wheel)
            try_out(place / "bin", Path(folder, f"project-{place.name}"))
        bom = (
            "environment",
            "--pyproject",
            "pyproject.toml",
            "--output-file",
            DIST / "sbom.cdx.json",
        )
        run(TOOLS / "cyclonedx-py", *bom, place / "bin/python")
        refuse_gpl(DIST / "sbom.cdx.json")
        as_tool = {"UV_TOOL_DIR": f"{folder}/tools", "UV_TOOL_BIN_DIR": f"{folder}/bin"}
        run(
            TOOLS / "uv", "tool", "install", "--quiet", "--python", sys.executable, wheel, **as_tool
        )
        try_out(Path(folder, "bin"), Path(folder, "project-uv-tool"))


def refuse_gpl(bill: Path) -> None:
    """End where a part of the installation is under the GPL or AGPL."""
    for part in json.loads(bill.read_text(encoding="utf-8"))["components"]:
        said = [one.get("expression") or one["license"] for one in part.get("licenses", [])]
        names = [one if isinstance(one, str) else one.get("id") or one["name"] for one in said]
        if any(FORBIDDEN.search(name) for name in names if len(name) < LONGEST_NAME):
            raise SystemExit(f"{part['name']} is under {names}")


def try_out(bin_dir: Path, project: Path) -> None:
    """Version, render and train with what is installed, outside of the repository."""
    project.mkdir()
    state = {"XDG_STATE_HOME": str(project / "state"), "PYTHONPATH": ""}
    hpc = bin_dir / "hpc-train"
    run(hpc, "--version", cwd=project, **state)
    run(hpc, "init", "first", cwd=project, **state)
    run(hpc, "render", "config.yaml", "-o", "job.sbatch", cwd=project / "first", **state)
    run(hpc, "run", "config.yaml", "trainer.max_epochs=2", cwd=project / "first", **state)
    run(hpc, "report", cwd=project / "first", **state)
    print(f"works: {bin_dir}", flush=True)


def run(*argv: object, cwd: Path = ROOT, **variables: str) -> None:
    """Show what is run; its failure ends all."""
    words = [str(word) for word in argv]
    print("$", *words, flush=True)
    subprocess.run(words, cwd=cwd, env={**os.environ, **variables}, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
