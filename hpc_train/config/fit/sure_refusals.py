"""What Lightning surely refuses as a fit, or a test, begins: told from the text of the classes.

Where the text leaves room for another end, `code_notes` says it and nothing is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.fit.assigned_properties import assigned_property
from hpc_train.config.fit.clashing_hparams import clashing_hparams
from hpc_train.config.fit.early_asks import early_asks
from hpc_train.config.fit.endless_batches import endless_batches
from hpc_train.config.fit.hook_notes import REFUSED
from hpc_train.config.fit.incomplete_calls import incomplete_calls
from hpc_train.config.fit.late_loaders import early_hook, late_loader
from hpc_train.config.fit.lengthless_sets import without_length
from hpc_train.config.fit.manual_optimization import clipped_by_hand, split_by_hand
from hpc_train.config.fit.mapping_reads import mapping_reads
from hpc_train.config.fit.own_backward import FIX, own_backward
from hpc_train.config.fit.paired_schedules import paired_schedule
from hpc_train.config.fit.refused_logs import refused_logs
from hpc_train.config.fit.same_states import same_states
from hpc_train.config.fit.sampleless_sets import misnamed_getitem
from hpc_train.config.fit.several_optimizers import refused_optimizers
from hpc_train.config.fit.silent_forwards import silent_forward
from hpc_train.config.fit.sure_hooks import wrong_hooks
from hpc_train.config.fit.sure_losses import detached_loss
from hpc_train.config.fit.sure_samplers import wrong_sampler
from hpc_train.config.fit.sure_steps import wrong_step
from hpc_train.config.fit.swapped_log import swapped_log
from hpc_train.config.fit.uncalled_classes import uncalled_class
from hpc_train.config.fit.unrun_validation import unrun_validations
from hpc_train.config.fit.unsaved_hparams import unsaved_hparams
from hpc_train.config.fit.wrong_collates import wrong_collate
from hpc_train.config.gathered import tell_together
from hpc_train.config.load import LoadedConfig
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.bare_methods import bare_methods
from hpc_train.config.python_text.class_kind import (
    Located,
    lightning_package,
    locate,
    method_of,
    place_of,
)
from hpc_train.config.python_text.method_signatures import (
    PLATEAU_FORM,
    sure_plateau,
    without_loader,
)
from hpc_train.config.python_text.undefined_names import all_undefined
from hpc_train.config.specs import classes_of, read_object
from hpc_train.errors import ConfigError


def check_refused_by_lightning(loaded: LoadedConfig, path: Sequence[str]) -> None:
    """Refuse what ends each fit before its first step.

    Args:
        path: As `sys.path`, with the user's folder first.

    Raises:
        ConfigError: with the key, and the file and line of what has to be changed.
    """
    class_path, _ = read_object(loaded.config.model, "model", loaded.origins)
    try:
        check_old_hooks(class_path, ("training_epoch_end", "validation_epoch_end"), path)
    except ConfigError as error:
        message = f": {error.message}"
        raise loaded.origins.error("model.class_path", message, error.hint) from error
    for key, said, name in all_undefined(loaded, path):
        if name.is_sure:
            raise loaded.origins.error(key, f": {said}", name.fix)
    _check_assigned(loaded, path)
    tell_together(loaded.origins.error(*it) for it in mapping_reads(loaded, path))
    early = early_hook(loaded, path)
    for find in (late_loader, endless_batches):
        said, hint = find(early, path) if early else ("", "")
        if said:
            raise loaded.origins.error("model.class_path", f": {said}", hint)
    _check_optimizers(class_path, path, loaded.origins)
    _check_steps(class_path, loaded, path)
    _check_loader(loaded, path)
    _check_hooks(loaded, path)
    _check_one_lightning(class_path, loaded, path)


def check_old_hooks(class_path: str, hooks: Sequence[str], path: Sequence[str]) -> None:
    """Refuse a model with one of Lightning 1's hooks (trainer/configuration_validator.py).

    Raises:
        ConfigError: the class, or a base of the user's, surely has it.
    """
    for hook in hooks:
        if found := method_of(class_path, hook, path):
            place = place_of(found[0], found[1].lineno, path)
            article = "an" if hook[0] in "aeiou" else "a"
            step = hook.replace("_epoch_end", "_step")
            raise ConfigError(
                f"{class_path} has {article} {hook} ({place}), which Lightning 2 refuses to run"
                " with",
                f"write def {REFUSED[hook]}(self), and have {step} keep in self what it needs of"
                " the outputs",
            )


def _check_assigned(loaded: LoadedConfig, path: Sequence[str]) -> None:
    epochs = loaded.config.trainer.get("max_epochs")
    has_epochs = type(epochs) is int and epochs > 0
    for key in ("model", "data"):
        class_path, _ = read_object(getattr(loaded.config, key), key, loaded.origins)
        wrong = [*filter(None, [assigned_property(class_path, path)])]
        wrong += early_asks(class_path, path, has_epochs=has_epochs)
        wrong += incomplete_calls(class_path, path)
        wrong += [it for it in (unsaved_hparams(class_path, path),) if all(it)]
        tell_together(
            loaded.origins.error(f"{key}.class_path", f": {said}", hint) for said, hint in wrong
        )


def _check_optimizers(class_path: str, path: Sequence[str], origins: Origins) -> None:
    found = locate(class_path, path)
    if found is None or found.names is None or not isinstance(found.definition, ast.ClassDef):
        return
    line, pair, hint = paired_schedule(found.definition, found.names.imports)
    if line:
        said = f"{class_path} returns {pair} ({place_of(found, line, path)})"
        message = f": {said}, which Lightning refuses: a schedule is no optimizer"
        raise origins.error("model.class_path", message, hint)
    if line := sure_plateau(found.definition, found.names):
        said = f"{class_path} returns a ReduceLROnPlateau ({place_of(found, line, path)})"
        message = f": {said} and names no monitor, which Lightning refuses"
        raise origins.error("model.class_path", message, f"return {PLATEAU_FORM}")
    line, hint = refused_optimizers(found.definition, found.names.imports)
    if line:
        said = f"{class_path} returns several optimizers ({place_of(found, line, path)})"
        message = f": {said}, which Lightning 2 leaves to the model"
        raise origins.error("model.class_path", message, hint)


def _check_steps(class_path: str, loaded: LoadedConfig, path: Sequence[str]) -> None:
    """Refuse steps that cannot be called, and a loss that cannot be learned from."""
    data, _ = read_object(loaded.config.data, "data", loaded.origins)
    validates = method_of(data, "val_dataloader", path) is not None
    validates = validates and loaded.config.trainer.get("limit_val_batches") != 0
    for name in ("training_step", *(("validation_step",) if validates else ())):
        said, hint = wrong_step(class_path, name, path)
        if said:
            raise loaded.origins.error("model.class_path", f": {said}", hint)
    found = locate(class_path, path)
    if found is None or not isinstance(found.definition, ast.ClassDef):
        return
    if detached := detached_loss(found.definition, found.names.imports if found.names else {}):
        place = place_of(found, detached[0], path)
        message = f": {class_path}.training_step gives a loss without a gradient ({place})"
        raise loaded.origins.error("model.class_path", message, detached[1])
    if (silent := silent_forward(found, path)) and silent.is_sure:
        message = f": {class_path} {silent.said}"
        raise loaded.origins.error("model.class_path", message, silent.hint)
    said, hint = uncalled_class(class_path, path)
    if said:
        raise loaded.origins.error("model.class_path", f": {said}", hint)
    _check_lines(class_path, found, loaded, path)


def _check_lines(
    class_path: str, found: Located, loaded: LoadedConfig, path: Sequence[str]
) -> None:
    """Refuse single lines of the model that surely fail, or do nothing."""
    assert isinstance(found.definition, ast.ClassDef)
    if clipped := clipped_by_hand(found.definition, loaded.config.trainer):
        name, line, hint = clipped
        off = f"sets automatic_optimization = False ({place_of(found, line, path)})"
        said = f"is nothing that Lightning does where {class_path} {off}"
        raise loaded.origins.error(f"trainer.{name}", said, hint)
    if split := split_by_hand(found.definition, loaded.config):
        off = f"sets automatic_optimization = False ({place_of(found, split[0], path)})"
        said = f"makes several micro batches a step, and {class_path} {off}"
        raise loaded.origins.error("micro_batch_size", said, split[1])
    if swapped := swapped_log(found.definition):
        line, said, hint = swapped
        message = f": {class_path} {said} ({place_of(found, line, path)})"
        raise loaded.origins.error("model.class_path", message, hint)
    for line, said, hint in bare_methods(found.definition):
        message = f": {class_path} {said} ({place_of(found, line, path)})"
        raise loaded.origins.error("model.class_path", message, hint)
    if own := own_backward(found.definition):
        place = place_of(found, own[1], path)
        message = f": {class_path}.training_step calls {own[0]} ({place}), which Lightning does"
        raise loaded.origins.error("model.class_path", f"{message} itself", FIX)


def _check_hooks(loaded: LoadedConfig, path: Sequence[str]) -> None:
    """Refuse what a hook, a callback, or a state or value of one surely ends the fit with."""
    found = [(key, f": {said}", hint) for key, said, hint in wrong_hooks(loaded, path)]
    found += [(it.key, it.said, it.hint) for it in unrun_validations(loaded, path) if it.is_sure]
    found += [(it.key, f": {it.said}", it.hint) for it in refused_logs(loaded, path) if it.is_sure]
    found += [*filter(None, [same_states(loaded, path)]), *clashing_hparams(loaded, path)]
    tell_together(loaded.origins.error(*it) for it in found)


def _check_loader(loaded: LoadedConfig, path: Sequence[str]) -> None:
    class_path, _ = read_object(loaded.config.data, "data", loaded.origins)
    data = locate(class_path, path)
    said, hint = misnamed_getitem(data, path) if data else ("", "")
    if said:
        raise loaded.origins.error("data.class_path", f": {class_path} {said}", hint)
    found = method_of(class_path, "train_dataloader", path)
    hint = without_loader(found[1]) if found else ""
    if found and hint:
        place = place_of(found[0], found[1].lineno, path)
        message = f": {class_path} has a train_dataloader ({place}) that returns nothing"
        raise loaded.origins.error("data.class_path", f"{message}, so no batch would come", hint)
    model = locate(read_object(loaded.config.model, "model", loaded.origins)[0], path)
    trained = model.definition if model else None
    if found and (wrong := wrong_sampler(class_path, *found, path, trained)):
        line, said, hint = wrong
        message = f": train_dataloader ({place_of(found[0], line, path)}): {said}"
        raise loaded.origins.error("data.class_path", message, hint)
    for said, hint in (without_length(loaded, path), wrong_collate(loaded, path)):
        if said:
            raise loaded.origins.error("data.class_path", f": {said}", hint)


def _check_one_lightning(class_path: str, loaded: LoadedConfig, path: Sequence[str]) -> None:
    """Refuse classes of the two packages of Lightning beside each other: no Trainer takes both."""
    wanted = lightning_package(class_path, path)
    for key, spec in classes_of(loaded.config):
        other, _ = read_object(spec, key, loaded.origins)
        package = lightning_package(other, path)
        if not wanted or not package or package == wanted:
            continue
        found = locate(other, path)
        line = found.definition.lineno if found and found.definition else 1
        place = f" ({place_of(found, line, path)})" if found else ""
        raise loaded.origins.error(
            f"{key}.class_path",
            f": {other}{place} derives from a class of {package}, and the model, {class_path},"
            f" from one of {wanted}: no Trainer takes both",
            f"have both import the same of the two: from {wanted} import ...",
        )
