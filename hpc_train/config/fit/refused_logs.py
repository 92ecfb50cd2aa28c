"""`self.log` in a hook in which Lightning refuses it, of a model or a callback: told by the text.

Source: `LightningModule.log` of pytorch_lightning/core/module.py, and fx_validator.py of
trainer/connectors/logger_connector, which has None for these hooks. A callback has the model's
`log` as its own (`_attach_model_logging_functions`, trainer/connectors/callback_connector.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_train.config.fit.late_loaders import run_by, surely_run
from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.fit.sure_hooks import LENGTHS
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import derives_from, locate, method_of, place_of
from hpc_train.config.python_text.method_signatures import own_nodes
from hpc_train.config.specs import CLASS_PATH, TARGET, classes_of, read_object, wanted_of

# Of each hook the one in which the same may be logged, or none.
_HOOKS = {
    "setup": "on_train_start",
    "on_fit_start": "on_train_start",
    "on_train_end": "on_train_epoch_end",
    "on_fit_end": "",
    "on_validation_end": "on_validation_epoch_end",
    "on_sanity_check_start": "",
    "on_sanity_check_end": "",
    "on_test_end": "on_test_epoch_end",
}
_OF_A_MODEL = {"configure_optimizers": "on_train_start"}
# Those that each fit calls, and those of a fit that validates.
_ALWAYS = ("setup", "on_fit_start", "on_train_end", "on_fit_end", "configure_optimizers")
_VALIDATES = ("on_validation_end",)
_LOGS = ("log", "log_dict")


@dataclass(frozen=True, slots=True)
class RefusedLog:
    """A call in a class of the config.

    Attributes:
        key: Of the class.
        is_sure: Whether each fit of this config comes to it.
    """

    key: str
    said: str
    hint: str
    is_sure: bool


def refused_logs(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[RefusedLog]:
    """The first in each such hook.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    for key, spec in classes_of(loaded.config):
        class_path, _ = read_object(spec, key, loaded.origins)
        kind, found = wanted_of(key), locate(class_path, path)
        if key == "data" or found is None or is_lightnings(found.module):
            continue
        if derives_from(found, kind, path) is not True:
            continue
        text = ast.unparse(found.definition) if found.definition else ""
        if "self.log =" in text or any(method_of(class_path, it, path) for it in _LOGS):
            continue  # a log of its own
        at = f"{key}.{TARGET if TARGET in spec else CLASS_PATH}"
        for hook in (*_HOOKS, *(_OF_A_MODEL if key == "model" else ())):
            if told := _in_hook(class_path, hook, loaded, path, is_model=key == "model"):
                yield RefusedLog(at, *told)


def _in_hook(
    class_path: str, hook: str, loaded: LoadedConfig, path: Sequence[str], *, is_model: bool
) -> tuple[str, str, bool] | None:
    found = method_of(class_path, hook, path)
    if found is None or is_lightnings(found[0].module):
        return None
    home, method = found
    owners = _owners(method, is_model=is_model)
    call = next((it for it in own_nodes(method.body) if _is_log(it, owners)), None)
    if not isinstance(call, ast.Call) or "try:" in ast.unparse(method):
        return None
    place = place_of(home, call.lineno, path)
    said = f"{class_path}.{hook} calls {ast.unparse(call.func)} ({place}), which Lightning refuses"
    sure = [node for it in surely_run(method) for node in run_by(it)]
    is_sure = call in sure and _is_called(hook, loaded, path)
    return f"{said} in that hook", _hint(hook, call, method, is_model=is_model), is_sure


def _owners(method: ast.FunctionDef, *, is_model: bool) -> tuple[str, ...]:
    """What the hook calls the model by, whose `log` a callback has as its own."""
    names = [it.arg for it in (*method.args.posonlyargs, *method.args.args)]
    if is_model or len(names) < 3:
        return ("self",)
    return ("self", names[2], f"{names[1]}.lightning_module")


def _is_log(node: ast.AST, owners: Sequence[str]) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    is_log = isinstance(function, ast.Attribute) and function.attr in _LOGS
    return is_log and ast.unparse(function.value) in owners  # type: ignore[union-attr]


def _is_called(hook: str, loaded: LoadedConfig, path: Sequence[str]) -> bool:
    trainer = loaded.config.trainer
    if any(trainer.get(it) == 0 for it in LENGTHS) or trainer.get("barebones"):
        return False
    if hook in _ALWAYS:
        return True
    data, _ = read_object(loaded.config.data, "data", loaded.origins)
    if hook not in _VALIDATES or trainer.get("limit_val_batches") == 0:
        return False
    model, _ = read_object(loaded.config.model, "model", loaded.origins)
    steps = method_of(model, "validation_step", path), method_of(data, "val_dataloader", path)
    return None not in steps and trainer.get("check_val_every_n_epoch") in (None, 1)


def _hint(hook: str, call: ast.Call, method: ast.FunctionDef, *, is_model: bool) -> str:
    """The hook that may, and the logger itself, which takes it anywhere."""
    other = {**_HOOKS, **_OF_A_MODEL}[hook]
    owners = _owners(method, is_model=is_model)
    model = owners[1] if len(owners) > 1 else "self"
    step = "self.global_step" if is_model else f"{model}.global_step"
    given = dict(zip(("name", "value"), call.args, strict=False))
    given |= {it.arg: it.value for it in call.keywords if it.arg in ("name", "value")}
    if ast.unparse(call.func).endswith("log_dict"):
        metrics = ast.unparse(call.args[0]) if call.args else "{...}"
    else:
        pair = (ast.unparse(given[it]) if it in given else "..." for it in ("name", "value"))
        metrics = f"{{{': '.join(pair)}}}"
    direct = f"{model}.logger.log_metrics({metrics}, step={step})"
    instead = f"log it in {other}, or write" if other else "write"
    return f"{instead} {direct} in its place"
