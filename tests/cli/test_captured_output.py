"""`RUN=$(hpc-train submit CFG)`: what `submit` has printed, typed where a RUN belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.run_of_yesterday import project, run, sweep

__all__ = ["project", "run", "sweep"]
COMMANDS = ("status", "logs", "cancel", "test", "resume", "checkpoints", "diagnose", "rm")


def printed(hpc, *words: str) -> str:
    """Without the last newline, as a shell has it."""
    said = hpc(*words)
    assert said.code == 0, said
    return str(said.out).rstrip("\n")


def newest(name: str = "x") -> str:
    return max(it.name for it in Path("runs", name).iterdir())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_quoted", [True, False])
def test_the_output_of_submit_is_told_with_the_id_in_it(
    hpc, project: Path, command: str, is_quoted: bool
) -> None:
    """The whole text was told back; without quotes, that there is no option -f."""
    text = printed(hpc, "submit", "cfg.yaml")
    said = hpc(command, *([text] if is_quoted else text.split()))
    assert said.code == 2
    error, fix = said.err.splitlines()
    what = f"what stands behind {command} is the output of hpc-train submit, and no RUN"
    assert error == f"error: {what}"
    gets = "RUN=$(hpc-train submit CFG --json | jq -r .run)"
    assert fix == f"  fix: hpc-train {command} {newest()}; in a script: {gets}"
    assert hpc("status", newest()).code == 0


def test_the_document_is_told_as_well(hpc, project: Path) -> None:
    text = printed(hpc, "submit", "cfg.yaml", "--json")
    for words in ([text], text.split()):
        assert f"fix: hpc-train status {newest()}; in a script" in hpc("status", *words).err


def test_options_may_stand_in_front_of_it(hpc, project: Path) -> None:
    text = printed(hpc, "submit", "cfg.yaml")
    assert f"fix: hpc-train logs {newest()}; in a " in hpc("logs", "--rank", "0", text).err


def test_what_others_print_is_told_with_their_commands(hpc, run) -> None:
    text = printed(hpc, "test", "x")
    said = hpc("status", text).err
    assert "is the output of hpc-train test, and no RUN" in said
    assert f"hpc-train status {newest('x-test')}; in a script: RUN=$(hpc-train test RUN --" in said
    said = hpc("status", printed(hpc, "resume", "x")).err
    assert f"status {newest()}; in a script: RUN=$(hpc-train resume RUN --json | jq" in said


def test_a_sweeps_id_has_another_key(hpc, sweep: str) -> None:
    words = ("submit", "cfg.yaml", "name=sw", "--sweep", "model.init_args.lr=0.1,0.2")
    text = printed(hpc, *words)
    name = text.splitlines()[2].split()[-1]
    gets = "RUN=$(hpc-train submit CFG --json | jq -r .sweep)"
    for words in ((text,), tuple(text.split())):
        assert f"hpc-train status {name}; in a script: {gets}" in hpc("status", *words).err


@pytest.mark.parametrize("words", ["status submitted", "status run", "status {", "logs resumed -f"])
def test_words_that_begin_alike_are_told_as_ever(hpc, run, words: str) -> None:
    assert "no run answers to" in hpc(*words.split()).err
