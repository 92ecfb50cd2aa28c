"""A script's `trainer.test(...)` that has no data, or no checkpoint, wherever it comes to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence

from hpc_train.config.python_text.class_kind import Located
from hpc_train.config.python_text.method_signatures import is_of_lightning_alone, methods_of

# A method of Lightning's Trainer, and what of its model or data gives it batches.
_LOADERS = {
    "validate": "val_dataloader",
    "test": "test_dataloader",
    "predict": "predict_dataloader",
}
_GIVES_DATA = re.compile(r"data(?:module|loaders?|sets?)?|\w+_dataloaders?")  # also an old word
_FIT = "fit"


def wrong_evaluations(
    tree: ast.Module,
    calls: Sequence[ast.Call],
    trainer: ast.Call,
    once: Collection[str],
    class_of: Callable[[str], Located | None],
) -> Iterator[tuple[ast.Call, str, str]]:
    """Each of those calls with what is wrong with it, and what to write.

    Args:
        calls: Of methods of the script's one Trainer, which each run comes to, in their order.
        trainer: What makes the Trainer.
        once: Names that are bound once.
        class_of: Where the text of a class is, by its name in the script.
    """
    if any(_leaves_open(it.arg) for it in trainer.keywords):
        return
    read = _Read(tree, once, class_of)
    fit = next((it for it in calls if _method(it) == _FIT), None)
    for call in calls:
        if (verb := _method(call)) not in _LOADERS:
            continue
        told = read.without_data(call, verb, fit) or read.without_checkpoint(call, verb, trainer)
        if told:
            yield (call, *told)


def _leaves_open(argument: str | None) -> bool:
    """Whether an argument of a Trainer may have it take no batch, or is not known."""
    return argument is None or argument.startswith(("limit_", "fast_dev_run", "overfit_"))


class _Read:
    """What the script says of its models, its data and its fits."""

    def __init__(
        self,
        tree: ast.Module,
        once: Collection[str],
        class_of: Callable[[str], Located | None],
    ) -> None:
        self._tree = tree
        self._class_of = class_of
        self._made = {
            it.targets[0].id: it.value
            for it in ast.walk(tree)
            if isinstance(it, ast.Assign) and isinstance(it.targets[0], ast.Name)
            if it.targets[0].id in once and len(it.targets) == 1
        }

    def without_data(
        self, call: ast.Call, verb: str, fit: ast.Call | None
    ) -> tuple[str, str] | None:
        """Of `trainer.test(model)`: Lightning does not keep the data of an earlier fit."""
        given = {it.arg: it.value for it in call.keywords}
        is_open = None in given or any(isinstance(it, ast.Starred) for it in call.args)
        if is_open or len(call.args) > 1 or any(_GIVES_DATA.fullmatch(it or "") for it in given):
            return None
        model = _first(call, "model") or (_first(fit, "model") if fit else None)
        definition = self._class(model)
        loader = _LOADERS[verb]
        if model is None or definition is None or not is_of_lightning_alone(definition):
            return None
        if loader in ast.unparse(definition) or any(
            _sets(it, loader) for it in ast.walk(self._tree)
        ):
            return None
        owner = ast.unparse(call.func)
        said = f"calls {owner} without data, and {ast.unparse(model)} has no {loader}"
        rest = [ast.unparse(it) for it in call.keywords if it.arg != "model"]
        data = self._data_of(fit, loader) or "dataloaders=DATALOADER"
        return said, f"write {owner}({', '.join([ast.unparse(model), data, *rest])})"

    def without_checkpoint(
        self, call: ast.Call, verb: str, trainer: ast.Call
    ) -> tuple[str, str] | None:
        """Of `ckpt_path="best"` where nothing is fitted before it."""
        given = {it.arg: it.value for it in call.keywords}
        path, model = given.get("ckpt_path"), _first(call, "model")
        if not isinstance(path, ast.Constant) or path.value != "best" or model is None:
            return None
        if self._is_handed_on(trainer) or any(_may_fit(it) for it in ast.walk(self._tree)):
            return None
        said = f'has {verb}(..., ckpt_path="best"), and nothing is fitted before it'
        return said, "leave ckpt_path out, which takes the model as it is given, or name a file"

    def _is_handed_on(self, trainer: ast.Call) -> bool:
        """Whether something but its own methods may be called with it, which may fit."""
        names = {name for name, made in self._made.items() if made is trainer}
        nodes = list(ast.walk(self._tree))
        owners = {id(it.value) for it in nodes if isinstance(it, ast.Attribute)}
        read = [it for it in nodes if isinstance(it, ast.Name) and it.id in names]
        bare = [it for it in read if isinstance(it.ctx, ast.Load) and id(it) not in owners]
        return bool(bare) or not (names or id(trainer) in owners)

    def _data_of(self, fit: ast.Call | None, loader: str) -> str:
        """The data module that a fit is given, where it has what is needed; else empty."""
        if fit is None:
            return ""
        named = {it.arg: it.value for it in fit.keywords}
        data = fit.args[1] if len(fit.args) > 1 else named.get("datamodule")
        definition = self._class(data)
        if data is None or definition is None or loader not in methods_of(definition):
            return ""
        is_module = any("LightningDataModule" in ast.unparse(it) for it in definition.bases)
        return f"datamodule={ast.unparse(data)}" if is_module else ""

    def _class(self, value: ast.expr | None) -> ast.ClassDef | None:
        """Of `Net(...)`, and of a name that is bound to that once."""
        if isinstance(value, ast.Name):
            value = self._made.get(value.id)
        found = self._class_of(ast.unparse(value.func)) if isinstance(value, ast.Call) else None
        definition = found.definition if found else None
        return definition if isinstance(definition, ast.ClassDef) else None


def _first(call: ast.Call, name: str) -> ast.expr | None:
    named = {it.arg: it.value for it in call.keywords}
    return call.args[0] if call.args else named.get(name)


def _sets(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _may_fit(node: ast.AST) -> bool:
    """Whether it may train, or tell a callback which checkpoint is the best."""
    if isinstance(node, ast.Attribute):
        return _FIT in node.attr or node.attr in ("best_model_path", "load_state_dict")
    return isinstance(node, ast.Name) and _FIT in node.id


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
