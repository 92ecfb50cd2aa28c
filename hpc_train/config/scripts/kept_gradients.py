"""A loop of a script that steps an optimizer and never clears its gradients, told from the text.

"By default, gradients are accumulated in buffers (i.e., not overwritten) whenever .backward() is
called" (PyTorch's tutorial on zeroing gradients): each step then follows the sum of all before it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from hpc_train.config.fit.several_optimizers import is_optimizer
from hpc_train.config.python_text.modules import Names, full_name

_Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What may clear them under another name; torch's own functions do not.
_MAY_CLEAR = re.compile(r"zero|clear|reset|grad", re.IGNORECASE)
# Of torch's modules and of what wraps a model; any other may clear them inside.
_PLAIN_METHODS = (
    *("train", "eval", "to", "cuda", "cpu", "step", "parameters", "named_parameters"),
    *("state_dict", "load_state_dict", "requires_grad_", "forward"),
)
_TAKE_OPTIMIZERS = ("step", "unscale_", "prepare", "setup", "setup_optimizers", "print")
_CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_gradients")
_MOST_ROUNDS = 4  # of names that are handed on


def kept_gradients(tree: ast.Module, names: Names) -> Iterator[tuple[int, str, str]]:
    """The line of each step, what is wrong with it, and what to write.

    Said only where the optimizer is one of torch's, made outside of the loop, and the whole text
    has nothing that may clear its gradients.
    """
    every = list(ast.walk(tree))
    words = {it.attr for it in every if isinstance(it, ast.Attribute)}
    texts = {it.value for it in every if isinstance(it, ast.Constant)}
    if "zero_grad" in ast.unparse(tree) or "grad" in words | texts or names.stars:
        return
    if any("hook" in it for it in words):  # one may clear them behind each step
        return
    known = _optimizers(every, names)
    told: set[str] = set()
    for loop, region in _loops(every):
        is_passed = any(_method(it) == "backward" for it in region)
        if not is_passed or not _comes_again(loop) or _may_clear(region, known, every, names):
            continue
        for call in (it for it in region if isinstance(it, ast.Call)):
            name = _stepped(call, known)
            if name and name not in told | _bound(region):
                told.add(name)
                said = f"steps {name} in a loop, and nothing clears its gradients, which add up"
                said += " over all steps"
                yield call.lineno, said, f"write {name}.zero_grad() {_place(region, call)}"


def _loops(every: Sequence[ast.AST]) -> Iterator[tuple[_Loop, list[ast.AST]]]:
    """Each loop without a step in an inner one, with its nodes and those of what it calls."""
    functions = [it for it in every if isinstance(it, _FUNCTIONS)]
    for loop in (it for it in every if isinstance(it, _LOOPS)):
        own = list(ast.walk(loop))
        called = {_own_name(it) for it in own if isinstance(it, ast.Call)}
        parts = [it for it in functions if it.name in called and it not in own]
        nodes = [*own, *(it for part in parts for it in ast.walk(part))]
        inner = [it for it in nodes[1:] if isinstance(it, _LOOPS)]
        if not any(_method(it) == "step" for part in inner for it in ast.walk(part)):
            yield loop, nodes


def _comes_again(loop: _Loop) -> bool:
    """Whether it may go round more than once."""
    return not any(isinstance(it, ast.Break | ast.Return | ast.Raise) for it in loop.body)


def _optimizers(every: Sequence[ast.AST], names: Names) -> set[str]:
    """What stands for an optimizer of torch's wherever it is bound, as it is written."""
    functions: dict[str, _Function] = {it.name: it for it in every if isinstance(it, _FUNCTIONS)}
    for it in every:
        for method in it.body if isinstance(it, ast.ClassDef) else ():
            if isinstance(it, ast.ClassDef) and isinstance(method, ast.FunctionDef):
                functions |= {it.name: method} if method.name == "__init__" else {}
    assigned = [it for it in every if isinstance(it, ast.Assign)]
    known: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        bound = [
            (ast.unparse(target), _is_one(it.value, known, functions, names.imports))
            for it in assigned
            for target in it.targets
        ]
        others = {name for name, is_one in bound if not is_one} | _rebound(assigned)
        known = {name for name, is_one in bound if is_one} | _given(every, known, functions)
        known -= others
    return known


def _is_one(
    value: ast.expr, known: set[str], functions: Mapping[str, _Function], imports: Mapping[str, str]
) -> bool:
    if is_optimizer(value, imports) or ast.unparse(value) in known:
        return True
    made = functions.get(_own_name(value)) if isinstance(value, ast.Call) else None
    returned = [it.value for it in ast.walk(made) if isinstance(it, ast.Return)] if made else []
    return bool(returned) and all(
        it is not None and (is_optimizer(it, imports) or ast.unparse(it) in known)
        for it in returned
    )


def _rebound(assigned: Sequence[ast.Assign]) -> set[str]:
    """Names that are bound beside others, by anything but what leaves an optimizer one."""
    return {
        ast.unparse(name)
        for it in assigned
        for target in it.targets
        if isinstance(target, ast.Tuple | ast.List) and _method(it.value) not in _TAKE_OPTIMIZERS
        for name in target.elts
    }


def _given(
    every: Sequence[ast.AST], known: set[str], functions: Mapping[str, _Function]
) -> set[str]:
    """The parameters of the script's own functions for which an optimizer is given."""
    found: set[str] = set()
    for call in (it for it in every if isinstance(it, ast.Call)):
        if function := functions.get(_own_name(call)):
            own = [it.arg for it in function.args.args if it.arg != "self"]
            given = [*zip(own, call.args, strict=False)]
            given += [(it.arg, it.value) for it in call.keywords if it.arg]
            found |= {name for name, value in given if ast.unparse(value) in known}
    return found


def _may_clear(
    region: Sequence[ast.AST], known: set[str], every: Sequence[ast.AST], names: Names
) -> bool:
    """Whether a call of the loop may do it in a way that its text does not show."""
    models = {
        ast.unparse(it.func.value)
        for it in every
        if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute)
        if it.func.attr in ("parameters", "named_parameters")
    }
    # What a call of them takes is only read: names of objects of the script, and Python's own.
    plain = {it.id for it in every if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
    plain |= set(dir(builtins))
    for call in (it for it in region if isinstance(it, ast.Call)):
        written = ast.unparse(call.func)
        name = written.rpartition(".")[2]
        if full_name(written, names.imports).startswith("torch.") or name in _CLIPS:
            continue
        is_of_them = written.removesuffix(f".{name}") in models | known and written != name
        if _MAY_CLEAR.search(name) or (is_of_them and name not in _PLAIN_METHODS):
            return True
        if _is_of_self(call) or _own_name(call) in names.definitions:
            continue  # the text of it is here
        given = set(_handed(call))
        if given & known and name not in _TAKE_OPTIMIZERS:
            return True
        if given & models and written.partition(".")[0] not in plain:
            return True
    return False


def _handed(call: ast.Call) -> Iterator[str]:
    """What is given to it, apart from what is called in between: `f(model(x))`, not `model`."""
    parts = [part for it in (*call.args, *call.keywords) for part in ast.walk(it)]
    inner = {it.func for it in parts if isinstance(it, ast.Call)}
    return (ast.unparse(it) for it in parts if isinstance(it, ast.expr) and it not in inner)


def _stepped(call: ast.Call, known: set[str]) -> str:
    """The optimizer that is stepped there: `opt.step()`, `scaler.step(opt)`; empty for none."""
    if _method(call) != "step" or not isinstance(call.func, ast.Attribute):
        return ""
    named = [ast.unparse(it) for it in (call.func.value, *call.args[:1])]
    return next((it for it in named if it in known), "")


def _place(region: Sequence[ast.AST], step: ast.Call) -> str:
    """In front of the backward pass of the same block; behind the step where it has none.

    A step under an `if` ends a sum over several batches, which is meant.
    """
    closure = {it.id for it in step.args if isinstance(it, ast.Name)}
    for node in region:
        is_closure = isinstance(node, _FUNCTIONS) and node.name in closure
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            lines = (
                [it for it in body if isinstance(it, ast.Expr)] if isinstance(body, list) else []
            )
            first = next((it for it in lines if _method(it.value) == "backward"), None)
            if first and (is_closure or any(it.value is step for it in lines)):
                return f"in front of line {first.lineno} ({ast.unparse(first)})"
    return f"behind line {step.lineno}"


def _bound(nodes: Sequence[ast.AST]) -> set[str]:
    made = (it for it in nodes if isinstance(it, ast.Assign))
    return {ast.unparse(target) for it in made for target in it.targets}


def _own_name(call: ast.Call) -> str:
    """What the script itself may define: `train(...)`, `self.train(...)`; empty for another."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return _method(call) if _is_of_self(call) else ""


def _is_of_self(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"


def _method(node: ast.AST) -> str:
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else ""
