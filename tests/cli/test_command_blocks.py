"""Each command that the README and docs/ show is one that the command line understands.

In front of each block of commands stands, as a comment, what holds it:
`<!-- run: tests/x.py::test_y -->` names the test that types it; `<!-- dry run -->`: its submissions
are typed here with --dry-run; `<!-- not run: WHY -->`: options and arguments are parsed here.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from hpc_train.cli.main import cli
from tests.cli.conftest import ROOT
from tests.cli.test_readme_rows import project
from tests.cli.test_resume import CONFIG

__all__ = ["project"]  # the fixture

PAGES = (
    "README.md",
    "README.zh.md",
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^    \S.*\n)+)", re.M | re.S)
MARK = re.compile(r"<!-- (run: (?P<test>\S+)|dry run|not run: \S.*?) -->\n\Z")
NO_COMMANDS = ("yaml", "python", "text")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    text: str
    mark: re.Match[str] | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[str]:
        """The lines that begin with our command; of a console those behind its prompt."""
        is_console = "$ " in self.text
        for line in self.text.splitlines():
            if is_console and not line.startswith("$ "):
                continue
            typed = re.sub(r"\s#\s.*", "", line.strip().removeprefix("$ "))
            if typed.startswith("hpc-train "):
                yield typed.removesuffix(" ...")


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            language, inside, indented = match.groups()
            is_ours = re.search(r"^\s*(\$ )?(hpc-train|make|pip|sbatch) ", match[0], re.M)
            if language in NO_COMMANDS or not is_ours:
                continue
            before = text[: match.start()]
            mark = MARK.search(before)
            found.append(Block(page, before.count("\n") + 1, inside or indented, mark))
    return found


BLOCKS = blocks()
# In tables and sentences, where a whole command stands between backticks.
IN_TEXT = sorted(
    {
        re.sub(r"\\\|", "|", command)
        for page in PAGES
        for command in re.findall(
            r"`(hpc-train [a-z][^`\n]*)`", (ROOT / page).read_text(encoding="utf-8")
        )
        if not re.search(r"\.\.\.|\[|\||COMMAND$", command)
    }
)


def parsed(command: str) -> click.Context:
    """The command line as click reads it; nothing is run."""
    words = shlex.split(command)[1:]
    found = cli.get_command(click.Context(cli), words[0])
    assert found is not None, f"no such command: {words[0]}"
    while isinstance(found, click.Group):
        words = words[1:]
        found = found.get_command(click.Context(found), words[0])
        assert found is not None, words
    return found.make_context(words[0], words[1:])


def test_there_are_blocks_on_many_pages() -> None:
    assert len({block.page for block in BLOCKS}) > 8
    assert sum(len(list(block.commands())) for block in BLOCKS) > 30
    assert len(IN_TEXT) > 50


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_what_holds_a_block_stands_in_front_of_it(block: Block) -> None:
    assert block.mark, f"write a comment in front of it: {__doc__}"
    if test := block.mark["test"]:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\b", (ROOT / file).read_text(encoding="utf-8"), re.M), test


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_command_of_a_block_is_understood(block: Block) -> None:
    for command in block.commands():
        parsed(command)


@pytest.mark.parametrize("command", IN_TEXT)
def test_every_command_in_a_sentence_is_understood(command: str) -> None:
    # What is left out there (`hpc-train submit --sweep`) is no mistake; an unknown word is one.
    with contextlib.suppress(click.MissingParameter, click.BadOptionUsage):
        parsed(re.sub(r"(--\w+) [NRK]\b", r"\1 4", command))


DRY = [(block, command) for block in BLOCKS if block.mark and block.mark[1] == "dry run"
       for command in block.commands() if command.startswith("hpc-train submit ")]  # fmt: skip


@pytest.mark.parametrize(("block", "command"), DRY, ids=[command for _, command in DRY])
def test_a_dry_run_of_a_command_goes_well(hpc, project: Path, block: Block, command: str) -> None:
    (project / "cfg.yaml").write_text(CONFIG)
    words = shlex.split(command)[1:]
    place = words.index("--") if "--" in words else len(words)
    said = hpc(*words[:place], "--dry-run", *words[place:])
    assert said.code == 0, said
    assert not (project / "runs").exists()


def test_a_wrong_option_is_seen() -> None:
    with pytest.raises(click.NoSuchOption):
        parsed("hpc-train submit --gpu-count 3 cfg.yaml")
    with pytest.raises(click.NoSuchOption):
        parsed("hpc-train cancel --quick RUN")
