"""What a wheel carries: the package, its types, and the two data folders beside it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_wheel_renders_without_the_repository(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    assert "hpc_train/py.typed" in names
    assert "hpc_train/sbatch_templates/srun.sbatch.j2" in names
    assert not {name for name in names if name.startswith(("tests/", "benchmarks/"))}
    config = tmp_path / "site" / "hpc_train" / "configs" / "digits.yaml"
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import hpc_train\n"
        f"assert hpc_train.__file__.startswith({str(tmp_path)!r}), hpc_train.__file__\n"
        f"print(hpc_train.render(hpc_train.load({str(config)!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("#!/bin/bash")
