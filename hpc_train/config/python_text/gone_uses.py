"""Where a text uses names of Python's own modules and of NumPy that are gone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.config.python_text.gone_names import GONE_WORDS, gone_name, numpy_version
from hpc_train.config.python_text.modules import FoundModule, full_name, read_names
from hpc_train.config.python_text.script_tree import script_tree, words_in
from hpc_train.config.scripts.script_starts import own_files

# By which a text may choose by the version, or puts a name there.
_CHOOSES = {"hasattr", "setattr", "version_info", "hexversion", "version", "__version__", "six"}
_CHOOSES |= {"PY2", "PY3", "LooseVersion"}
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef)
_LAZY = (
    ast.Lambda,
    ast.IfExp,
    ast.BoolOp,
    ast.GeneratorExp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
)
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match)
_MAIN = re.compile(r"__name__ == ['\"]__main__['\"]")


@dataclass(frozen=True)
class GoneUse:
    """A use of such a name.

    Attributes:
        line: Of the file.
        said: What is used, and since when it is gone.
        fix: What to write.
        is_sure: Whether the import of the file, or the start of the script, comes to it.
    """

    line: int
    said: str
    fix: str
    is_sure: bool


def gone_uses(
    module: FoundModule, search_path: Sequence[str], others: Iterable[Path] = ()
) -> list[GoneUse]:
    """By line, the first of each name; nothing of a file that may choose by the version.

    Args:
        module: Of the user's.
        search_path: As `sys.path`.
        others: Files that may put such a name there: `np.float = float`.
    """
    tree = script_tree(module.file) if module.file else None
    if tree is None or module.file is None or words_in(tree) & _CHOOSES:
        return []
    imports = read_names(module.file).imports
    found: dict[str, GoneUse] = {}
    for node, is_sure in _run(tree.body, is_script=module.name == "__main__"):
        if not isinstance(node, ast.Attribute) or node.attr not in GONE_WORDS:
            continue
        written, whole = ast.unparse(node.value), ast.unparse(node)
        of = full_name(written, imports) if written.partition(".")[0] in imports else ""
        numpy = numpy_version(tuple(search_path)) if of == "numpy" else ""
        gone, fix = gone_name(of, node.attr, written=written, numpy=numpy)
        if gone and (whole not in found or (is_sure and not found[whole].is_sure)):
            found[whole] = GoneUse(
                node.lineno, f"has {whole}, which is gone since {gone}", fix, is_sure
            )
    files = {module.file, *others} if found else ()
    return [it for whole, it in found.items() if not _is_put(whole, files)]


def gone_notes(script: Path, search_path: Sequence[str], workdir: Path) -> Iterator[str]:
    """A line for each that a function of a script has, or of the files that it imports."""
    tree = script_tree(script)
    below = own_files(tree, script, search_path) if tree else ()
    files = [script, *(file for file, _ in below)]
    told: set[str] = set()
    for file in files:
        name = "__main__" if file == script else file.stem
        for use in gone_uses(FoundModule(name, file, ()), search_path, files):
            if use.said not in told:
                told.add(use.said)
                shown = file.relative_to(workdir) if file.is_relative_to(workdir) else file
                yield f"{shown}:{use.line} {use.said}: {use.fix}"


def _is_put(whole: str, files: Iterable[Path]) -> bool:
    """Whether a line puts the name there."""
    put = re.compile(rf"\.{whole.rpartition('.')[2]}\s*=[^=]|\bsetattr\b")
    return any(put.search(it.read_text("utf-8", errors="replace")) for it in files)


def _run(
    body: Iterable[ast.AST], *, is_script: bool, is_sure: bool = True
) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes that nobody catches an error of, and whether the import itself comes to each."""
    for node in body:
        yield node, is_sure
        now, later = _parts(node, is_script=is_script)
        yield from _run(now, is_script=is_script, is_sure=is_sure)
        yield from _run(later, is_script=is_script, is_sure=False)


def _parts(node: ast.AST, *, is_script: bool) -> tuple[list[ast.AST], list[ast.AST]]:
    """What of a node is run with it, and what later, or under a condition."""
    below = list(ast.iter_child_nodes(node))
    if isinstance(node, _LATER):
        defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        return [*node.decorator_list, *defaults], [*node.body]
    if isinstance(node, ast.Try):
        return [], [*node.orelse, *node.finalbody]
    if isinstance(node, ast.AnnAssign):
        value: list[ast.AST] = [node.value] if node.value else []
        return value, []
    if is_script and isinstance(node, ast.If) and _MAIN.fullmatch(ast.unparse(node.test)):
        return [*node.body], []
    return ([], below) if isinstance(node, (*_BLOCKS, *_LAZY)) else (below, [])
