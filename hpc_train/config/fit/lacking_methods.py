"""A method that Lightning calls and a class has not: how to write it, or what to rename."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from hpc_train.config.fit.batch_predicted import whole_batch_predicted
from hpc_train.config.fit.logs_in_predict import INSTEAD, logs_in_predict
from hpc_train.config.fit.misnamed_methods import CALLED, renamed
from hpc_train.config.fit.sure_refusals import check_old_hooks
from hpc_train.config.fit.sure_steps import wrong_step
from hpc_train.config.fit.unset_sets import unset_set
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import Located, lacks_method, locate
from hpc_train.config.python_text.method_signatures import methods_of
from hpc_train.config.python_text.modules import bound_in
from hpc_train.config.specs import read_object
from hpc_train.errors import ConfigError

_RATES = ("lr", "learning_rate")


def how_to_write(method: str, found: Located | None = None) -> str:
    """`write def test_step(self, batch, batch_idx): ...`, with a body where that is short."""
    if method == "configure_optimizers":
        made = f"torch.optim.Adam(self.parameters(), lr={_rate_of(found)})"
        return f"write def configure_optimizers(self): return {made}"
    if method == "training_step":
        return "write def training_step(self, batch, batch_idx): ..., which returns the loss"
    if method.endswith("_step"):
        return f"write def {method}(self, batch, batch_idx): ..."
    if of_helper := _by_helper(found):
        return f"write def {method}(self): return {of_helper}"
    shuffle = ", shuffle=True" if method == "train_dataloader" else ""
    return f"write def {method}(self): return DataLoader(DATASET, self.batch_size{shuffle})"


def own_names(found: Located | None) -> set[str]:
    """What the body of a class binds."""
    definition = found.definition if found else None
    return bound_in(definition) if isinstance(definition, ast.ClassDef) else set()


def check_evaluated(
    loaded: LoadedConfig, needed: tuple[Sequence[str], str], verb: str, path: Sequence[str]
) -> None:
    """Refuse classes whose text tells that they lack what an evaluation calls, both in one line.

    Args:
        needed: Methods of the model, of which one will do, and the method of the data.
        path: As `sys.path`, with the user's folder first.

    Raises:
        ConfigError: with the class and the method.
    """
    lacking, hints = [], []
    for key, names in (("model", needed[0]), ("data", (needed[1],))):
        class_path, _ = read_object(getattr(loaded.config, key), key, loaded.origins)
        if all(lacks_method(class_path, name, path) for name in names):
            found = locate(class_path, path)
            lacking.append(f"{class_path} has no {names[0]}")
            hints.append(renamed(names[0], found) or how_to_write(names[0], found))
            continue
        for name in (it for it in names if key == "model" and it.endswith("_step")):
            said, hint = wrong_step(class_path, name, path)
            if said:
                raise ConfigError(said, hint)
        if key == "model":
            old = {"test": ("test_epoch_end",), "validate": ("validation_epoch_end",)}
            check_old_hooks(class_path, old.get(verb, ()), path)
            if said := logs_in_predict(class_path, path) if verb == "predict" else "":
                raise ConfigError(f"{said}, and Lightning takes no log of a prediction", INSTEAD)
    if verb == "predict" and not lacking and (wrong := whole_batch_predicted(loaded, path)):
        raise ConfigError(*wrong)
    if lacking:
        raise _lacks(loaded, lacking, hints, verb, path)
    said, hint = unset_set(loaded, needed[1], path)
    if said:
        raise ConfigError(said, f"{hint}{_or_validate(loaded, verb, path)}")


def _lacks(
    loaded: LoadedConfig,
    lacking: Sequence[str],
    hints: Sequence[str],
    verb: str,
    path: Sequence[str],
) -> ConfigError:
    other = _or_validate(loaded, verb, path)
    if hints[-1:] and verb == "predict" and len(lacking) == 1 and "dataloader" in lacking[0]:
        model_too = whole_batch_predicted(loaded, path, without_loader=True)
        other = f"; for batches as there, in the model {model_too[1]}" if model_too else ""
    said = f"{', and '.join(lacking)}, which {verb} calls"
    return ConfigError(said, f"{'; '.join(hints)}{other}")


def _or_validate(loaded: LoadedConfig, verb: str, path: Sequence[str]) -> str:
    validates = verb == "test" and _validates(loaded, path)
    return "; or hpc-train validate RUN, for the validation data" if validates else ""


def _validates(loaded: LoadedConfig, path: Sequence[str]) -> bool:
    """Whether nothing tells that `validate` lacks a method."""
    of = {"model": "validation_step", "data": "val_dataloader"}
    classes = {key: read_object(getattr(loaded.config, key), key, loaded.origins)[0] for key in of}
    return not any(lacks_method(classes[key], name, path) for key, name in of.items())


def _rate_of(found: Located | None) -> str:
    """What a model keeps its learning rate as; 1e-3 where its text does not tell."""
    definition = found.definition if found else None
    start = methods_of(definition).get("__init__") if isinstance(definition, ast.ClassDef) else None
    if start is None:
        return "1e-3"
    text = ast.unparse(start)
    taken = [it.arg for it in (*start.args.args, *start.args.kwonlyargs)]
    for name in _RATES:
        if re.search(rf"\bself\.{name}\b", text):
            return f"self.{name}"
        if name in taken and "save_hyperparameters()" in text:
            return f"self.hparams.{name}"
    return "1e-3"


def _by_helper(found: Located | None) -> str:
    """`self._loader(...)`, where the other loaders of a class are no more than a call of it."""
    definition = found.definition if found else None
    methods = methods_of(definition) if isinstance(definition, ast.ClassDef) else {}
    for name in ("val_dataloader", "test_dataloader", "train_dataloader"):
        last = methods[name].body[-1] if name in methods else None
        call = last.value if isinstance(last, ast.Return) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if isinstance(call.func.value, ast.Name) and call.func.attr in {*methods} - {*CALLED}:
            given = "..." if call.args or call.keywords else ""
            return f"{ast.unparse(call.func)}({given}), as {name} (line {call.lineno}) does"
    return ""
