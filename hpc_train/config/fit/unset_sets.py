"""What a loader of an evaluation reads of its data module, and no method of it sets."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.fit.late_loaders import run_by, surely_run
from hpc_train.config.load import LoadedConfig
from hpc_train.config.python_text.class_kind import locate, place_of
from hpc_train.config.python_text.method_signatures import hands_itself_on, methods_of
from hpc_train.config.python_text.modules import bound_in
from hpc_train.config.specs import classes_of, read_object

# Of LightningDataModule itself (pytorch_lightning/core/datamodule.py and the mixins).
_LIGHTNINGS = {
    *("trainer", "hparams", "hparams_initial", "name", "prepare_data_per_node"),
    *("allow_zero_length_dataloader_with_multiple_devices", "prepare_data", "setup", "teardown"),
    *("train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader", "state_dict"),
    *("load_state_dict", "on_exception", "save_hyperparameters", "from_datasets"),
    *("load_from_checkpoint", "transfer_batch_to_device", "on_before_batch_transfer"),
    *("on_after_batch_transfer", "CHECKPOINT_HYPER_PARAMS_KEY", "CHECKPOINT_HYPER_PARAMS_NAME"),
    "CHECKPOINT_HYPER_PARAMS_TYPE",
}
_OWN_WAYS = ("setattr(", "__dict__", "__getattr", "vars(", "exec(", "super().__init__(*")


def unset_set(loaded: LoadedConfig, loader: str, path: Sequence[str]) -> tuple[str, str]:
    """What is wrong, with its line, and what to write; empty where it is not sure.

    Args:
        loader: `test_dataloader`.
        path: As `sys.path`, with the user's folder first.
    """
    class_path, _ = read_object(loaded.config.data, "data", loaded.origins)
    found = locate(class_path, path)
    own = found.definition if found else None
    if found is None or not isinstance(own, ast.ClassDef) or not _is_whole(own):
        return "", ""
    methods, text = methods_of(own), ast.unparse(own)
    if loader not in methods or methods[loader].decorator_list or _others_may(loaded, path):
        return "", ""
    there = {*_LIGHTNINGS, *methods, *bound_in(own)}
    there |= {
        it.attr
        for it in ast.walk(own)
        if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Store)
    }
    for statement in surely_run(methods[loader]):
        for node in run_by(statement):
            if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != "self":
                continue
            # As a text it may be set by a name, in a helper of the user's.
            if node.attr in there or repr(node.attr) in text:
                continue
            place = place_of(found, node.lineno, path)
            said = f"{class_path}: its {loader} reads self.{node.attr} ({place}), and no method of"
            return f"{said} it sets that", _how_to_set(node.attr, methods.get("setup"))
    return "", ""


def _is_whole(definition: ast.ClassDef) -> bool:
    """Whether the text has all that the class has, beside what is Lightning's."""
    bases = [ast.unparse(it).rpartition(".")[2] for it in definition.bases]
    is_plain = not definition.decorator_list and not definition.keywords
    text = ast.unparse(definition)
    is_open = hands_itself_on(definition) or any(it in text for it in _OWN_WAYS)
    return bases == ["LightningDataModule"] and is_plain and not is_open


def _others_may(loaded: LoadedConfig, path: Sequence[str]) -> bool:
    """Whether the model or a callback of the user's speaks of the data module."""
    for key, spec in classes_of(loaded.config):
        found = locate(read_object(spec, key, loaded.origins)[0], path) if key != "data" else None
        definition = found.definition if found else None
        if definition is not None and "datamodule" in ast.unparse(definition):
            return True
    return False


def _how_to_set(name: str, setup: ast.FunctionDef | None) -> str:
    if setup is None:
        return f"write def setup(self, stage=None): self.{name} = ..., the data set"
    return f"write self.{name} = ..., the data set, in its setup (line {setup.lineno})"
