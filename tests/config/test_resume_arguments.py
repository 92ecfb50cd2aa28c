"""`script.resume`: held against the script's own parser, and told as the script takes it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

PARSED = """\
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
{more}args = parser.parse_args()
for epoch in range(args.epochs):
    torch.save({{}}, f"out/{{epoch}}.pt")
"""
NEWEST = 'args: [--resume, "{newest}"]'
TYPED = "script.resume={when: out/a.pt, " + NEWEST + "}"
REFUSES = "train.py refuses them, as a job that follows gives them: "
ALONE = (
    "write script.resume.when=out/a.pt, and let train.py load it itself where it is there: none of"
    " its options (--epochs) is known to take one"
)


def script(*options: str) -> str:
    return PARSED.format(more="".join(f"parser.add_argument({it})\n" for it in options))


def told(folder: Path, text: str, *words: str, behind: tuple[str, ...] = ()) -> tuple[str, str]:
    """What is refused, with its fix."""
    write(folder, text, "train.py")
    try:
        api.load("train.py", *words, arguments=behind or None)
    except ConfigError as error:
        return error.message.removeprefix("command line: script.resume"), error.hint or ""
    return "", ""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("options", "words", "said", "fix"),
    [
        ((), TYPED, "unrecognized arguments: --resume out/a.pt", ALONE),
        (
            ("'--ckpt'",),
            TYPED,
            "unrecognized arguments: --resume out/a.pt",
            "write 'script.resume={when: out/a.pt, args: [--ckpt, \"{newest}\"]}'",
        ),
        (
            ("'--resume', action='store_true'",),
            TYPED,
            "unrecognized arguments: out/a.pt",
            "--resume takes no value: write args: [--resume]",
        ),
        (
            ("'--resume'",),
            "script.resume={when: out/a.pt, args: [--resume]}",
            "argument --resume: expected one argument",
            (
                "--resume takes a value: write 'script.resume={when: out/a.pt, args: [--resume, "
                '"{newest}"]}\''
            ),
        ),
        (
            (),
            "script.resume={when: out/a.pt, args: [--epoch5]}",
            "unrecognized arguments: --epoch5",
            "did you mean '--epochs'?",
        ),
        (
            (),
            "script.resume={when: out/a.pt, args: [--epochs, '{newest}']}",
            "argument --epochs: invalid int value: 'out/a.pt'",
            "correct them: a job that follows adds them to script.args",
        ),
    ],
)
def test_arguments_that_the_second_attempt_would_fail_at_are_refused(
    tmp_path: Path, options: tuple[str, ...], words: str, said: str, fix: str
) -> None:
    expected = (f".args: {REFUSES}{said}", fix)
    assert told(tmp_path, script(*options), words) == expected
    assert told(tmp_path, script(*options), words, behind=("--epochs", "5")) == expected


@pytest.mark.parametrize(
    ("text", "words", "behind"),
    [
        (script("'--resume'"), TYPED, ()),
        (script("'--resume_from'"), TYPED, ("--epochs", "5")),  # argparse takes its beginning
        (script("'--resume', action='store_true'"), TYPED.replace(', "{newest}"', ""), ()),
        (script("'data'", "'--resume'"), TYPED, ("data.bin",)),
        (script().replace("parse_args()", "parse_known_args()[0]"), TYPED, ()),
        (script().replace("parser.add", "import sys; sys.argv; parser.add"), TYPED, ()),
        ("from lib import options\noptions()\n", TYPED, ()),
        (script(), "script.resume.when=out/a.pt", ()),
        (script("'--lr'"), TYPED, ("--lr", "{lr}")),
    ],
)
def test_what_the_script_may_take_is_not_refused(
    tmp_path: Path, text: str, words: str, behind: tuple[str, ...]
) -> None:
    write(tmp_path, "def options(): ...\n", "lib.py")
    said, _ = told(tmp_path, text, words, behind=behind)
    assert ".args: train.py refuses them" not in said


FORM = "write 'script.resume={when: %s, args: [%s]}'"


@pytest.mark.parametrize(
    ("text", "word", "fix"),
    [
        (script(), "out/a.pt", ALONE),
        (script("'--resume'"), "a.pt", FORM % ("a.pt", '--resume, "{newest}"')),
        (script("'--load-checkpoint'"), "5", FORM % ("out/*.pt", '--load-checkpoint, "{newest}"')),
        (script("'--resume'"), "a {b}.pt", FORM % ('"a {b}.pt"', '--resume, "{newest}"')),
        (script("'--resume', action='store_true'"), "a.pt", FORM % ("a.pt", "--resume")),
        (
            "import torch\ntorch.ones(1)\n",
            "a.pt",
            "write script.resume.when=a.pt, and let train.py load it itself where it is there",
        ),
        (
            "import sys\nprint(sys.argv)\n",
            "a.pt",
            FORM % ("a.pt", 'OPTION, "{newest}"') + ", with the option of train.py for a"
            " checkpoint in OPTION's place; or script.resume.when=a.pt where it finds it itself",
        ),
    ],
)
def test_what_is_told_has_the_typed_file_and_an_option_of_the_scripts_own(
    tmp_path: Path, text: str, word: str, fix: str
) -> None:
    said, hint = told(tmp_path, text, f"script.resume={word}")
    assert said.startswith(" is ")
    assert hint == fix
    typed = shlex.split(hint.removeprefix("write ").partition(", and")[0].partition(", with")[0])
    assert told(tmp_path, text, *typed) == ("", "")


def test_in_a_file_it_is_told_as_a_file_has_it(tmp_path: Path) -> None:
    write(tmp_path, script("'--resume'"), "train.py")
    path = write(tmp_path, "script:\n  path: train.py\n  resume: out/*.pt\n")
    with pytest.raises(ConfigError) as caught:
        api.load(path)
    assert caught.value.hint == 'write resume: {when: out/*.pt, args: [--resume, "{newest}"]}'
