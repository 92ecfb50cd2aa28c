"""The DataLoaders that a fit surely makes by the data's class, told from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_train.config.fit.sure_samplers import made, torchs_class
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import Located, method_of, place_of
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.specs import read_object

# With one of these a validation may never begin.
_OF_VALIDATION = ("limit_val_batches", "check_val_every_n_epoch", "overfit_batches")


@dataclass(frozen=True)
class SureLoader:
    """A call of torch's DataLoader.

    Attributes:
        data: The user's data class, as the config has it.
        located: The class whose text has the method.
        method: Which returns it.
    """

    data: str
    located: Located
    method: ast.FunctionDef
    call: ast.Call

    def given(self, name: str) -> ast.expr | None:
        """The value of an argument that is given by its name."""
        return next((it.value for it in self.call.keywords if it.arg == name), None)

    def said(self, path: Sequence[str]) -> str:
        """`the DataLoader of data.Images.train_dataloader (data.py:12)`."""
        place = place_of(self.located, self.method.lineno, path)
        return f"the DataLoader of {self.data}.{self.method.name} ({place})"


def sure_loaders(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[SureLoader]:
    """One for each method of the data that a fit surely calls, and that has one loader alone.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    data, _ = read_object(loaded.config.data, "data", loaded.origins)
    for name in _called(loaded, path):
        found = method_of(data, name, path)
        if found and (call := _only_loader(*found)):
            yield SureLoader(data, *found, call)


def _called(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[str]:
    yield "train_dataloader"
    model, _ = read_object(loaded.config.model, "model", loaded.origins)
    is_set = any(it in loaded.config.trainer for it in _OF_VALIDATION)
    if not is_set and method_of(model, "validation_step", path):
        yield "val_dataloader"


def _only_loader(located: Located, method: ast.FunctionDef) -> ast.Call | None:
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    if len(returns) != 1 or method.body[-1] is not returns[0]:
        return None
    loader = made(returns[0].value, method)
    is_torchs = torchs_class(loader, located) == "DataLoader"
    return loader if is_torchs and isinstance(loader, ast.Call) else None
