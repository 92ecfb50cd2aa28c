"""A sampler that a run refuses, in the train loader that a script's fit is surely given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from hpc_train.config.fit.sure_samplers import INSTEAD, order_refusal, wrong_sampler
from hpc_train.config.python_text.class_kind import Located, place_of
from hpc_train.config.python_text.harmless_code import imported_names
from hpc_train.config.python_text.method_signatures import methods_of, own_nodes
from hpc_train.config.python_text.modules import full_name
from hpc_train.config.scripts.script_call_arguments import sure_calls

_HOOK = "train_dataloader"
_DATA, _MODEL = ("train_dataloaders", "datamodule"), "model"
_SAMPLER = 3  # its place among a DataLoader's arguments
_OF_TORCH = ("torch.utils.data.", "torch.utils.data.dataloader.", "torch.utils.data.sampler.")


def refused_samplers(
    tree: ast.Module,
    trainers: Collection[str],
    class_of: Callable[[str], Located | None],
    path: Sequence[str],
) -> Iterator[tuple[int, str, str]]:
    """The line of each fit that a run comes to, what is wrong with its data, and what to write.

    Args:
        trainers: How the script writes Lightning's Trainer.
        class_of: Where the text of a class is, by its name in the script.
        path: As `sys.path`, with the script's folder first.
    """
    for call in sure_calls(tree):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "fit":
            continue
        scope = _CallScope(tree, call)
        trainer = scope.value(call.func.value)
        if not isinstance(trainer, ast.Call) or ast.unparse(trainer.func) not in trainers:
            continue
        if wrong := _of_fit(call, scope, class_of, path):
            yield call.lineno, *wrong


def _of_fit(
    fit: ast.Call,
    scope: _CallScope,
    class_of: Callable[[str], Located | None],
    path: Sequence[str],
) -> tuple[str, str] | None:
    given: Mapping[str | None, ast.expr] = {it.arg: it.value for it in fit.keywords}
    if None in given or any(isinstance(it, ast.Starred) for it in fit.args):
        return None
    data = [*fit.args[1:2], *(given[it] for it in _DATA if it in given)]
    model = next(iter(fit.args), given.get(_MODEL))
    value = scope.value(data[0] if data else model)
    if not isinstance(value, ast.Call):
        return None
    if scope.of_torch(value) == "DataLoader":
        return _of_loader(value, scope)
    found = class_of(ast.unparse(value.func))
    definition = found.definition if found else None
    if found is None or not isinstance(definition, ast.ClassDef):
        return None
    method, own = methods_of(definition).get(_HOOK), f"{found.module}.{found.name}"
    wrong = wrong_sampler(own, found, method, path) if method is not None else None
    if wrong is None:
        return None
    line, said, hint = wrong
    return f"fits with {found.name}.{_HOOK} ({place_of(found, line, path)}): {said}", hint


def _of_loader(loader: ast.Call, scope: _CallScope) -> tuple[str, str] | None:
    given: Mapping[str | None, ast.expr] = {it.arg: it.value for it in loader.keywords}
    is_open = None in given or any(isinstance(it, ast.Starred) for it in loader.args)
    place = loader.args[_SAMPLER] if len(loader.args) > _SAMPLER else None
    sampler = scope.value(given.get("sampler", place))
    if is_open or not isinstance(sampler, ast.Call):
        return None
    name = scope.of_torch(sampler)
    if name not in INSTEAD:
        return None
    said, hint = order_refusal(name, INSTEAD[name])
    at = "" if sampler.lineno == loader.lineno else f", with the sampler of line {sampler.lineno}"
    return f"fits with the DataLoader of line {loader.lineno}{at}: {said}", hint


class _CallScope:
    """What names mean at a call: those of the function around it, else those of the module."""

    def __init__(self, tree: ast.Module, call: ast.Call) -> None:
        functions = [it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef)]
        around = [it for it in functions if any(node is call for node in ast.walk(it))]
        self._arguments = {
            it.arg for of in around for it in ast.walk(of) if isinstance(it, ast.arg)
        }
        bodies = [*(it.body for it in reversed(around)), tree.body]
        self._scopes = [[*own_nodes(it)] for it in bodies]
        self._imported = imported_names(tree)

    def value(self, node: ast.expr | None) -> ast.expr | None:
        """What a name is surely assigned, once; any other value itself."""
        if not isinstance(node, ast.Name):
            return node
        for nodes in self._scopes if node.id not in self._arguments else ():
            bound = [
                it
                for it in nodes
                if isinstance(it, ast.Name) and it.id == node.id and isinstance(it.ctx, ast.Store)
            ]
            made = [
                it.value
                for it in nodes
                if isinstance(it, ast.Assign)
                and [ast.unparse(to) for to in it.targets] == [node.id]
            ]
            if bound:
                return made[0] if len(bound) == len(made) == 1 else None
        return None

    def of_torch(self, call: ast.Call) -> str:
        """The name of a class of torch.utils.data; empty for any other that is called."""
        full = full_name(ast.unparse(call.func), self._imported)
        return full.rpartition(".")[2] if full.startswith(_OF_TORCH) else ""
