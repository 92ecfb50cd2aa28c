"""Calls that all ranks have to make, where a script's text has rank 0 alone make them.

"Collective functions ... all processes in the group need to call" them (torch's manual,
torch.distributed); `Trainer.save_checkpoint` and `Accelerator.gather` are such as well.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.config.fit.rank_zero_calls import TAKE_OUT, calls_of_rank_zero
from hpc_train.config.python_text.left_ranks import left_in, methods_of_others
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.python_text.modules import full_name
from hpc_train.config.python_text.rank_tests import asks_for_zero, ends_process, owner_asked
from hpc_train.config.python_text.script_tree import words_in
from hpc_train.config.scripts.script_starts import own_files

_TORCH = "torch.distributed."
_WRAP = "parallel.DistributedDataParallel"  # which compares the ranks' parameters
_COLLECTIVE = re.compile(
    r"all_reduce|(?:all_)?gather(?:_object|_into_tensor)?|broadcast(?:_object_list)?|barrier"
    r"|monitored_barrier|reduce|reduce_scatter\w*|scatter(?:_object_list)?|all_to_all\w*"
)
_OF_FABRIC = ("save", "barrier", "all_reduce", "all_gather", "broadcast")  # a barrier ends `save`
_OF_ACCELERATOR = ("wait_for_everyone", "gather", "gather_for_metrics", "reduce")
# Of the object whose `is_global_zero` or `is_main_process` is asked.
_OF_OWNER = {
    "is_global_zero": ("save_checkpoint", *_OF_FABRIC),
    "is_main_process": _OF_ACCELERATOR,
}
# Whose `backward` the ranks make together once one of these has wrapped the model.
_WRAPPING = ("setup", "setup_module", "prepare", "prepare_model")
_LIBRARIES = {
    "Fabric": (("lightning", "lightning_fabric"), _OF_FABRIC),
    "Accelerator": (("accelerate",), _OF_ACCELERATOR),
}
_OF_SOME = re.compile(r"rank|main|master|zero|process_index")
_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_WAIT = "with several they wait for each other there"
_Owners = Mapping[str, Sequence[str]]
_LIGHTNING = ("pytorch_lightning", "lightning")


def rank_zero_of_script(
    tree: ast.Module, file: Path, search_path: Sequence[str]
) -> Iterator[tuple[str, int, str, str]]:
    """The file, the line, what is wrong, and what to write, of the script and its own modules.

    Args:
        tree: The script.
        file: The script's; the files are told as seen from its folder.
        search_path: As `sys.path`, with the script's folder first.
    """
    texts = {file: tree, **dict(own_files(tree, file, search_path[:1], also_inner=True))}
    for path, text in texts.items():
        found = {line: rest for line, *rest in _alone(text)}
        name = os.path.relpath(path, file.parent)
        for line, (call, under, write) in sorted(found.items()):
            said = f"calls {call} {under}, and all ranks have to call it: {_WAIT}"
            yield name, line, said, write


def _alone(text: ast.Module) -> Iterator[tuple[int, str, str, str]]:
    imports = _imports(text)
    owners = _owners(text, imports)
    scopes = [it for it in ast.walk(text) if isinstance(it, ast.FunctionDef)]
    for body in (text.body, *(it.body for it in scopes)):
        yield from _in_scope(body, imports, owners)
        yield from _behind_a_leave(body, text, imports, owners)
    if {*_LIGHTNING}.isdisjoint(words_in(text)):
        return
    for definition in (it for it in ast.walk(text) if isinstance(it, ast.ClassDef)):
        for told in calls_of_rank_zero(definition):
            if not full_name(told[1], imports).startswith(_TORCH):  # looked at above
                yield told


def _in_scope(
    body: Sequence[ast.stmt], imports: dict[str, str], owners: _Owners
) -> Iterator[tuple[int, str, str, str]]:
    nodes = list(own_nodes(body))
    for node in nodes:
        if not isinstance(node, ast.If) or not asks_for_zero(node.test):
            continue
        inside = list(own_nodes(node.body))
        if any(isinstance(it, _LEAVES) or ends_process(it) for it in inside):
            continue  # the others may call it behind
        others = [it for it in nodes if isinstance(it, ast.If) and it is not node]
        for call in (it for it in inside if isinstance(it, ast.Call)):
            method = _collective(call, node.test, imports, owners)
            if method and not _called_by_others(method, node, others):
                yield (
                    call.lineno,
                    f"{ast.unparse(call.func)}(...)",
                    f"under `if {ast.unparse(node.test)}`",
                    TAKE_OUT,
                )


def _behind_a_leave(
    body: Sequence[ast.stmt], text: ast.Module, imports: dict[str, str], owners: _Owners
) -> Iterator[tuple[int, str, str, str]]:
    """What stands behind an `if rank != 0: return`, and that the others call nowhere."""
    leaves = [*left_in(body)]
    if not leaves:
        return
    others = methods_of_others(text)
    wrapped = {
        ast.unparse(it.targets[0])
        for it in (*own_nodes(body), *text.body)
        if isinstance(it, ast.Assign) and _is_wrap(it.value, imports)
    }
    for left in leaves:
        called = [it for it in own_nodes(left.rest) if isinstance(it, ast.Call)]
        for call in called:
            method = _collective(call, left.condition.test, imports, owners)
            method = method or _backward(call, text, owners)
            trains = any(ast.unparse(it.func).endswith(".backward") for it in called)
            is_net = trains and ast.unparse(call.func) in wrapped
            is_all = bool(method) and method not in others
            if is_net or is_all or _is_wrap(call, imports):
                name = f"{ast.unparse(call.func)}(...)"
                yield call.lineno, name, f"behind {left.under}", left.write


def _is_wrap(value: ast.expr, imports: dict[str, str]) -> bool:
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return full_name(called, imports).endswith(_WRAP)


def _owners(text: ast.Module, imports: dict[str, str]) -> _Owners:
    """Names that are a Fabric or an Accelerator wherever they are bound: what is to be called."""
    found: dict[str, tuple[str, ...]] = {}
    others: set[str] = set()
    for node in ast.walk(text):
        name, kind = "", ""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            name = ast.unparse(node.targets[0])
            kind = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
        elif isinstance(node, ast.arg) and node.annotation is not None:
            name, kind = node.arg, ast.unparse(node.annotation).strip("'\"")
        home, _, last = full_name(kind, imports).rpartition(".")
        libraries, methods = _LIBRARIES.get(last, ((), ()))
        if home.partition(".")[0] in libraries:
            found[name] = methods
        else:
            others.add(name)
    return {name: it for name, it in found.items() if name not in others}


def _backward(call: ast.Call, text: ast.Module, owners: _Owners) -> str:
    """`backward` for that of a Fabric or an Accelerator which has wrapped a model; else empty."""
    owner, _, method = ast.unparse(call.func).rpartition(".")
    if method != "backward" or owner not in owners:
        return ""
    called = {it.attr for it in ast.walk(text) if isinstance(it, ast.Attribute)}
    return "" if called.isdisjoint(_WRAPPING) else method


def _collective(call: ast.Call, test: ast.expr, imports: dict[str, str], owners: _Owners) -> str:
    """The name of what all ranks have to call; empty for another call, and in a group."""
    if not isinstance(call.func, ast.Attribute | ast.Name):
        return ""
    written = ast.unparse(call.func)
    owner, _, method = written.rpartition(".")
    if any(it.arg in ("group", None) for it in call.keywords):
        return ""
    if full_name(written, imports) == f"{_TORCH}{method}":
        return method if _COLLECTIVE.fullmatch(method) else ""
    asked, _, asks = owner_asked(test).rpartition(".")
    known = _OF_OWNER.get(asks, ()) if asked == owner else ()
    return method if method in (*known, *owners.get(owner, ())) else ""


def _called_by_others(method: str, node: ast.If, others: Sequence[ast.If]) -> bool:
    """Whether the ranks beside the first may call it as well: in an `else`, or by an own `if`."""
    apart = list(node.orelse)
    for other in others:
        is_around = any(it is node for it in ast.walk(other))
        if not is_around and _OF_SOME.search(ast.unparse(other.test)):
            apart += [*other.body, *other.orelse]
        elif is_around and _OF_SOME.search(ast.unparse(other.test)):
            apart += [*other.orelse]
    return any(
        isinstance(it, ast.Call) and ast.unparse(it.func).rpartition(".")[2] == method
        for statement in apart
        for it in ast.walk(statement)
    )


def _imports(text: ast.Module) -> dict[str, str]:
    """What names of the text stand for, those of imports in functions included."""
    found: dict[str, str] = {}
    for node in ast.walk(text):
        if isinstance(node, ast.Import):
            found |= {it.asname: it.name for it in node.names if it.asname}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {it.asname or it.name: f"{node.module}.{it.name}" for it in node.names}
    return found
