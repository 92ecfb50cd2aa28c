"""An import inside of a function that finds no package: the submission reads those of modules."""

from __future__ import annotations

import ast
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.meant_words.moved_names import TORCH_SIX, instead_of_six
from hpc_train.config.python_text.distributions import install
from hpc_train.config.python_text.lacking_packages import fix_of_import
from hpc_train.config.python_text.python_folders import is_own

# torch's and Lightning's own words, which tell no name beside them.
_TOLD_OF_ONNX = re.compile(
    r"^(?:Module |`\w+\.to_onnx\(.*\)` requires `)(onnx\w*)\b.* (?:is not|be) installed"
)
_BRINGS = {"onnxscript": "onnxscript", "onnx_ir": "onnxscript"}  # with onnx itself


def absent_package(error: BaseException) -> str:
    """What to do about it, as of an import of a module; empty where it is no line of the user's.

    An unpickled class and a package's own optional import name modules, too, and tell less.
    """
    if exported := _of_an_export(error):
        return exported
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    if last and name == TORCH_SIX:
        of_it = [
            names for module, names in _imports((last[0].line or "").strip()) if module == name
        ]
        return instead_of_six(of_it[0]) if of_it else ""
    if not name.isidentifier() or not last:
        return ""  # `torch.nm`: the package is there
    file, folder = Path(last[0].filename), Path.cwd()
    for module, names in _imports((last[0].line or "").strip()):
        if module.partition(".")[0] == name and is_own(file, str(folder)):
            return fix_of_import(module, names, file, [str(folder), *sys.path])
    return ""


def _of_an_export(error: BaseException) -> str:
    """What torch.onnx lacks, which imports it as it is called (torch/onnx/_internal)."""
    if found := _TOLD_OF_ONNX.search(str(error)):
        return install(found[1])
    last = traceback.extract_tb(error.__traceback__)[-1:]
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    is_torchs = bool(last) and Path(last[0].filename).as_posix().find("/torch/onnx/") > 0
    return install(_BRINGS.get(name, name)) if is_torchs and name in (*_BRINGS, "onnx") else ""


def _imports(line: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The modules that a line imports, and the names from them."""
    try:
        (statement,) = ast.parse(line).body
    except (SyntaxError, ValueError):  # of several lines, or of a block
        return
    if isinstance(statement, ast.ImportFrom):
        yield statement.module or "", tuple(it.name for it in statement.names)
    elif isinstance(statement, ast.Import):
        yield from ((it.name, ()) for it in statement.names)
