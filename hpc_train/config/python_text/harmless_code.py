"""Whether the top level of a module surely does no work: told from its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# Built-in functions whose calls make a value and do nothing else.
_MAKE_VALUES = (
    *("bool", "dict", "enumerate", "float", "frozenset", "int", "len", "list", "max", "min"),
    *("open", "range", "set", "sorted", "str", "sum", "tuple", "zip"),
)
# What prepares a training and runs none: by dotted names, and all below them.
_PREPARE = (
    *("abc", "argparse", "collections", "contextlib", "dataclasses", "datetime", "enum"),
    *("functools", "itertools", "json", "logging", "math", "os.cpu_count", "os.environ"),
    *("os.getenv", "os.makedirs", "os.path", "pathlib", "random", "re", "string", "time"),
    *("types", "typing", "warnings"),
    *("addict", "attr", "attrs", "click", "dotenv", "easydict", "hydra.main", "ml_collections"),
    *("omegaconf", "pydantic", "typer.Typer", "yacs", "yaml"),
    *("numpy.random.seed", "torch.backends", "torch.cuda", "torch.device", "torch.Generator"),
    *("torch.inference_mode", "torch.manual_seed", "torch.no_grad", "torch.set_default_dtype"),
    *("torch.set_float32_matmul_precision", "torch.set_num_threads"),
    *("torch.use_deterministic_algorithms", "lightning.pytorch.utilities"),
    *("lightning.fabric.utilities", "pytorch_lightning.utilities", "lightning.seed_everything"),
    *("lightning.pytorch.seed_everything", "pytorch_lightning.seed_everything"),
)
_BLOCKS = (ast.If, ast.Try, ast.With, ast.For)


@dataclass(frozen=True)
class _NamesOfModule:
    """Of a module: where its names come from, and which of them do something when called."""

    imports: Mapping[str, str]
    functions: frozenset[str]
    records: frozenset[str]
    objects: frozenset[str]


def does_nothing(tree: ast.Module) -> bool:
    """Whether to run a module surely does no more than to define and to prepare.

    Of an imported module what stands under `if __name__ == "__main__"` is not run; of a script it
    counts, so that the answer holds for both.
    """
    return next(working_statements(tree), None) is None


def working_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Those of a module's top level that may do more than to define and to prepare."""
    functions = [it for it in tree.body if isinstance(it, (ast.FunctionDef, ast.AsyncFunctionDef))]
    classes = [it for it in tree.body if isinstance(it, ast.ClassDef)]
    known = _NamesOfModule(
        imports=imported_names(tree),
        functions=frozenset(it.name for it in functions),
        records=frozenset(it.name for it in classes if _is_record(it)),
        objects=frozenset(_objects(tree)),
    )
    yield from (it for it in statements_of(tree.body) if not _is_harmless(it, known))


def statements_of(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those of its blocks included and those of functions not."""
    for statement in body:
        yield statement
        if isinstance(statement, _BLOCKS):
            for name in ("body", "orelse", "finalbody"):
                yield from statements_of(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []):
                yield from statements_of(handler.body)


def imports_of(tree: ast.Module, *, also_inner: bool = False) -> list[str]:
    """Dotted names that the module imports as it runs, relative ones with their dots.

    The last word of one may be no module.

    Args:
        tree: Its text.
        also_inner: Whether imports in functions count.
    """
    names = []
    for statement in ast.walk(tree) if also_inner else statements_of(tree.body):
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            above = "." * statement.level + (f"{statement.module}." if statement.module else "")
            names += [f"{above}{alias.name}" for alias in statement.names]
    return names


def is_of_main(statement: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`."""
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each name of a module means that an import at its top level binds, dotted."""
    names = {}
    for statement in statements_of(tree.body):
        if isinstance(statement, ast.Import):
            for it in statement.names:
                first = it.name.partition(".")[0]
                names[it.asname or first] = it.name if it.asname else first
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names |= {
                it.asname or it.name: f"{statement.module}.{it.name}" for it in statement.names
            }
    return names


def _objects(tree: ast.Module) -> Iterator[str]:
    """Names of what calls have made: a parser, a logger."""
    for statement in statements_of(tree.body):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            yield from (it.id for it in statement.targets if isinstance(it, ast.Name))


def _is_record(definition: ast.ClassDef) -> bool:
    """Whether to make one of it runs no code of the user's."""
    methods = {it.name for it in definition.body if isinstance(it, ast.FunctionDef)}
    is_plain = not definition.bases and not definition.keywords
    return is_plain and not methods & {"__init__", "__new__", "__post_init__"}


def _is_harmless(statement: ast.stmt, known: _NamesOfModule) -> bool:
    """Whether the statement itself, without the statements in it, does no work."""
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Try)):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name):
        return True  # a function that is named, and not called
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return _defines(statement, known)
    parts = _parts(statement)
    calls = [it.func for part in parts for it in ast.walk(part) if isinstance(it, ast.Call)]
    is_free = bool(parts) and not any(_reads(part, known.functions) for part in parts)
    return is_free and all(_prepares(it, known) for it in calls)


def _defines(
    statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, known: _NamesOfModule
) -> bool:
    """Whether nothing else happens: decorators, and the body of a class, may do more."""
    if isinstance(statement, ast.ClassDef):
        inside = [it for it in statement.body if not isinstance(it, ast.FunctionDef)]
        if statement.keywords or any(_reads(it, known.functions) for it in inside):
            return False
    return all(_prepares(_called(it), known) for it in statement.decorator_list)


def _parts(statement: ast.stmt) -> list[ast.AST]:
    """What a statement evaluates; nothing of one that is not looked into."""
    if isinstance(statement, ast.With):
        return [it.context_expr for it in statement.items]
    if isinstance(statement, ast.If):
        return [statement.test]
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)  # no loop: it may be the training
    return [statement] if isinstance(statement, simple) else []


def _reads(node: ast.AST, names: frozenset[str]) -> bool:
    return any(isinstance(it, ast.Name) and it.id in names for it in ast.walk(node))


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _prepares(called: ast.expr, known: _NamesOfModule) -> bool:
    """Whether a call of it is known to run no training."""
    text = ast.unparse(called)
    first, dot, rest = text.partition(".")
    if not re.fullmatch(r"[\w.]+", text):  # a method of a text, or of what another call gives
        held = called.value if isinstance(called, ast.Attribute) else None
        return isinstance(held, (ast.Constant, ast.JoinedStr, ast.Call))
    if first in known.imports:
        full = f"{known.imports[first]}.{rest}".strip(".")
        return any(full == it or full.startswith(f"{it}.") for it in _PREPARE)
    if first in known.objects:
        return bool(dot)
    return not dot and (text in _MAKE_VALUES or text in known.records)
