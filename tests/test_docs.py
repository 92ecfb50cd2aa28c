"""What the maps for newcomers say of the code is true of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.cli.main import INTERRUPTED
from hpc_train.config.keys import TYPES
from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import Outcome
from hpc_train.supervisor import refusal, run_folder
from hpc_train.supervisor.outcome import JUDGES
from tests import config_page

ROOT = Path(__file__).parents[1]
MAPS = ("docs/architecture.md", "CONTRIBUTING.md")
A_FILE = re.compile(r"`([\w./]+/[\w.]+\.(?:py|md|txt|yaml)|\w+\.py)`")


@pytest.mark.parametrize("page", MAPS)
def test_every_file_that_a_map_names_is_there(page: str) -> None:
    named = set(A_FILE.findall((ROOT / page).read_text(encoding="utf-8")))
    assert len(named) > 10
    missing = {
        name
        for name in named
        if "NAME" not in name
        and not (ROOT / "hpc_train" / name).is_file()
        and not (ROOT / name).is_file()
    }
    assert missing == set()


def test_the_map_has_the_row_of_each_outcome() -> None:
    for judge in (refusal.judge_refusal, run_folder.judge_moved):
        assert judge.__name__ in JUDGES
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))
    for outcome in Outcome:
        judges = {f"`{name}`" for name, says in JUDGES.items() if outcome in says}
        follows = outcome.follows
        what = "goes on, counts against `requeue.budget`" if follows.is_fault else "goes on"
        if follows.state is not None:
            what = f"ends as {follows.state.value}: {follows.reason}"
        named, _, follows_then = rows[outcome.value].partition(" | ")
        assert (set(named.split(", ")), follows_then) == (judges, what)


def test_what_a_map_calls_a_table_is_one() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in MAPS)
    for table in set(re.findall(r"`([A-Z]{4}[A-Z_]+)` of `([\w/]+\.py)`", text)):
        name, file = table
        path = ROOT / "hpc_train" / file if not file.startswith("tests") else ROOT / file
        assert re.search(rf"^{name}\b", path.read_text(encoding="utf-8"), re.MULTILINE), table


def test_the_page_of_the_config_is_what_the_schema_says() -> None:
    text = config_page.PAGE.read_text(encoding="utf-8")
    assert config_page.page(text) == text, "make config-page writes it anew"


def test_every_key_of_the_config_is_on_its_page_with_a_meaning() -> None:
    text = config_page.PAGE.read_text(encoding="utf-8")
    meanings = dict(re.findall(r"^\| `([\w.]+)` \|.*\| (.*) \|$", text, re.MULTILINE))
    assert set(TYPES) <= set(meanings)
    assert all(meanings.values())


def test_exit_codes_stay_and_the_readme_names_each() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Exit codes")[2].partition("\n## ")[0]
    told = [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    errors = (HpcTrainError, *HpcTrainError.__subclasses__())
    ours = {one.exit_code for one in errors if one.__module__ == HpcTrainError.__module__}
    assert {*ours, 0, INTERRUPTED} == set(told)
    # Scripts of users compare with these: docs/stability.md.
    assert told == [0, 1, 2, 3, 4, 5, 10, 11, 12, 130]
    assert [one.value for one in Outcome] == [
        *("completed", "user_error", "preempted", "timeout", "node_failure"),
        *("network_failure", "hang", "out_of_memory", "cancelled"),
    ]


def test_every_key_that_a_page_names_is_one() -> None:
    sections = sorted({key.partition(".")[0] for key in TYPES if "." in key})
    named = re.compile(rf"`((?:{'|'.join(sections)})\.[a-z_]+)\b")
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        if page.name not in ("CHANGELOG.md",):
            assert set(named.findall(page.read_text(encoding="utf-8"))) <= set(TYPES), page
