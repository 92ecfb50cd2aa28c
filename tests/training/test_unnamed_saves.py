"""What a script saves beside what `script.resume` names is kept, and told where that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.plan.plan import ScriptPlan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_notes
from hpc_train.runs.script_saves import OwnSaves
from hpc_train.training.scripts.unnamed_saves import UnnamedSaves


class Saving:
    """A script that has saved `names`, at one step after another, looked at after each."""

    def __init__(self, folder: Path, when: str, *names: str, args: tuple[str, ...] = ()) -> None:
        self.run = RunDir(folder / "run")
        attempt = self.run.attempt(0)
        attempt.path.mkdir(parents=True)
        script = ScriptPlan("train.py", [], resume_when=when, resume_args=list(args))
        self.unnamed = UnnamedSaves(self.run, attempt, script, folder)
        for step, name in enumerate(names, 1):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("whole")
            self.unnamed.noted(OwnSaves.of(self.run), {str(path): step})
        self.notes = read_notes(attempt)
        self.saves = OwnSaves.of(self.run)


def test_a_pattern_that_names_nothing_is_told_once_with_what_to_write(tmp_path: Path) -> None:
    saving = Saving(tmp_path, "out/ckpt_*.pt", *["out/rivers.pt"] * 4, args=("--resume", "x"))
    (said,) = saving.notes
    assert (
        "the script has saved out/rivers.pt, and nothing that script.resume.when=out/ckpt_*" in said
    )
    assert said.endswith("unless that comes later, write script.resume.when=out/rivers.pt")
    assert [(Path(it.path).name, it.step) for it in saving.saves.unnamed_saves] == [
        ("rivers.pt", 4)
    ]


@pytest.mark.parametrize(
    ("when", "names"),
    [
        ("out/ckpt_*.pt", ["out/ckpt_1.pt", "out/best.pt", "out/best.pt", "out/best.pt"]),
        ("out/ckpt_*.pt", ["out/arguments.pt"]),  # one alone
        ("out", ["out/a.pt", "out/b.pt", "out/c.pt"]),  # a folder that holds them
        ("", ["out/a.pt", "out/a.pt", "out/a.pt"]),
    ],
)
def test_others_are_not_told(tmp_path: Path, when: str, names: list[str]) -> None:
    assert Saving(tmp_path, when, *names).notes == []


def test_a_file_that_was_renamed_when_it_was_whole_is_none(tmp_path: Path) -> None:
    saving = Saving(tmp_path, "out/ckpt.pt")
    for step in range(1, 5):
        saving.unnamed.noted(OwnSaves.of(saving.run), {str(tmp_path / "out" / "tmp.pt"): step})
    assert OwnSaves.of(saving.run).unnamed == ""


def test_the_option_of_the_script_is_written(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("p.add_argument('--resume')\n")
    saving = Saving(tmp_path, "", "out/a.pt")
    assert saving.unnamed.how_to_name(saving.saves.unnamed) == (
        "\"script.resume={when: out/a.pt, args: [--resume, '{newest}']}\""
    )
