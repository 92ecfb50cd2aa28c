"""Data by a relative path that git does not track: noted, linked, and told where it is missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.training.failures.failure_words import fix_of
from tests.cli.test_resume_notes import NETS
from tests.cli.test_snapshot import git, project, submitted

__all__ = ["project"]

DATA = """\
import pytorch_lightning
class Files(pytorch_lightning.LightningDataModule):
    def __init__(self, path="", root="", save_dir="", batch_size=4): super().__init__()
    def train_dataloader(self): return [1]
"""


@pytest.fixture
def with_data(project: Path) -> Path:
    """data/x.pt is not tracked, and of its folder a .gitkeep is."""
    (project / "data").mkdir()
    (project / "data/.gitkeep").write_text("")
    (project / "small").mkdir()
    (project / "small/y.pt").write_text("")
    (project / "nets.py").write_text(f"{NETS}\n{DATA}")
    git(project, "add", ".")
    git(project, "commit", "-qm", "data")
    (project / "data/x.pt").write_text("")
    (project / "kept").mkdir()
    return project


@pytest.mark.parametrize(
    ("word", "link"),
    [
        ("data.init_args.path=data/x.pt", "data"),
        ("data.init_args.path=./data/x.pt", "data"),
        ("data.init_args.root=data", "data"),
        ("data.init_args.root=kept", "kept"),
        ("data.init_args.path=small/y.pt", ""),
        ("data.init_args.root=small", ""),
        ("data.init_args.save_dir=kept", ""),
        ("data.init_args.root=../work", ""),
    ],
)
def test_a_path_that_the_copy_would_lack_is_noted(
    hpc, taken, with_data: Path, word: str, link: str
) -> None:
    words = ("submit", "cfg.yaml", "--dry-run", "data.class_path=nets.Files", word)
    said = hpc(*words)
    assert said.code == 0, said
    key, _, text = word.partition("=")
    told = f"{key} is {text}, which git does not track, so that the copy of the code"
    assert (told in said.err) is bool(link)
    if link:
        assert f"'snapshot.link=[{link}]', or write the whole path" in said.err
        assert told not in hpc(*words, f"snapshot.link=[{link}]").err
        more = hpc(*words, f"snapshot.link=[small,{link}]").err
        assert told not in more
        assert f"'snapshot.link=[small,{link}]'" in hpc(*words, "snapshot.link=[small]").err
    assert told not in hpc(*words, "snapshot=none").err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--data", "data/x.pt"), "script.args.1 is data/x.pt"),
        (("--data-dir=data",), "script.args.0 is data"),
        (("data/x.pt", "--lr", "1"), "script.args.0 is data/x.pt"),
        (("--data", "small/y.pt"), ""),
        (("--out", "kept"), ""),
        (("--data", "none.pt"), ""),
    ],
)
def test_of_a_script_its_arguments_are_looked_at(
    hpc, taken, with_data: Path, args: tuple[str, ...], told: str
) -> None:
    said = hpc("submit", "train.py", "snapshot=git", "--dry-run", "--", *args)
    assert said.code == 0, said
    assert ("git does not track" in said.err) is bool(told)
    assert told in said.err


def test_the_fix_links_a_folder_of_which_git_has_its_gitkeep_alone(
    hpc, taken, with_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submitted(hpc, "cfg.yaml", "snapshot.link=[data]")
    copy = run.path / "snapshot/work"
    assert (copy / "data").is_symlink()
    assert (copy / "data/x.pt").is_file()
    lacking = submitted(hpc, "cfg.yaml").path / "snapshot/work"
    monkeypatch.chdir(lacking)
    with pytest.raises(FileNotFoundError) as caught:
        Path("data/x.pt").read_text()
    fix = "submit it with snapshot.link=[data], or write the whole path"
    assert fix_of(caught.value).endswith(f"lacks what git does not track: {fix}")
    with pytest.raises(FileNotFoundError) as caught:
        Path("data/none.pt").read_text()
    assert "snapshot.link" not in fix_of(caught.value)
