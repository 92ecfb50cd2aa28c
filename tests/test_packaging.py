"""What a wheel carries: the package, its types, and the two data folders beside it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
# Lightning's TensorBoardLogger imports the one, and that is our default logger; of the other the
# example reads a file.
NOT_IMPORTED_BY_US = {"tensorboard", "scikit-learn"}


def declared(project: dict[str, object], extra: str = "") -> set[str]:
    """Distributions that pyproject.toml names, normalized (PEP 503)."""
    lists: dict[str, list[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    words = lists[extra] if extra else project["dependencies"]
    names = (re.match(r"[\w.-]+", word) for word in words)  # type: ignore[union-attr]
    return {normalized(found.group()) for found in names if found}


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Distributions of all modules that the package imports, at start or later."""
    of_module = metadata.packages_distributions()
    modules = {name.partition(".")[0] for path in package() for name in names_in(path)}
    third_party = modules - sys.stdlib_module_names - {"hpc_train"}
    unknown = third_party - of_module.keys()
    assert not unknown, f"not installed here: {unknown}"
    return {normalized(name) for module in third_party for name in of_module[module]}


def package() -> Iterator[Path]:
    return (ROOT / "hpc_train").rglob("*.py")


def names_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            argument = node.args[0]
            if isinstance(argument, ast.Constant):
                yield str(argument.value)


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = declared(project)
    extras = declared(project, "examples") | declared(project, "top")
    assert imported() - needed - extras == set()
    assert (needed | extras) - imported() == NOT_IMPORTED_BY_US


def test_a_wheel_renders_without_the_repository(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    assert "hpc_train/py.typed" in names
    assert "hpc_train/sbatch_templates/srun.sbatch.j2" in names
    assert "hpc_train/project_template/training.py.template" in names
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
