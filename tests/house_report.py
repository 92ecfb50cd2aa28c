"""`make house`: how large the package is and where, and what must not be in it.

Fails on a file over 400 lines, of the tests and benchmarks as well, on eight lines or more that
stand twice, and on a private name of a library outside the adapter.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house import private_uses

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hpc_train"
BESIDE = ("tests", "benchmarks")
LONGEST_FILE = 400
LONG_FUNCTION = 40
SHOWN = 10
SAME_LINES = 8


def lines_of(path: Path) -> int:
    """Lines of a file, blank ones and comments included."""
    return len(path.read_text(encoding="utf-8").splitlines())


def long_functions(path: Path) -> Iterator[tuple[int, str]]:
    """Length and name of each function over `LONG_FUNCTION` lines, its docstring not counted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                said = node.body[0]
                length -= (said.end_lineno or said.lineno) - said.lineno + 1
            if length > LONG_FUNCTION:
                yield length, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def twice() -> str:
    """Runs of lines that stand twice, as pylint tells them; empty for none."""
    options = ["--disable=all", "--enable=duplicate-code", f"--min-similarity-lines={SAME_LINES}"]
    argv = [sys.executable, "-m", "pylint", "--score=n", *options, str(PACKAGE)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def main() -> int:
    """Print the report; 1 where something is against the rules."""
    files = {path: lines_of(path) for path in sorted(PACKAGE.rglob("*.py"))}
    folders: Counter[str] = Counter()
    for path, count in files.items():
        folders[path.relative_to(PACKAGE).parts[0]] += count
    print(f"{sum(files.values()):6}  hpc_train, {len(files)} files")
    for folder, count in sorted(folders.items()):
        print(f"{count:6}    {folder}")
    print("\nthe largest files")
    for path in sorted(files, key=lambda path: -files[path])[:SHOWN]:
        print(f"{files[path]:6}  {path.relative_to(ROOT)}")
    print(f"\nfunctions over {LONG_FUNCTION} lines")
    for length, where in sorted(item for path in files for item in long_functions(path))[::-1]:
        print(f"{length:6}  {where}")
    beside = {path: lines_of(path) for name in BESIDE for path in (ROOT / name).rglob("*.py")}
    wrong = [
        f"{path.relative_to(ROOT)} has {count} lines, and {LONGEST_FILE} are allowed"
        for path, count in sorted({**files, **beside}.items())
        if count > LONGEST_FILE
    ]
    wrong += [str(use) for use in private_uses(list(files))]
    if repeated := twice():
        wrong.append(repeated)
    for trouble in wrong:
        print(f"\nhouse: {trouble}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
