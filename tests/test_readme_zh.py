"""The Chinese README says what the English one does: same parts, commands, links and blocks."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```\w*\n.*?^```$", re.M | re.S)


def links(text: str) -> list[str]:
    """Where its links lead, in order; those to each other's language stand for one another."""
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return ["the other language" if link.startswith("README") else link for link in found]


def code(text: str) -> list[str]:
    """What stands between backticks outside of the blocks, in each row or paragraph sorted."""
    return sorted(re.findall(r"`([^`\n]+)`", BLOCK.sub("", text)))


def test_the_parts_are_the_same() -> None:
    levels = [re.findall(r"^(#+) ", BLOCK.sub("", text), re.M) for text in (ENGLISH, CHINESE)]
    assert levels[0] == levels[1]
    assert len(levels[0]) > 8


def test_the_blocks_are_the_same_and_so_is_what_holds_them() -> None:
    assert BLOCK.findall(CHINESE) == BLOCK.findall(ENGLISH)
    marks = [re.findall(r"^<!-- .* -->$", text, re.M) for text in (ENGLISH, CHINESE)]
    assert marks[0] == marks[1]


def test_the_tables_have_the_same_rows() -> None:
    rows = [re.findall(r"^\|.*\|$", text, re.M) for text in (ENGLISH, CHINESE)]
    assert len(rows[0]) == len(rows[1])
    for english, chinese in zip(*rows, strict=True):
        assert code(chinese) == code(english), chinese
        assert sorted(links(chinese)) == sorted(links(english)), chinese


def test_the_commands_the_keys_and_the_links_are_the_same() -> None:
    assert code(CHINESE) == code(ENGLISH)
    assert links(CHINESE) == links(ENGLISH)


def test_it_is_chinese() -> None:
    text = BLOCK.sub("", CHINESE)
    assert len(re.findall(r"[\u4e00-\u9fff]", text)) > 1500
