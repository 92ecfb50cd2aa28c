"""A mapping among the arguments, which comes as a dict, and whose keys the class reads by a point.

OmegaConf and argparse give such objects; a config's mapping is made none (training/build.py).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hpc_train.config.fit.late_loaders import run_by, surely_run
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import Located, locate, method_of, place_of
from hpc_train.config.specs import INIT_ARGS, TARGET, classes_of, is_object, read_object

_LATER = ("configure_optimizers", "training_step")  # which each training calls
_MOST = 3  # reads that are shown


class _KeyRead(NamedTuple):
    """A key that is read by a point, how that is written with brackets, and its line."""

    written: str
    meant: str
    line: int


def mapping_reads(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The key of each such argument, what is wrong, with its place, and what to write.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    for key, spec in classes_of(loaded.config):
        class_path, arguments = read_object(spec, key, loaded.origins)
        given = {name: it for name, it in arguments.items() if _is_plain(it)}
        start = method_of(class_path, "__init__", path) if given else None
        if start is None:
            continue
        for name in given.keys() & _taken(start[1]):
            reads = _reads(name, given[name], *start, class_path, path)
            if not reads:
                continue
            place = place_of(start[0], reads[0].line, path)
            read = f"{class_path} reads {reads[0].written} ({place})"
            said = f": a mapping comes as a dict, of which {read}"
            full = f"{key}.{name}" if TARGET in spec else f"{key}.{INIT_ARGS}.{name}"
            yield full, said, _fix(reads)


def _is_plain(value: Any) -> bool:
    return isinstance(value, Mapping) and not is_object(value)


def _taken(start: ast.FunctionDef) -> set[str]:
    return {it.arg for it in (*start.args.args[1:], *start.args.kwonlyargs)}


def _reads(
    name: str,
    given: Mapping[Any, Any],
    owner: Located,
    start: ast.FunctionDef,
    class_path: str,
    path: Sequence[str],
) -> list[_KeyRead]:
    """Where keys of the mapping are surely read by a point."""
    definition = owner.definition
    if name in _stored(start) or not isinstance(definition, ast.ClassDef):
        return []  # made something else
    kept = next((it for it in surely_run(start) if _keeps(it, name)), None)
    held = ast.unparse(kept.targets[0]) if isinstance(kept, ast.Assign) else ""
    if held and ast.unparse(definition).count(f"{held} = ") != 1:
        held = ""
    methods = [start]
    found = locate(class_path, path)
    if held and found and found.definition is definition:
        own = {it.name: it for it in definition.body if isinstance(it, ast.FunctionDef)}
        later = [own[it] for it in _LATER if it in own]
        methods += [it for it in later if not it.decorator_list]
    found_reads: list[_KeyRead] = []
    for method in methods:
        names = {name, held} if method is start else {held}
        for statement in surely_run(method):
            found_reads += _in_statement(statement, names, given)
    return found_reads


def _in_statement(
    statement: ast.stmt, names: Collection[str], given: Mapping[Any, Any]
) -> Iterator[_KeyRead]:
    """`cfg.optim.lr` as one read, where `optim` is a mapping with `lr` in it."""
    inner: set[ast.AST] = set()  # of a read that was given
    for node in run_by(statement):
        if node in inner or not isinstance(node, ast.Attribute):
            continue
        chain = [node]
        while isinstance(chain[0].value, ast.Attribute):
            chain.insert(0, chain[0].value)
        at = next((at for at, it in enumerate(chain) if ast.unparse(it.value) in names), -1)
        keys: list[ast.Attribute] = []
        value: Any = given
        for it in chain[at:] if at >= 0 else ():
            is_key = isinstance(value, Mapping) and it.attr in value and not hasattr(dict, it.attr)
            if not is_key or not isinstance(it.ctx, ast.Load):
                break
            keys.append(it)
            value = value[it.attr]
        if keys:
            inner.update(ast.walk(node))
            first = ast.unparse(keys[0].value)
            meant = first + "".join(f'["{it.attr}"]' for it in keys)
            yield _KeyRead(ast.unparse(keys[-1]), meant, node.lineno)


def _stored(method: ast.FunctionDef) -> set[str]:
    """Names that are given another value somewhere in the method."""
    names = (it for it in ast.walk(method) if isinstance(it, ast.Name))
    return {it.id for it in names if not isinstance(it.ctx, ast.Load)}


def _keeps(statement: ast.stmt, name: str) -> bool:
    """Whether it is `self.cfg = cfg`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    is_own = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
    return is_own and isinstance(statement.value, ast.Name) and statement.value.id == name


def _fix(reads: Sequence[_KeyRead]) -> str:
    """`write cfg["lr"] for cfg.lr, and so for cfg.width`."""
    written = list(dict.fromkeys(it.written for it in reads))
    more = f", and so for {', '.join(written[1:_MOST])}" if written[1:] else ""
    more += ", ..." if written[_MOST:] else ""
    return f"write {reads[0].meant} for {written[0]}{more}"
