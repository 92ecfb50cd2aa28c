"""What a wheel carries: the package, its types, and the two data folders beside it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import tomllib
import yaml

import hpc_train

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# Lightning's TensorBoardLogger imports it, and that is our default logger.
NOT_IMPORTED_BY_US = {"tensorboard"}

USERS_EXTRAS = ("notices", "top")


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
    needed = declared(project).union(*(declared(project, extra) for extra in USERS_EXTRAS))
    assert imported() - needed == set()
    assert needed - imported() == NOT_IMPORTED_BY_US


def built(kind: str, root: Path, folder: Path) -> Path:
    """A wheel or an sdist, in `folder`."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (archive,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return archive


def version_of(package: Path) -> str:
    """What `hpc-train --version` says, of a package that lies there."""
    code = "from hpc_train.cli.main import main; main(['--version'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=package, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_wheel_holds_the_package_its_data_and_nothing_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(built("wheel", ROOT, tmp_path)) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    data = ("sbatch_templates", "configs", "project_template")
    expected = {f"hpc_train/{path.relative_to(ROOT)}" for folder in data
                for path in (ROOT / folder).rglob("*") if path.is_file()}  # fmt: skip
    tracked = subprocess.run(
        ["git", "ls-files", "hpc_train"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected |= {name for name in tracked.stdout.split() if (ROOT / name).is_file()}
    assert expected <= names
    assert names - expected <= {"hpc_train/commit.txt"}


def test_the_version_says_the_commit_in_the_tree_a_wheel_and_one_from_an_sdist(
    tmp_path: Path,
) -> None:
    git = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    here = version_of(ROOT)
    assert re.fullmatch(
        rf"hpc-train {hpc_train.__version__} \(commit {commit.strip()}(-dirty)?\)", here
    )
    sdist = built("sdist", ROOT, tmp_path)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    for root, folder in ((ROOT, tmp_path / "direct"), (source, tmp_path / "again")):
        with zipfile.ZipFile(built("wheel", root, folder)) as archive:
            archive.extractall(folder / "site")
        assert version_of(folder / "site") == here
    (tmp_path / "again" / "site" / "hpc_train" / "commit.txt").unlink()
    assert version_of(tmp_path / "again" / "site") == f"hpc-train {hpc_train.__version__}"


def test_the_changelog_has_the_version_and_the_citation_names_it() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert hpc_train.__version__ in versions
    assert versions[0] in (hpc_train.__version__, "Unreleased")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    # What the format's schema 1.2.0 demands, and what a citation needs besides.
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["version"] == hpc_train.__version__
    assert citation["license"] == "Apache-2.0"


def test_a_wheel_renders_without_the_repository(tmp_path: Path) -> None:
    with zipfile.ZipFile(built("wheel", ROOT, tmp_path)) as archive:
        archive.extractall(tmp_path / "site")
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
