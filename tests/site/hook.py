"""MkDocs calls this while it builds the site (mkdocs.yml, `hooks`).

What the README, the changelog or the code say already is not written a second time in docs/: such
pages are made here. A link to a file of the repository leads to a page that shows it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tests.site import from_code

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?(?=\))")
TABLE_LINE = re.compile(r"^\|.*$", re.MULTILINE)
IN_TABLE = re.compile(r"`[^`]*`|\]\[")
SHOWN = "files.md"  # the page with the files of the repository that others name
# Files outside of docs/ that are a page as they are.
WHOLE = {
    "README.zh.md": "chinese.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "tests/cluster/README.md": "test-cluster.md",
}
# Pages of sections of the README: title, sections; "" is what stands before the first one.
OF_README = {
    "index.md": ("hpc-train", ("", "What you type, and what you see")),
    "start.md": (
        "Start in five minutes",
        ("Two commands", "In a project of your own", "The config"),
    ),
    "i-have-a.md": ("I have a ...", ("I have a ...", "Machines without a scheduler")),
    "troubleshooting.md": ("Troubleshooting", ("Troubleshooting by symptom",)),
    "commands.md": ("Commands", ("Commands",)),
    "messages.md": ("Messages and exit codes", ("Exit codes",)),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and put pages of docs/ that mkdocs.yml does not name behind."""
    shown: set[str] = set()
    for name, text in made_pages().items():
        text = with_links_of_site(text, "", shown)
        files.append(File.generated(config, name, content=text))
    for page in sorted((ROOT / "docs").glob("*.md")):
        with_links_of_site(page.read_text(encoding="utf-8"), "docs", shown)
    files.append(File.generated(config, SHOWN, content=from_code.files_page(ROOT, sorted(shown))))
    config.nav = with_all_pages(config.nav or [], {file.src_uri for file in files})
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of docs/ to files outside of it, and tables as Python-Markdown reads them."""
    text = with_links_of_site(markdown, "docs", set())
    return TABLE_LINE.sub(lambda line: IN_TABLE.sub(as_here, line[0]), text)


def as_here(found: re.Match[str]) -> str:
    """In a table GitHub wants `\\|` in code; and `[x][y]` is no link there nor here."""
    return "]&#91;" if found[0] == "][" else found[0].replace(r"\|", "|")


def made_pages() -> dict[str, str]:
    """By the name of the page: its text, with the links of the file that it is from."""
    readme = sections((ROOT / "README.md").read_text(encoding="utf-8"))
    pages = {}
    for name, (title, wanted) in OF_README.items():
        parts = [f"## {part}\n{readme[part]}" if part not in ("", title) else readme[part]
                 for part in wanted]  # fmt: skip
        pages[name] = f"# {title}\n\n" + "\n".join(parts)
    pages["commands.md"] += from_code.COMMAND_PAGES
    pages["messages.md"] += from_code.messages_page(ROOT / "hpc_train")
    for file, name in WHOLE.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        pages[name] = text if file.count("/") == 0 else beside(text, file)
    return pages


def sections(text: str) -> dict[str, str]:
    """The parts of a page by their headings of the second level; the title is left out."""
    parts = re.split(r"^## (.*)\n", text.partition("\n")[2], flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def beside(text: str, file: str) -> str:
    """Links of a file below the root, as they would stand at the root."""
    folder = posixpath.dirname(file)
    return LINK.sub(lambda to: posixpath.normpath(f"{folder}/{to[1]}") + (to[2] or ""), text)


def with_links_of_site(text: str, folder: str, shown: set[str]) -> str:
    """Turn links to files of the repository into links of pages; `shown` takes those to show."""

    def turned(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        anchor = link[2] or ""
        if path.startswith("docs/"):
            return path.removeprefix("docs/") + anchor
        if path in WHOLE:
            return WHOLE[path] + anchor
        if path == "README.md":
            return "index.md" + anchor
        if (ROOT / path).is_file():
            shown.add(path)
            return f"{SHOWN}#{from_code.anchor(path)}"
        return link[0]  # of a page that was made, or nowhere, which the strict build tells

    return LINK.sub(turned, text)


def with_all_pages(nav: list[Any], names: set[str]) -> list[Any]:
    """The navigation, with a last part for the pages that it does not name."""
    named = set(re.findall(r"[\w-]+\.md", str(nav)))
    rest = sorted(name for name in names - named if name.endswith(".md") and name != SHOWN)
    return [*nav, {"More": [*rest, {"Files named here": SHOWN}]}]
