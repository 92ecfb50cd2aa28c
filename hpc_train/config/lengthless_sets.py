"""Data sets of the user's without `__len__`, which a DataLoader needs: told from the text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hpc_train.config.class_kind import Located, lacks_method, locate, method_of, place_of
from hpc_train.config.load import LoadedConfig
from hpc_train.config.method_signatures import methods_of, own_nodes
from hpc_train.config.refused_callbacks import is_lightnings
from hpc_train.config.sampleless_sets import GETS
from hpc_train.config.specs import read_object
from hpc_train.config.sure_samplers import made, torchs_class

LEN = "__len__"
_FIRST = 3  # of a DataLoader's arguments without a name: then comes its sampler
_OTHER_ORDERS = {"sampler", "batch_sampler", None}  # which need no length of the set
# With one of these a validation may never begin.
_OF_VALIDATION = ("limit_val_batches", "check_val_every_n_epoch", "overfit_batches")
_MOST_BASES = 6


def without_length(loaded: LoadedConfig, path: Sequence[str]) -> tuple[str, str]:
    """The set that a loader of a fit surely takes, and what to write; empty where none is.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    data, _ = read_object(loaded.config.data, "data", loaded.origins)
    for name in _called(loaded, path):
        found = method_of(data, name, path)
        if found and (lacking := _given(*found, data, path)):
            definition = lacking.definition
            assert isinstance(definition, ast.ClassDef)
            of = f"{lacking.module}.{lacking.name} ({place_of(lacking, definition.lineno, path)})"
            needs = f"the DataLoader of {data}.{name}"
            place = place_of(found[0], found[1].lineno, path)
            return f"{of} has no {LEN}, which {needs} ({place}) needs", how_to_write(definition)
    return "", ""


def how_to_write(definition: ast.ClassDef, kept: str = "") -> str:
    """`write in it def __len__(self): return len(self.x)`, of what its `__getitem__` indexes.

    Args:
        definition: The class.
        kept: What is surely indexed, where that is known better than by the text.
    """
    letters = {it: it.replace("_", "").lower() for it in methods_of(definition)}
    meant = [it for it, word in letters.items() if word == "len"]
    if len(meant) == 1:
        return f"rename {meant[0]} (line {methods_of(definition)[meant[0]].lineno}) to {LEN}"
    getter = methods_of(definition).get(GETS)
    indexed = indexed_by_number(getter) if getter else []
    kept = kept or next(iter(indexed), "")
    if not kept:
        return f"write in it def {LEN}(self), which returns the number of samples"
    return f"write in it def {LEN}(self): return len(self.{kept})"


def indexed_by_number(getter: ast.FunctionDef) -> list[str]:
    """`x` of each `self.x[index]` and `self.x.iloc[index]` in a `__getitem__`, in their order."""
    taken = [it.arg for it in (*getter.args.posonlyargs, *getter.args.args)]
    if len(taken) < 2 or any(_stores(it, taken[1]) for it in ast.walk(getter)):
        return []
    found = []
    for node in own_nodes(getter.body):
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == taken[1]:
            words = ast.unparse(node.value).removesuffix(".iloc").split(".")
            if len(words) == 2 and words[0] == taken[0]:
                found.append(words[1])
    return list(dict.fromkeys(found))


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _called(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    """The methods of the data that a fit surely calls."""
    yield "train_dataloader"
    model, _ = read_object(loaded.config.model, "model", loaded.origins)
    is_set = any(it in loaded.config.trainer for it in _OF_VALIDATION)
    if not is_set and method_of(model, "validation_step", path):
        yield "val_dataloader"


def _given(
    located: Located, method: ast.FunctionDef, data: str, path: Sequence[str]
) -> Located | None:
    """The set without a length that the one loader of a method has; None where it may have another.

    Args:
        located: The class whose text has the method.
        data: The user's data class, which may derive from it.
    """
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    if len(returns) != 1 or method.body[-1] is not returns[0]:
        return None
    loader = made(returns[0].value, method)
    if torchs_class(loader, located) != "DataLoader" or not isinstance(loader, ast.Call):
        return None
    named = {it.arg: it.value for it in loader.keywords}
    if _OTHER_ORDERS & named.keys() or len(loader.args) > _FIRST:
        return None
    value = next(iter(loader.args), named.get("dataset"))
    if isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self":
        answers = [_lacking(it, of, path) for of, it in _assigned(data, value.attr, path)]
        return answers[0] if answers and all(answers) else None
    return _lacking(made(value, method), located, path)


def _lacking(value: ast.expr | None, located: Located, path: Sequence[str]) -> Located | None:
    """The class without a length that a call makes an object of."""
    if not isinstance(value, ast.Call):
        return None
    name = f"{located.module}.{ast.unparse(value.func)}"
    found = locate(name, path) if name.replace(".", "").isidentifier() else None
    return found if found and lacks_method(name, LEN, path) else None


def _assigned(
    dotted: str, name: str, path: Sequence[str], steps: int = _MOST_BASES
) -> list[tuple[Located, ast.expr | None]]:
    """What `self.NAME` is set to, with the class whose text has it; None where it is unknown."""
    found = locate(dotted, path) if steps else None
    definition = found.definition if found else None
    if found is None or not isinstance(definition, ast.ClassDef) or is_lightnings(found.module):
        return []
    values: list[tuple[Located, ast.expr | None]] = []
    known: set[int] = set()
    for node in ast.walk(definition):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for it in (it for it in targets if ast.unparse(it) == f"self.{name}"):
                known.add(id(it))
                values += [(found, node.value)] if node.value is not None else []
        elif isinstance(node, ast.Attribute) and node.attr == name:
            if isinstance(node.ctx, ast.Store) and id(node) not in known:
                values.append((found, None))  # by a loop, of a tuple
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            values.append((found, None))
    for base in map(ast.unparse, definition.bases):
        values += _assigned(f"{found.module}.{base}", name, path, steps - 1)
    return values
