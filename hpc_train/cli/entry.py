"""The console script: `list` at once, everything else through click.

click takes longer to import than a thousand runs take to be looked at.
"""

from __future__ import annotations

import gc
import os
import sys

__all__ = ["main"]

# A command lives for a fraction of a second; Python would collect every 700 new objects.
COLLECT_EVERY = 100_000


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(COLLECT_EVERY)
    match sys.argv[1:]:
        case ["list"]:
            listed = _list(None)
        case ["list", "--runs-dir", folder]:
            listed = _list(folder)
        case _:
            listed = False
    if not listed:
        from hpc_train.cli.main import main as everything

        everything()


def _list(folder: str | None) -> bool:
    """Print the table; False where there is none to print, and the command has to say so."""
    from hpc_train.backends.glance import rows
    from hpc_train.cli.table import table_lines
    from hpc_train.report.columns import LIST_HEADER
    from hpc_train.store.folders import run_folders

    folders = [os.path.abspath(folder)] if folder else run_folders(os.environ, os.getcwd())  # noqa: PTH100, PTH109
    if not all(map(os.path.isdir, folders)) or not (found := rows(os.environ, folders)):
        return False
    header, *lines = table_lines(LIST_HEADER, found)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        header = f"\x1b[1m{header}\x1b[0m"
    try:
        sys.stdout.write("\n".join([header, *lines, ""]))
        sys.stdout.flush()
    except BrokenPipeError:  # `hpc-train list | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True
