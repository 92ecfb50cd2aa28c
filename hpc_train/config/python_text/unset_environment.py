"""Variables of the user's own that code surely reads, and that neither shell nor config sets.

A job has the environment of the shell that submits it (sbatch(1), --export), and `env.variables`.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.config.load import LoadedConfig
from hpc_train.config.meant_words.launcher_variables import (
    changes_environment,
    is_of_launcher,
    is_only_read,
    read_variable,
)
from hpc_train.config.python_text.class_kind import locate
from hpc_train.config.python_text.harmless_code import imports_of, is_of_main
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.schema import Config
from hpc_train.config.scripts.script_call_arguments import sure_nodes
from hpc_train.config.scripts.script_starts import own_files
from hpc_train.config.secrets import how_to_pass, looks_secret
from hpc_train.config.specs import read_object
from hpc_train.config.validate import other_environment

# What a launcher, hpc-train or Lightning sets, and what sites set on the nodes alone.
_SET_THERE = re.compile(
    r"(?:HPC_TRAIN|PL|TORCHELASTIC|MASTER|ROLE|GROUP|LOCAL|NODE|CUDA|ROCR?|HIP|NCCL|OMP|MKL|KMP)_"
    r"|(?:WORLD_SIZE|RANK|HOSTNAME|PWD|SHLVL)\Z|.*(?:TMP|TEMP|SCRATCH|JOB|NODE)"
)
# Packages that set variables by a file that they find.
_SETTERS = ("dotenv", "environs", "decouple", "environ", "rootutils", "pyrootutils", "envyaml")


def notes_on_unset(
    loaded: LoadedConfig, workdir: Path, environ: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A line for each: of a script and its modules, or of the modules of the model and the data.

    Args:
        workdir: Where the job begins.
        environ: Of the shell that submits; os.environ where it is not given.
    """
    config, env = loaded.config, loaded.config.env
    if other_environment(env) or config.container.image or config.hosts:
        return
    known = {*(os.environ if environ is None else environ), *env.variables, *env.passthrough}
    texts = [*(_of_script(config, workdir) if config.script.path else _of_config(loaded, workdir))]
    unset = [(shown, *it) for shown, _, nodes in texts for it in _unset(nodes, known)]
    if not unset or any(_may_set(tree) for _, tree, _ in texts):
        return
    told: set[str] = set()
    for shown, line, name in unset:
        if name not in told and all(is_only_read(it, name) for _, it, _ in texts):
            told.add(name)
            hint = f"write env.variables.{name}=VALUE behind the command"
            hint = how_to_pass(name) if looks_secret(name) else hint
            yield f"{shown}:{line} reads {name}, which is not set here: {hint}"


_Text = tuple[str, ast.Module, Sequence[ast.AST]]


def _of_script(config: Config, workdir: Path) -> Iterator[_Text]:
    """The script and what of its folder it imports, with what each surely runs."""
    path = config.script.path or ""
    file = (workdir / path).resolve()
    if (tree := script_tree(file)) is None:
        return
    yield path, tree, [*sure_nodes(tree)]
    yield from _own(tree, file, workdir)


def _of_config(loaded: LoadedConfig, workdir: Path) -> Iterator[_Text]:
    """The modules of the model and the data, which each rank imports, and what they import."""
    path, seen = [str(workdir), *sys.path], set[Path]()
    for key in ("model", "data"):
        class_path, _ = read_object(getattr(loaded.config, key), key, loaded.origins)
        found = locate(class_path, path)
        module = find_module(found.module, path)[0] if found else None
        file = module.file if module else None
        if file is None or file in seen or not file.is_relative_to(workdir):
            continue
        seen.add(file)
        if (tree := script_tree(file)) is not None:
            yield str(file.relative_to(workdir)), tree, _at_import(tree)
            for text in _own(tree, file, workdir, folder=workdir):
                seen.add(workdir / text[0])
                yield text


def _own(
    tree: ast.Module, file: Path, workdir: Path, folder: Path | None = None
) -> Iterator[_Text]:
    for other, text in own_files(tree, file, [str(folder or file.parent), *sys.path]):
        shown = other.relative_to(workdir) if other.is_relative_to(workdir) else other
        yield str(shown), text, _at_import(text)


def _at_import(tree: ast.Module) -> list[ast.AST]:
    return [*sure_nodes(ast.Module([it for it in tree.body if not is_of_main(it)], []))]


def _unset(nodes: Sequence[ast.AST], known: Collection[str]) -> Iterator[tuple[int, str]]:
    """Of `os.environ["X"]`, which fails where X is not set."""
    for node in nodes:
        name, _ = read_variable(node) or ("", None)
        is_own = name not in known and not is_of_launcher(name)
        is_own = is_own and not _SET_THERE.match(name.upper())
        if isinstance(node, ast.Subscript) and name and is_own:
            yield node.lineno, name


def _may_set(tree: ast.Module) -> bool:
    """Whether it may set variables that its text does not name."""
    packages = {it.partition(".")[0] for it in imports_of(tree, also_inner=True)}
    is_changed = any(changes_environment(it) for it in ast.walk(tree))
    return is_changed or not packages.isdisjoint(_SETTERS)
