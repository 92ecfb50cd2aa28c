"""Nothing that an installation brings is under the GPL or AGPL, and the page names all of it."""

from __future__ import annotations

import pytest

from tests.licences_page import FORBIDDEN, PAGE, libraries


def test_no_library_of_an_installation_is_under_the_gpl() -> None:
    found = libraries()
    assert {"torch", "click", "aiohttp"} <= {one.name for one in found}
    assert [one for one in found if not one.licence or FORBIDDEN.search(one.licence)] == []


@pytest.mark.parametrize(
    ("licence", "forbidden"),
    [
        ("GPL-3.0-or-later", True),
        ("AGPL-3.0-only", True),
        ("GNU General Public License v3 (GPLv3)", True),
        ("GNU Affero General Public License v3", True),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", False),
        ("LGPL-2.1-or-later", False),
        ("MPL-2.0 AND MIT", False),
    ],
)
def test_which_licences_are_refused(licence: str, forbidden: bool) -> None:
    assert bool(FORBIDDEN.search(licence)) == forbidden


def test_the_page_has_the_row_of_each() -> None:
    text = PAGE.read_text(encoding="utf-8")
    ours = [one for one in libraries() if not one.name.startswith(("nvidia-", "triton", "cuda-"))]
    missing = [one for one in ours if f"| {one.name} | {one.licence} |" not in text]
    assert missing == [], "make licences writes it anew"
