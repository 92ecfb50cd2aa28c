"""What a call in the user's text makes: a layer that surely has parameters, or a list of such.

The user's own classes and functions are followed to what they make, also into other files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder

from hpc_train.config.python_text.class_kind import Located, derives_from, locate
from hpc_train.config.python_text.method_signatures import methods_of, own_nodes

_HAVE_PARAMETERS = re.compile(
    r"torch\.nn\.(?:\w*Linear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|Transformer\w+|\w+Norm\w*"
    r"|MultiheadAttention)\Z"
)
_SEQUENTIAL = "torch.nn.Sequential"
_OWN_PARAMETER = re.compile(r"torch\.nn\.(?:parameter\.)?Parameter\Z")
# A function with one of these keeps what it makes elsewhere, or makes what is not to be trained.
KEPT_ELSEWHERE = re.compile(r"add_module|register_module|register_parameter|setattr|\b_modules\b")
_NOT_TRAINED = re.compile(r"requires_grad|\.eval\(|load_state_dict|torch\.load|no_grad|\.freeze\(")
_MOST_STEPS = 4  # of functions and classes that make one another
_READ = ("enumerate", "len", "zip", "reversed", "range", "print", "isinstance")
_HOLDERS = re.compile(r"\b(?:Module(?:List|Dict)|Sequential)$")
_EMPTY = re.compile(r"list\(\)|dict\(\)")
_FILLS = {"append": 0, "extend": 0, "insert": 1, "add": 0}


@dataclass(frozen=True)
class Listed:
    """The layers that a plain list, tuple or dict holds: which of these, and what makes them."""

    kind: str
    layers: list[ast.expr]


def init_of(found: Located) -> ast.FunctionDef | None:
    """Of a class whose text has one."""
    definition = found.definition
    methods = methods_of(definition) if isinstance(definition, ast.ClassDef) else {}
    return methods.get("__init__")


def own_module(call: ast.Call, found: Located, path: Sequence[str]) -> Located | None:
    """The class that is called, where it is a module whose text is the user's."""
    part = _own(call, found, path)
    is_module = part is not None and derives_from(part, "Module", path) is True
    return part if is_module else None


def is_layer(
    node: ast.expr,
    found: Located,
    path: Sequence[str],
    body: ast.FunctionDef,
    steps: int = _MOST_STEPS,
) -> bool:
    """Whether it makes a module that surely has parameters: of torch's, or of the user's own.

    Args:
        found: The class or the function whose text has it.
        body: The function that it stands in.
    """
    if isinstance(node, ast.IfExp):
        ways = (node.body, node.orelse)
        return all(is_layer(it, found, path, body, steps) for it in ways)
    if isinstance(node, ast.Name):
        return _is_named_layer(node.id, found, path, body, steps)
    if not isinstance(node, ast.Call) or found.names is None:
        return False
    full = _full_name(node, found)
    if full == _SEQUENTIAL:
        return not _has_none(node, found, path, body, steps)
    if _HAVE_PARAMETERS.match(full):
        return True
    first = ast.unparse(node.func).partition(".")[0]
    if not steps or (first != "self" and _is_bound_in(first, body)):
        return False
    if part := own_module(node, found, path):
        return _is_of_layers(part, path, steps)
    helper = own_function(node, found, path, body)
    given = _given_back(helper[1]) if helper else []
    return bool(given) and all(is_layer(it, *_in(helper, path), steps - 1) for it in given)


def listed_layers(
    value: ast.expr,
    found: Located,
    path: Sequence[str],
    body: ast.FunctionDef,
    steps: int = _MOST_STEPS,
) -> Listed:
    """The layers in a plain list, tuple or dict that is written there, or that a function gives."""
    if isinstance(value, ast.Call) and steps and not _EMPTY.fullmatch(ast.unparse(value)):
        helper = own_function(value, found, path, body)
        given = _given_back(helper[1]) if helper else []
        lists = [listed_layers(it, *_in(helper, path), steps - 1) for it in given]
        return lists[0] if lists and all(it.layers for it in lists) else Listed("list", [])
    layers = list[ast.expr]()
    if isinstance(value, ast.Name):
        made = _assigned(value.id, body)
        is_one = len(made) == 1 and not isinstance(made[0], ast.Name)
        if not is_one or is_handed_on(value.id, body, kept=1):
            return Listed("list", [])
        layers += (it for it in put_in(value.id, body) if is_layer(it, found, path, body, steps))
        inner = listed_layers(made[0], found, path, body, steps)
        return Listed(inner.kind, [*inner.layers, *layers])
    layers += (it for it in _written(value) if is_layer(it, found, path, body, steps))
    return Listed(_kind_of(value), layers)


def own_function(
    call: ast.Call, found: Located, path: Sequence[str], body: ast.FunctionDef
) -> tuple[Located, ast.FunctionDef] | None:
    """The function of the user's that is called, or the method; with whose text it is of.

    None where the function around the call binds that name, and where it may keep what it makes
    elsewhere, or makes what is not to be trained.
    """
    name = ast.unparse(call.func)
    own, of, made = found.definition, found, None
    if name.startswith("self.") and isinstance(own, ast.ClassDef):
        made = methods_of(own).get(name[len("self.") :])
    elif not _is_bound_in(name.partition(".")[0], body) and (part := _own(call, found, path)):
        of, made = part, part.definition if isinstance(part.definition, ast.FunctionDef) else None
    if made is None or _is_wrapped(made):
        return None
    text = ast.unparse(made)
    is_handed = any(isinstance(it, ast.Name) and it.id == "self" for it in call.args)
    if is_handed or KEPT_ELSEWHERE.search(text) or _NOT_TRAINED.search(text):
        return None
    return of, made


def put_in(name: str, body: ast.FunctionDef) -> list[ast.expr]:
    """What a function puts into the list or dict of this name: `NAME.append(it)`, `NAME[1] = it`.

    Args:
        name: `layers`, or `self.layers`.
    """
    found = list[ast.expr]()
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            at = _FILLS.get(node.func.attr)
            if ast.unparse(node.func.value) == name and at is not None and len(node.args) > at:
                it = node.args[at]
                found += _written(it) if node.func.attr == "extend" else [it]
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            found += [node.value] if ast.unparse(node.targets[0].value) == name else []
    return found


def is_handed_on(name: str, body: ast.AST, *, kept: int = 0) -> bool:
    """Whether it is given whole to a call, as in nn.Sequential(*it), or stored under attributes.

    Args:
        kept: Of how many attributes that is known.
    """
    whole = re.compile(rf"\*{{0,2}}{re.escape(name)}(?:\[[^\]]*\])?(?:\.(?:values|items)\(\))?")
    word = re.compile(rf"(?<![\w.]){re.escape(name)}\b")
    stored = 0
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in _READ:
            given = [*node.args, *(it.value for it in node.keywords)]
            said = [ast.unparse(it) for it in given]
            is_holder = _HOLDERS.search(ast.unparse(node.func))
            if any(whole.fullmatch(it) or (is_holder and word.search(it)) for it in said):
                return True
        if isinstance(node, ast.Assign) and not ast.unparse(node.value).startswith("len("):
            to_self = any("self." in ast.unparse(it) for it in node.targets)
            stored += to_self and word.search(ast.unparse(node.value)) is not None
    return stored > kept


def _kind_of(value: ast.expr) -> str:
    if isinstance(value, ast.Dict | ast.DictComp) or ast.unparse(value) == "dict()":
        return "dict"
    return "tuple" if isinstance(value, ast.Tuple) else "list"


def _in(
    helper: tuple[Located, ast.FunctionDef] | None, path: Sequence[str]
) -> tuple[Located, Sequence[str], ast.FunctionDef]:
    assert helper is not None
    return helper[0], path, helper[1]


def _is_wrapped(made: ast.FunctionDef) -> bool:
    """Whether a decorator may give another thing back; a generator gives no list."""
    kinds = ("staticmethod", "classmethod")
    others = [it for it in made.decorator_list if ast.unparse(it) not in kinds]
    return bool(others) or any(
        isinstance(it, ast.Yield | ast.YieldFrom) for it in own_nodes(made.body)
    )


def _given_back(made: ast.FunctionDef) -> list[ast.expr]:
    """What a function returns, on each way; nothing where one of them gives nothing."""
    values = [it.value for it in own_nodes(made.body) if isinstance(it, ast.Return)]
    return [it for it in values if it is not None] if None not in values else []


def _is_of_layers(part: Located, path: Sequence[str], steps: int) -> bool:
    init = init_of(part)
    if init is None:
        return False
    calls = [it for it in ast.walk(init) if isinstance(it, ast.Call)]
    return any(
        _OWN_PARAMETER.match(_full_name(it, part)) or is_layer(it, part, path, init, steps - 1)
        for it in calls
    )


def _is_named_layer(
    name: str, found: Located, path: Sequence[str], body: ast.FunctionDef, steps: int
) -> bool:
    """Whether a local name is a layer each time, and is kept under no attribute as well."""
    made = _assigned(name, body)
    if not made or any(isinstance(it, ast.Name) for it in made):
        return False
    kept = [
        it
        for it in ast.walk(body)
        if isinstance(it, ast.Assign | ast.AnnAssign) and ast.unparse(it.value or it) == name
    ]
    is_changed = _NOT_TRAINED.search(ast.unparse(body))
    if kept or is_changed or _is_bound_otherwise(name, body):
        return False
    return all(is_layer(it, found, path, body, steps) for it in made)


def _is_bound_otherwise(name: str, body: ast.FunctionDef) -> bool:
    """As an argument, by a loop, in a tuple: what it is then is not known."""
    return _is_argument(name, body) or _stores(name, body) != len(_assigned(name, body))


def _is_bound_in(name: str, body: ast.FunctionDef) -> bool:
    """Whether a name is an argument or a local one, so that the module's is not meant."""
    inner = (ast.FunctionDef, ast.ClassDef)
    own = any(isinstance(it, inner) and it.name == name for it in ast.walk(body) if it is not body)
    return own or _is_argument(name, body) or _stores(name, body) > 0


def _is_argument(name: str, body: ast.FunctionDef) -> bool:
    return any(isinstance(it, ast.arg) and it.arg == name for it in ast.walk(body.args))


def _stores(name: str, body: ast.FunctionDef) -> int:
    names = (it for it in ast.walk(body) if isinstance(it, ast.Name) and it.id == name)
    return sum(isinstance(it.ctx, ast.Store) for it in names)


def _assigned(name: str, body: ast.FunctionDef) -> list[ast.expr]:
    return [
        it.value
        for it in ast.walk(body)
        if isinstance(it, ast.Assign)
        and len(it.targets) == 1
        and isinstance(it.targets[0], ast.Name)
        and it.targets[0].id == name
    ]


def _has_none(
    call: ast.Call, found: Located, path: Sequence[str], body: ast.FunctionDef, steps: int
) -> bool:
    """Whether all that a nn.Sequential is made of are torch's own layers without parameters."""
    if not steps:
        return False
    parts = [part for it in call.args for part in _parts(it, body)]
    known = [it for it in parts if isinstance(it, ast.Call)]
    return len(known) == len(parts) and all(
        _full_name(it, found).startswith("torch.nn.")
        and not is_layer(it, found, path, body, steps - 1)
        for it in known
    )


def _parts(argument: ast.expr, body: ast.FunctionDef) -> list[ast.expr]:
    """One, or those of `*layers` where the text tells them; else what is written, a name."""
    if not isinstance(argument, ast.Starred):
        return [argument]
    value = argument.value
    made = _assigned(value.id, body) if isinstance(value, ast.Name) else [value]
    if not made or not all(isinstance(it, ast.List | ast.Tuple | ast.ListComp) for it in made):
        return [value if isinstance(value, ast.Name) else argument]
    more = put_in(value.id, body) if isinstance(value, ast.Name) else []
    return [*(part for it in made for part in _written(it)), *more]


def _own(call: ast.Call, found: Located, path: Sequence[str]) -> Located | None:
    """The class or function that is called, where its text is found without reading torch."""
    text = ast.unparse(call.func)
    first = text.partition(".")[0]
    names = found.names
    if not re.fullmatch(r"[\w.]+", text) or names is None:
        return None
    root = names.imports.get(first, "").partition(".")[0]  # empty of `from .layers import Conv`
    if first not in names.definitions and first not in names.imports:
        return None
    if root and PathFinder.find_spec(root, [*path]) is None:
        return None
    return locate(f"{found.module}.{text}", path)


def _written(value: ast.expr) -> list[ast.expr]:
    """What stands in a list, a tuple or a dict that is written there."""
    if isinstance(value, ast.List | ast.Tuple):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.DictComp):
        return [value.value]
    return [value.elt] if isinstance(value, ast.ListComp) else []


def _full_name(call: ast.Call, found: Located) -> str:
    """`torch.nn.Linear` of `nn.Linear(...)`."""
    first, _, rest = ast.unparse(call.func).partition(".")
    imports = found.names.imports if found.names else {}
    return f"{imports.get(first, '')}.{rest}".rstrip(".")
