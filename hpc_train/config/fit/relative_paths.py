"""Relative paths among the arguments of model and data that are not where the job begins."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.fit.data_paths import argument_texts, is_absent, is_read, names_a_path
from hpc_train.config.meant_words.near_paths import meant_path, path_from
from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.specs import read_object

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

_FILE = re.compile(r"\.[A-Za-z]\w{0,7}$")
_WEIGHTS = re.compile(r"\.pth?$")
_OF_A_FOLDER = re.compile(r"root|dir|director(?:y|ies)|folder")
# With one of these in its module a class may make the path itself, look whether it is there, or
# have it begin elsewhere.
_MAKES = re.compile(
    r"download|mkdir|makedirs|urlretrieve|load_dataset|prepare_data|exists\(|is_file\(|is_dir\("
    r"|__file__|environ|getenv|expandvars|chdir|original_cwd|isfile|isdir|\bsave(?!_hyperparameters)|\bdump|to_csv|to_parquet|write|FileNotFoundError|OSError"
)


def notes_on_relative_paths(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """A line for each path that the class does not make itself, as far as its module tells.

    Args:
        workdir: Where the job begins.
    """
    config = loaded.config
    if config.container.image or config.hosts:
        return
    for key, spec in (("model", config.model), ("data", config.data)):
        class_path, arguments = read_object(spec, key, loaded.origins)
        found = {
            f"{key}.init_args.{name}": text
            for name, text in argument_texts(_plain(arguments)).items()
            if _is_meant(name, text, workdir) and is_absent(str(workdir / text))
        }
        code = _code_of(class_path, workdir) if found else ""
        if code and not _MAKES.search(_without_refusals(code)):
            folders = [it for it in arguments if _OF_A_FOLDER.search(it)]
            for full, text in found.items():
                if _is_below_another(full.split(".")[2], folders, code):
                    continue
                if _WEIGHTS.search(text) and not names_a_path(full) and "torch.load(" not in code:
                    continue  # a library may bring a file of that name, `YOLO("yolov8n.pt")`
                said = f"{loaded.origins.prefix(full)}{full} is {text}, which is not in {workdir}"
                near = _from_its_config(loaded.origins.of(full), text, workdir)
                near = near or meant_path(text, workdir) or "put it there, or write the whole path"
                yield f"{said}, from where the job takes relative paths: {near}"


def _from_its_config(place: str, text: str, workdir: Path) -> str:
    """What to write for a path that begins in the folder of the config that has it.

    Args:
        place: Of the value, as `origins` knows it.
    """
    file, colon, _ = place.rpartition(":")
    path = path_from(text, Path(file).parent, workdir) if colon else ""
    return f"write {path}" if path else ""


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """Without objects, whose classes are others."""
    return {name: it for name, it in arguments.items() if isinstance(it, (str, list))}


def _is_meant(name: str, text: str, workdir: Path) -> bool:
    """Whether a text is a relative path to be read: `org/name` may be a model of a hub."""
    if text.startswith(("/", "~", "-")) or text in (".", "..") or not is_read(name, text):
        return False
    first, slash, _ = text.partition("/")
    is_there = bool(slash) and (first in (".", "..") or (workdir / first).is_dir())
    is_path = bool(_FILE.search(text)) or bool(_OF_A_FOLDER.search(name)) or is_there
    return is_path and " " not in text


def _code_of(class_path: str, workdir: Path) -> str:
    """The module of a class of the project's; empty where it is not found."""
    found = locate(class_path, [str(workdir), *sys.path])
    module = find_module(found.module, [str(workdir), *sys.path])[0] if found else None
    if module is None or module.file is None or not module.file.is_relative_to(workdir):
        return ""
    return module.file.read_text("utf-8", "replace")


def _without_refusals(code: str) -> str:
    """The code but for what only refuses a path: `if not exists(path): raise`, or an assert."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return code
    return ast.unparse(_Refusals().visit(tree))


class _Refusals(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST:
        if len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse:
            return ast.Pass()
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:  # noqa: ARG002 - ast calls it so
        return ast.Pass()


def _is_below_another(name: str, folders: Sequence[str], code: str) -> bool:
    """Whether an argument may be a path below another one: `os.path.join(self.root, self.file)`."""
    held = rf"(?:self\.(?:hparams\.)?)?{re.escape(name)}\b"
    if re.search(rf"join\([^()]*,\s*{held}|/\s*{held}|/\{{{held}|\+\s*{held}", code):
        return True
    is_of_one = re.search(rf"for \w+ in (?:sorted\()?{held}", code) and re.search(
        r"join\(| / ", code
    )
    others = [it for it in folders if it != name]
    return bool(is_of_one) or (bool(others) and not _OF_A_FOLDER.search(name))
