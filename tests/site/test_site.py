"""The site is built strictly, holds what the code says, and asks nobody else for anything."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.cli.main import COMMANDS
from hpc_train.config.keys import TYPES
from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import Outcome, RankExit, RunState
from tests.site import from_code, hook

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make docs` builds it; a link or an anchor that leads nowhere is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8")))


def test_no_page_needs_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    # A link to click is no need: what a browser fetches by itself is.
    fetched = re.compile(
        r"""(?:src=|<link[^>]*href=)["']?(?:https?:)?//[^"'\s>]*|url\(["']?https?:[^)]*"""
    )
    for file in [*pages, *site.glob("*.css")]:
        assert fetched.findall(file.read_text(encoding="utf-8")) == [], file


def test_the_search_knows_a_message_a_key_and_an_option(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    text = html.unescape(html.unescape(" ".join(one["text"] for one in index["docs"])))
    for word in ("no run answers to", "slurm.signal_lead_s", "--at-most", "symbol_error"):
        assert word in text
    assert (site / "search/search_index.js").is_file()  # for pages that are opened as files


def test_every_part_of_the_readme_is_on_one_page() -> None:
    parts = hook.sections((ROOT / "README.md").read_text(encoding="utf-8"))
    shown = [part for _, wanted in hook.OF_README.values() for part in wanted]
    assert sorted(shown) == sorted(parts)


def test_every_command_and_key_has_its_place(site: Path) -> None:
    commands, keys = text_of(site / "commands.html"), text_of(site / "config.html")
    assert [name for name in COMMANDS if f"hpc-train {name} [OPTIONS]" not in commands] == []
    assert "hpc-train config show" in commands
    assert [key for key in TYPES if key not in keys] == []


def test_every_exit_code_state_outcome_and_message_has_its_place(site: Path) -> None:
    text = text_of(site / "messages.html")
    words = [one.value for one in (*Outcome, *RunState)] + [str(one.value) for one in RankExit]
    assert [word for word in words if word not in text] == []
    classes = from_code.error_classes(ROOT / "hpc_train")
    found = list(from_code.refusals(ROOT / "hpc_train", classes))
    assert len(found) > 300
    secret = "{place}env.variables.{name} looks like a secret"
    (fix,) = (one.fix for one in found if one.message.startswith(secret))
    assert fix.startswith("list it in env.passthrough")
    said = " ".join(text.split())
    assert [one for one in found if " ".join(one.message.split()) not in said] == []


def test_an_error_class_is_read_with_its_exit_code() -> None:
    classes = from_code.error_classes(ROOT / "hpc_train")
    known = [HpcTrainError, *HpcTrainError.__subclasses__()]
    assert {one.__name__: classes[one.__name__] for one in known} == {
        one.__name__: one.exit_code for one in known
    }
    assert classes["PeerError"] == RankExit.NETWORK


def test_the_python_page_has_each_name_of_the_interface(site: Path) -> None:
    import hpc_train

    text = text_of(site / "python.html")
    assert [name for name in hpc_train.__all__ if name not in text] == []


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[x](docs/config.md#classes)", "[x](config.md#classes)"),
        ("[x](CHANGELOG.md)", "[x](changelog.md)"),
        ("[x](configs/digits.yaml)", "[x](files.md#configs-digits-yaml)"),
        ("[x](#here)", "[x](#here)"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(link: str, expected: str) -> None:
    assert hook.with_links_of_site(link, "", set()) == expected


def test_a_page_that_the_navigation_does_not_name_is_put_behind() -> None:
    nav = hook.with_all_pages([{"Begin": ["index.md"]}], {"index.md", "new.md", "files.md"})
    assert nav[-1] == {"More": ["new.md", {"Files named here": "files.md"}]}
