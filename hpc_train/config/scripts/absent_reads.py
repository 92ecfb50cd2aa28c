"""Files that a script surely opens for reading, by a path in its text, and that are not there."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.fit.data_paths import is_absent
from hpc_train.config.meant_words.near_paths import meant_path
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.schema import Config
from hpc_train.config.scripts.script_call_arguments import bound_once, sure_calls
from hpc_train.config.scripts.script_starts import MOST_MODULES, own_files
from hpc_train.config.validate import search_path_of

# Readers of a file that they are given first; pandas' read_csv and the others take a URL as well.
_READERS = re.compile(
    r"(?:pd|pandas)\.read_(?:csv|table|json|parquet|excel|pickle|feather)"
    r"|(?:np|numpy)\.(?:load|loadtxt|genfromtxt|fromfile)|torch\.load|(?:PIL\.)?Image\.open"
)
_PATHS = ("Path", "pathlib.Path")
_READ_OF_PATH = ("read_text", "read_bytes", "open")
_WRITERS = re.compile(
    r"(?:.*\.)?(?:to_csv|to_json|to_parquet|to_pickle|savez?|savetxt|save_\w+|write_text"
    r"|write_bytes|imsave|savefig|tofile|touch)|os\.(?:rename|replace)"
)
# With one of these a script may bring its files, or begin elsewhere.
_BRINGS = re.compile(
    r"(?i)download|urlretrieve|urlopen|requests\.|subprocess|\bos\.(?:system|popen|exec\w*)|chdir"
    r"|extract|unzip|zipfile|tarfile|shutil|symlink|wget|curl|snapshot|load_dataset|hydra|gdown"
    r"|hf_hub|prepare_data|\bexists\(|isfile\(|is_file\(|\bfake_|FileNotFoundError|OSError|IOError"
)
_NO_PATH = re.compile(r"[*?\[{$\n]|://|\A[~/]|\A[A-Za-z]:|\A-?\Z")


def notes_on_absent_reads(config: Config, workdir: Path) -> Iterator[str]:
    """A line for the first of them; none where the text, or the job, may bring the file.

    Args:
        workdir: Where the job begins, and takes relative paths from.
    """
    path = config.script.path or ""
    tree = script_tree(workdir / path)
    if tree is None or config.container.image or config.hosts or config.env.setup:
        return
    once = bound_once(tree)
    constants = {
        it.targets[0].id: it.value.value
        for it in tree.body
        if isinstance(it, ast.Assign) and isinstance(it.targets[0], ast.Name)
        if isinstance(it.value, ast.Constant) and it.targets[0].id in once
    }
    for call in sure_calls(tree):
        node = _read(call)
        text = node.value if isinstance(node, ast.Constant) else None
        text = constants.get(node.id) if isinstance(node, ast.Name) else text
        if not isinstance(text, str) or _NO_PATH.search(text) or not is_absent(str(workdir / text)):
            continue
        if _may_bring(tree, text, config, workdir):
            return
        said = f"{path}:{call.lineno} opens {text}, which is not in {workdir}, where the job starts"
        beside = Path(path).parent
        near = meant_path(text, workdir) or "put it there, or write the whole path"
        if beside != Path() and (workdir / beside / text).exists():
            near = f"it is in {beside}: submit from there (cd {beside}), or write {beside / text}"
        yield f"{said}: {near}"
        return


def _read(call: ast.Call) -> ast.expr | None:
    """The path of a file that a call opens for reading; None where it opens none so."""
    name = ast.unparse(call.func)
    if name == "open" and _is_for_reading(call, 1):
        return call.args[0] if call.args else None
    if _READERS.fullmatch(name) and call.args:
        return call.args[0]
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_path = isinstance(of, ast.Call) and ast.unparse(of.func) in _PATHS and len(of.args) == 1
    if is_path and isinstance(of, ast.Call) and name.endswith(_READ_OF_PATH):
        return of.args[0] if not name.endswith(".open") or _is_for_reading(call, 0) else None
    return None


def _is_for_reading(call: ast.Call, place: int) -> bool:
    given = [*call.args[place : place + 1], *(it.value for it in call.keywords if it.arg == "mode")]
    mode = given[0].value if given and isinstance(given[0], ast.Constant) else ""
    return isinstance(mode, str) and (not given or mode != "") and not set(mode) & set("wax+")


def _may_bring(tree: ast.Module, text: str, config: Config, workdir: Path) -> bool:
    """Whether the file may come from what the script, or a module of its own, does before."""
    file = (workdir / (config.script.path or "")).resolve()
    folders = [str(file.parent), *search_path_of(config.env, workdir, [])]
    path = [*folders, *sys.path]
    own = own_files(tree, file, path, also_inner=True, also_below=folders)
    texts = [tree, *(it for _, it in own)]
    if len(texts) >= MOST_MODULES or any(_BRINGS.search(ast.unparse(it)) for it in texts):
        return True
    name = Path(text).name
    named = sum(
        isinstance(it, ast.Constant) and isinstance(it.value, str) and name in it.value
        for part in texts
        for it in ast.walk(part)
    )
    return named > 1 or any(_may_write(part, name) for part in texts)


def _may_write(tree: ast.Module, name: str) -> bool:
    """Whether a call writes to a path whose end the text does not tell, or is that name."""
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call)):
        called = ast.unparse(call.func)
        if called == "open":
            writes = not _is_for_reading(call, 1)
        elif called.endswith(".open") and isinstance(call.func, ast.Attribute):
            writes = not _is_for_reading(call, 0) and not _is_for_reading(call, 1)
        else:
            writes = _WRITERS.fullmatch(called.replace("\n", " ")) is not None
        if writes and not _ends_otherwise(call, name, tree):
            return True
    return False


def _ends_otherwise(call: ast.Call, name: str, tree: ast.Module) -> bool:
    """Whether all that may be its path ends in another name."""
    of = [call.func.value] if isinstance(call.func, ast.Attribute) else []  # Path("a.txt")
    ends = [*_ends([*of, *call.args, *(it.value for it in call.keywords)], tree)]
    return bool(ends) and not any(name in it or it in name for it in ends)


def _ends(given: Sequence[ast.expr], tree: ast.Module) -> Iterator[str]:
    """The endings of file names among a call's arguments, and what its names are assigned."""
    names = {it.id for node in given for it in ast.walk(node) if isinstance(it, ast.Name)}
    assigned = [
        it.value
        for it in ast.walk(tree)
        if isinstance(it, ast.Assign) and {ast.unparse(to) for to in it.targets} & names
    ]
    for node in (it for of in (*given, *assigned) for it in ast.walk(of)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and re.search(r"\.[A-Za-z]\w{0,7}\Z", text):
            yield Path(text).name
