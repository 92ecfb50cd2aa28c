"""A script.resume.when that names nothing of what a script saves is noted at submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.scripts.unfit_resume import note_on_unfit_resume

LOOP = """import torch, argparse
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
parser.add_argument("--resume")
args = parser.parse_args()
{more}
for epoch in range(9):
    torch.save({{}}, {file})
"""
HELPER = """import os, torch
def save_on_main(*given):
    if int(os.environ["RANK"]) == 0:
        torch.save(*given)
for epoch in range(9):
    save_on_main({}, f"out/{epoch}.pt")
"""
EPOCHS = 'f"out/ckpt-{epoch}.pt"'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def note(folder: Path, text: str, *words: str) -> str:
    (folder / "train.py").write_text(text)
    return note_on_unfit_resume(load("train.py", [*words]).config, folder)


def loop(file: str, more: str = "") -> str:
    return LOOP.format(file=file, more=more)


@pytest.mark.parametrize(
    ("text", "when", "saved"),
    [
        (loop(EPOCHS), "out/checkpoint-*", "out/ckpt-*.pt"),
        (loop(EPOCHS), "ckpt-*.pt", "out/ckpt-*.pt"),
        (loop(EPOCHS), "out/*.pth", "out/ckpt-*.pt"),
        (loop("'last.pt'"), "out/last.pt", "last.pt"),
        (loop("args.out + '/last.pt'"), "runs/last.pt", "out/last.pt"),
        (HELPER, "out/*.ckpt", "out/*.pt"),
        (loop(EPOCHS), "/elsewhere/ckpt-1.pt", "out/ckpt-*.pt"),
    ],
)
def test_it_is_noted_with_what_is_saved(tmp_path: Path, text: str, when: str, saved: str) -> None:
    said = note(tmp_path, text, f"script.resume.when={when}")
    line = 6 if text == HELPER else 8
    option = f"\"script.resume={{when: {saved}, args: [--resume, '{{newest}}']}}\""
    write = f"script.resume.when={saved}" if text == HELPER else option
    assert said == (
        f"train.py:{line} saves {saved}, and script.resume.when={when} names nothing that is"
        f" saved: a job that follows would begin anew; write {write}"
    )


def test_arguments_that_are_given_stay(tmp_path: Path) -> None:
    word = "script.resume={when: 'ckpt-*', args: [--resume, '{newest}']}"
    assert note(tmp_path, loop(EPOCHS), word).endswith("; write script.resume.when=out/ckpt-*.pt")


@pytest.mark.parametrize(
    ("text", "when"),
    [
        (loop(EPOCHS), "out/ckpt-*.pt"),
        (loop(EPOCHS), "./out/ckpt-[0-9].pt"),
        (loop(EPOCHS), "out/ckpt-??.pt"),
        (loop(EPOCHS), "out/*"),
        (loop(EPOCHS), "out"),
        (loop(EPOCHS), "out/"),
        (loop(EPOCHS), "./**/*.pt"),
        (loop("name"), "out/a.pt"),
        (loop("os.environ['OUT'] + '/a.pt'"), "b.pt"),
        (loop("args.out + '/last.pt'"), "$OUT/last.pt"),
        (loop(EPOCHS, "torch.save({}, 'last.pt')"), "last.pt"),
        (loop(EPOCHS, "os.replace('a', 'last.pt')"), "last.pt"),
        (loop(EPOCHS, "shutil.copyfile('a', 'last.pt')"), "last.pt"),
        (loop(EPOCHS, "net.save_pretrained('last')"), "last"),
        (loop(EPOCHS, "pickle.dump({}, file)"), "last.pkl"),
        (loop(EPOCHS, "import other; other.Saver()\nother.save_all()"), "last.pt"),
        (loop(EPOCHS, "import transformers"), "checkpoint-*"),
        (loop(EPOCHS, "os.chdir('x')"), "last.pt"),
        ("import torch\nx = 1\n", "last.pt"),
    ],
)
def test_what_may_fit_is_not_noted(tmp_path: Path, text: str, when: str) -> None:
    assert note(tmp_path, text, f"script.resume.when={when}") == ""


def test_a_typed_argument_counts(tmp_path: Path) -> None:
    words = ["script.resume.when=new/last.pt", "script.args=[--out, new]"]
    assert note(tmp_path, loop("args.out + '/last.pt'"), *words) == ""
    assert "saves old/last.pt" in note(
        tmp_path, loop("args.out + '/last.pt'"), words[0], "script.args=[--out, old]"
    )
    assert note(tmp_path, loop(EPOCHS)) == ""
