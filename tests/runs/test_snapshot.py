"""The copy of a project's code: what is in it, what its links lead to, what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hpc_train.config.origins import NOWHERE
from hpc_train.config.schema import SnapshotConfig
from hpc_train.errors import ConfigError
from hpc_train.runs import snapshot
from hpc_train.runs.snapshot import Selection, changed_files, copy_at, renewed, select, take
from hpc_train.supervisor.launch import code_paths
from tests.training.launched import make_plan

ODD = "new\nline ü.txt"


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *own, "-C", str(folder), *words], check=True, capture_output=True)


def chosen(workdir: Path, **wanted: object) -> Selection:
    config = SnapshotConfig(mode="git", **wanted)  # type: ignore[arg-type]
    return select(config, workdir, workdir / "runs", NOWHERE)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "runs" / "x" / "1"
    folder.mkdir(parents=True)
    (folder / "secret.txt").write_text("of an earlier run")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Files of every kind; data/ is ignored, and more.py is not tracked."""
    outside = tmp_path / "outside.txt"
    outside.write_text("outside")
    top = tmp_path / "project"
    for folder in ("pkg/deep", "data"):
        (top / folder).mkdir(parents=True)
    for name in ("train.py", "gone.py", "pkg/net.py", "pkg/deep/a.py", "data/big.bin", ODD):
        (top / name).write_text(f"1 {name}")
    (top / "train.py").chmod(0o755)
    (top / ".gitignore").write_text("data/\n")
    (top / "inside").symlink_to("pkg/net.py")
    (top / "absolute").symlink_to(top / "pkg")
    (top / "outside").symlink_to("../outside.txt")
    (top / "pkg" / "data").symlink_to("../data")
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "1")
    (top / "pkg/net.py").write_text("2, not committed")
    (top / "gone.py").unlink()
    (top / "more.py").write_text("untracked")
    return top


def test_it_holds_what_git_tracks_as_it_is_in_the_working_folder(project: Path, run: Path) -> None:
    take(chosen(project), run)
    copy = run / "snapshot"
    files = {str(p.relative_to(copy)) for p in copy.rglob("*") if not p.is_dir()}
    wanted = {"train.py", "pkg/net.py", "pkg/deep/a.py", ODD, ".gitignore", "inside", "outside"}
    assert files == wanted
    assert (copy / "pkg/net.py").read_text() == "2, not committed"
    assert os.access(copy / "train.py", os.X_OK)


def test_a_link_stays_in_the_copy_or_leads_where_it_did(project: Path, run: Path) -> None:
    take(chosen(project), run)
    copy = run / "snapshot"
    (project / "pkg/net.py").write_text("3")
    assert (copy / "inside").read_text() == "2, not committed"
    assert (copy / "absolute/net.py").read_text() == "2, not committed"
    assert (copy / "outside").read_text() == "outside"
    assert (copy / "pkg/data/big.bin").read_text() == "1 data/big.bin"


def test_untracked_files_and_shared_folders_come_by_choice_and_runs_never(
    project: Path, run: Path
) -> None:
    take(chosen(project, untracked=True, link=["data"]), run)
    copy = run / "snapshot"
    assert (copy / "more.py").read_text() == "untracked"
    assert (copy / "data/big.bin").read_text() == "1 data/big.bin"
    assert (copy / "data").is_symlink()
    assert not (copy / "runs").exists()


def test_the_working_folder_may_be_below_the_top(project: Path, run: Path) -> None:
    selection = chosen(project / "pkg")
    take(selection, run)
    workdir = selection.workdir_in(run)
    assert (workdir / "net.py").read_text() == "2, not committed"
    assert (workdir / "../train.py").is_file()
    copy = copy_at(workdir)
    assert copy is not None
    assert (copy.original, copy.run) == (project / "pkg", run)
    assert copy.counterpart(str(project / "pkg/deep")) == run / "snapshot/pkg/deep"
    assert copy.counterpart(str(project / "data")) is None
    assert copy.counterpart("/usr/lib") is None
    assert copy_at(project) is None


def test_submodules_are_copied_and_one_that_is_not_there_is_an_empty_folder(
    project: Path, run: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    (library / "lib.py").write_text("lib")
    git(library, "add", ".")
    git(library, "commit", "-qm", "1")
    for name in ("there", "absent"):
        git(project, "submodule", "add", "-q", str(library), name)
    git(project, "submodule", "deinit", "-f", "absent")
    take(chosen(project), run)
    assert (run / "snapshot/there/lib.py").read_text() == "lib"
    assert list((run / "snapshot/absent").iterdir()) == []


def test_a_newer_copy_keeps_what_the_training_wrote_and_one_that_fails_changes_nothing(
    project: Path, run: Path
) -> None:
    take(chosen(project), run)
    copy = run / "snapshot"
    (copy / "out.ckpt").write_text("a result")
    (project / "train.py").write_text("newer")
    git(project, "rm", "-q", "--cached", "pkg/deep/a.py")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    with pytest.raises(RuntimeError), renewed(chosen(project), run, "T"):
        raise RuntimeError
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    with renewed(chosen(project), run, "T"):
        pass
    assert (copy / "train.py").read_text() == "newer"
    assert (copy / "out.ckpt").read_text() == "a result"
    assert not (copy / "pkg/deep/a.py").exists()
    assert (run / "snapshot-before-T/train.py").read_text() == "1 train.py"


def test_files_that_differ_from_the_project_now_are_named(project: Path, run: Path) -> None:
    selection = chosen(project)
    take(selection, run)
    copy = copy_at(selection.workdir_in(run))
    assert copy is not None
    assert changed_files(copy) == []
    (project / "train.py").write_text("9 train.py")
    (project / ODD).unlink()
    assert changed_files(copy) == [ODD, "train.py"]


def test_many_files_are_copied_by_threads_where_each_takes_long(
    project: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        (project / f"pkg/{number}.py").write_text(str(number))
    monkeypatch.setattr(snapshot, "SLOW_S", 0.0)
    take(chosen(project, untracked=True), run)
    copied = [(run / f"snapshot/pkg/{number}.py").read_text() for number in range(200)]
    assert copied == [str(number) for number in range(200)]


def test_what_cannot_be_copied_is_refused_with_its_fix(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(workdir: Path, **wanted: object) -> str:
        with pytest.raises(ConfigError) as caught:
            chosen(workdir, **wanted)
        return f"{caught.value.message} | {caught.value.hint}"

    (project / "huge.bin").write_bytes(bytes(2_000_000))
    assert "huge.bin 2 MB" in said(project, untracked=True, max_mb=1)
    assert "data/none is not there" in said(project, link=["data/none"])
    assert "is not below" in said(project, link=["../x"])
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "is in no git repository | git init" in said(empty)
    git(empty, "init", "-q")
    assert "tracks no file" in said(empty)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "there is no git on the PATH" in said(project)


def test_ranks_import_the_copy_of_src_before_an_editable_install_of_it(
    project: Path, run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    selection = chosen(project / "pkg")
    take(selection, run)
    plan = make_plan(tmp_path, nodes=1, ranks_per_node=1)
    # As a .pth of pip does it, and a venv inside of the project.
    monkeypatch.setattr("sys.path", ["", str(project / "pkg"), str(project / ".venv/lib"), "/usr"])
    given = {"PYTHONPATH": f"{project}/pkg/deep:/site:{project}/data"}
    copied = code_paths(plan.placed(str(selection.workdir_in(run)), "/runs"), given)
    snap = run / "snapshot/pkg"
    assert copied == {"PYTHONPATH": f"{snap}/deep:{snap}:/site:{project}/data"}
    assert code_paths(plan.placed(str(project), "/runs"), given) == {}
