"""A name that a script reads of its parsed arguments, and its parser does not give them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from hpc_train.config.scripts.script_arguments import names_given
from hpc_train.config.scripts.script_call_arguments import sure_nodes
from hpc_train.config.words import did_you_mean

_HARMLESS = ("print", "getattr", "hasattr", "str", "repr")
_MOST_SHOWN = 10


def unparsed_name(tree: ast.Module) -> tuple[int, str, str] | None:
    """The line that reads one in each run, what is wrong and what to write; None without one."""
    if not any(isinstance(it, ast.Attribute) and it.attr == "parse_args" for it in ast.walk(tree)):
        return None
    given = names_given(tree)
    if given is None:
        return None
    held = _held(tree)
    for node in sure_nodes(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        name, of = node.attr, node.value.id
        if of in held and name not in given and not name.startswith("_"):
            said = f"reads {of}.{name}, which its parser does not give"
            return node.lineno, said, instead_of(name, given, of)
    return None


def instead_of(name: str, given: Collection[str], of: str) -> str:
    """What to write for `args.NAME`.

    Args:
        name: What is not among them.
        given: The names that there are.
        of: How the arguments are called.
    """
    add = f'add_argument("--{name}", ...)'
    if meant := _meant(name, sorted(given)):
        return f"write {of}.{meant}, or {add}"
    has = f"{of} has {', '.join(sorted(given)) or 'nothing'}; " if len(given) <= _MOST_SHOWN else ""
    near = did_you_mean(name, sorted(given))
    return f"{has}{near + ' or ' if near else 'write '}{add}"


def _meant(name: str, given: Iterable[str]) -> str:
    """The one that is an abbreviation of a name or the other way round: `lr`, `epochs`."""
    words = {*name.split("_")}
    short = [it for it in given if it == _initials(name) or name == _initials(it)]
    part = [it for it in given if (of := {*it.split("_")}) < words or words < of]
    found = short or part
    return found[0] if len(found) == 1 else ""


def _initials(name: str) -> str:
    words = [it for it in name.split("_") if it]
    return "".join(it[0] for it in words) if len(words) > 1 else ""


def _held(tree: ast.Module) -> set[str]:
    """Names that are what `parse_args()` gives wherever the script binds them.

    None where some of its code may add to that.
    """
    functions = {it.name: it for it in tree.body if isinstance(it, ast.FunctionDef)}
    made = {name for name, it in functions.items() if _gives(it)}
    bound = [
        target
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and (_parses(node.value) or _called(node.value) in made)
        for target in node.targets
    ]
    names = {it.id for it in bound if isinstance(it, ast.Name)}
    if len(names) < len({ast.unparse(it) for it in bound}):
        return set()  # it is an attribute of something
    inside = (it for name in made for it in ast.walk(functions[name]))
    harmless = {id(it) for it in inside if isinstance(it, ast.Return)}
    harmless |= {id(it) for it in _copied(tree)}
    for node in (it for it in ast.walk(tree) if id(it) not in harmless):
        if any(_may_add(node, name, functions) for name in names):
            return set()
    known = {id(it) for it in bound}
    known |= {id(it) for name in names for it in _handed(name, tree, functions)}
    others = (it for it in _outside_of_classes(tree) if id(it) not in known)
    return names - {name for it in others for name in _bound_by(it)}


def _parses(node: ast.AST | None) -> bool:
    """Whether it is `parser.parse_args()`; there is one parser alone (`names_given`)."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "parse_args"


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _gives(function: ast.FunctionDef) -> bool:
    """Whether a function returns what `parse_args()` gives."""
    nodes = list(ast.walk(function))
    returned = [it.value for it in nodes if isinstance(it, ast.Return)]
    bound = {
        ast.unparse(it.targets[0])
        for it in nodes
        if isinstance(it, ast.Assign) and _parses(it.value)
    }
    value = returned[0] if len(returned) == 1 else None
    return _parses(value) or (isinstance(value, ast.Name) and value.id in bound)


def _outside_of_classes(tree: ast.AST) -> Iterator[ast.AST]:
    """What may bind a name of the module or of its functions."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.ClassDef | ast.Lambda):
            yield from _outside_of_classes(node)


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name
    elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name


def _handed(
    name: str, tree: ast.Module, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[ast.arg]:
    """Arguments of this name of functions that are called with it alone."""
    for made in functions.values():
        taken = [*made.args.posonlyargs, *made.args.args]
        for place, argument in enumerate(taken):
            uses = [it for it in ast.walk(tree) if isinstance(it, ast.Name) and it.id == made.name]
            calls = [it for it in ast.walk(tree) if isinstance(it, ast.Call)]
            calls = [it for it in calls if _called(it) == made.name]
            given = [_given(it, place, argument.arg) for it in calls]
            if argument.arg == name and len(uses) == len(calls) and set(given) == {name}:
                yield argument


def _given(call: ast.Call, place: int, name: str) -> str:
    named = [it.value for it in call.keywords if it.arg == name]
    return ", ".join(map(ast.unparse, [*call.args[place : place + 1], *named]))


def _copied(tree: ast.Module) -> Iterator[ast.AST]:
    """`vars(args)` of which another dict, or a text, is made at once."""
    for node in ast.walk(tree):
        given = [node.value] if isinstance(node, ast.keyword) and node.arg is None else []
        if isinstance(node, ast.Call) and _called(node) in _HARMLESS:
            given = node.args
        yield from (it for it in given if _called(it) == "vars")


def _is_same(call: ast.Call, name: str, functions: Mapping[str, ast.FunctionDef]) -> bool:
    """Whether a call of the script's own function gives it under the same name, once."""
    made = functions.get(_called(call))
    taken = [it.arg for it in (*made.args.posonlyargs, *made.args.args)] if made else []
    given = [*call.args, *(it.value for it in call.keywords)]
    times = sum(1 for it in given if isinstance(it, ast.Name) and it.id == name)
    return name in taken and times == 1 and _given(call, taken.index(name), name) == name


def _may_add(node: ast.AST, name: str, functions: Mapping[str, ast.FunctionDef]) -> bool:
    """Whether it sets an attribute of the arguments, or gives them to what might."""
    if isinstance(node, ast.Attribute):
        is_set = not isinstance(node.ctx, ast.Load) or node.attr == "__dict__"
        return is_set and ast.unparse(node.value) == name
    if isinstance(node, ast.Call):
        given = [*node.args, *(it.value for it in node.keywords)]
        is_given = any(isinstance(it, ast.Name) and it.id == name for it in given)
        is_known = _called(node) in _HARMLESS or _is_same(node, name, functions)
        return is_given and not is_known
    # Another name for it, or a place in a list: what is set there is not seen here.
    others: list[ast.expr | None] = []
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Return | ast.Yield):
        others = [node.value]
    elif isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
        others = [*(node.values if isinstance(node, ast.Dict) else node.elts)]
    return any(isinstance(it, ast.Name) and it.id == name for it in others)
