"""What a person should know of the text of a model's and a data's class, though it may be meant."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.fit.batch_axis import last_sample_notes
from hpc_train.config.fit.data_paths import notes_on_paths
from hpc_train.config.fit.epoch_stepped import epoch_stepped
from hpc_train.config.fit.epoch_warmups import epoch_warmup
from hpc_train.config.fit.hook_notes import hook_notes, only_prepared
from hpc_train.config.fit.layer_notes import hidden_layer_notes, with_its_modules
from hpc_train.config.fit.loader_numbers import loader_notes
from hpc_train.config.fit.logs_in_predict import INSTEAD, logs_in_predict
from hpc_train.config.fit.made_folders import notes_on_made_folders
from hpc_train.config.fit.manual_optimization import unstepped_by_hand
from hpc_train.config.fit.monitor_modes import mode_notes
from hpc_train.config.fit.monitor_notes import monitor_notes
from hpc_train.config.fit.near_hooks import near_hooks
from hpc_train.config.fit.onnx_exports import notes_on_exports
from hpc_train.config.fit.parsed_on_import import notes_on_parsed
from hpc_train.config.fit.pruned_weights import notes_on_pruning
from hpc_train.config.fit.rank_zero_calls import rank_zero_notes
from hpc_train.config.fit.refused_logs import refused_logs
from hpc_train.config.fit.relative_paths import notes_on_relative_paths
from hpc_train.config.fit.schedule_notes import misnamed_schedule
from hpc_train.config.fit.silent_forwards import silent_forward
from hpc_train.config.fit.skipped_batches import skipped_batches
from hpc_train.config.fit.trainer_lists import trainer_lists
from hpc_train.config.fit.twice_normalized import (
    twice_normalized_of_class,
)
from hpc_train.config.fit.unknown_stages import unknown_stages
from hpc_train.config.fit.unknown_strategies import unknown_strategy
from hpc_train.config.fit.unrun_validation import unrun_validations
from hpc_train.config.fit.unset_max_steps import unset_max_steps
from hpc_train.config.fit.unsplit_streams import unsplit_stream
from hpc_train.config.fit.unsynced_logs import unsynced_notes
from hpc_train.config.fit.validation_notes import validation_notes
from hpc_train.config.load import LoadedConfig
from hpc_train.config.meant_words.sbatch_lines import notes_on_sbatch_lines, notes_on_setup_lines
from hpc_train.config.paths_not_copied import notes_on_paths_not_copied
from hpc_train.config.python_text.class_kind import Located, locate, place_of
from hpc_train.config.python_text.classes import parameters_of
from hpc_train.config.python_text.default_types import texts_for_numbers
from hpc_train.config.python_text.inner_imports import notes_on_inner_imports
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.python_text.method_signatures import (
    PLATEAU_FORM,
    manual_without_step,
    plateau_without_monitor,
    step_without_loss,
)
from hpc_train.config.python_text.own_modules import hiding
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.python_text.terminal_stops import TELLS, terminal_stops
from hpc_train.config.python_text.undefined_names import all_undefined
from hpc_train.config.python_text.unset_environment import notes_on_unset
from hpc_train.config.schema import Config
from hpc_train.config.scripts.script_code_notes import notes_on_script
from hpc_train.config.scripts.script_file import (
    ranks_of,
)
from hpc_train.config.scripts.script_trainers import trainers_for_gpus
from hpc_train.config.specs import classes_of, read_object, wanted_of
from hpc_train.config.validate import other_environment
from hpc_train.config.yaml_slips.python_texts import notes_on_python_texts

# Of callbacks: by its name, or a class of the user's own.
_MAY_BE_CHECKPOINT = re.compile(r"Checkpoint|(?:class_path|_target_)': '(?!pytorch_l|lightning\.)")


def notes_on_code(loaded: LoadedConfig, *, workdir: Path) -> list[str]:
    """A line each: a file in Python's own's place, a breakpoint, no loss, another batch size."""
    if loaded.config.script.path:
        notes = [*notes_on_script(loaded, workdir), *_on_heads(loaded, workdir)]
        return [*notes, *notes_on_unset(loaded, workdir)]
    notes = [*_notes(loaded, workdir), *notes_on_paths_not_copied(loaded, workdir)]
    return [*notes, *_on_heads(loaded, workdir), *notes_on_unset(loaded, workdir)]


def _on_heads(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """Of what the config's file, the script and env.setup say to sbatch alone."""
    own = str(loaded.files[-1])
    for name in dict.fromkeys((loaded.config.script.path or own, own)):
        yield from notes_on_sbatch_lines(workdir / name, name)
    yield from notes_on_setup_lines(loaded.config, loaded.origins)


def _notes(loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    config = loaded.config
    yield from validation_notes(loaded)
    yield from notes_on_paths(loaded)
    yield from notes_on_relative_paths(loaded, workdir)
    yield from notes_on_made_folders(loaded, workdir=workdir)
    yield from _on_hooks(loaded, [str(workdir), *sys.path])
    yield from monitor_notes(loaded, [str(workdir), *sys.path])
    yield from rank_zero_notes(loaded, [str(workdir), *sys.path])
    yield from unsynced_notes(loaded, [str(workdir), *sys.path])
    yield from notes_on_inner_imports(loaded, workdir)
    yield from notes_on_parsed(loaded, workdir)
    yield from unsplit_stream(loaded, [str(workdir), *sys.path])
    yield from _on_unrun(loaded, [str(workdir), *sys.path])
    yield from mode_notes(loaded)
    yield from notes_on_pruning(loaded, [str(workdir), *sys.path])
    yield from unknown_strategy(loaded, workdir)
    yield from notes_on_exports(loaded, workdir, sys.path)
    undefined = all_undefined(loaded, [str(workdir), *sys.path])  # what is sure is refused
    yield from (f"{said}: {it.fix}" for _, said, it in undefined)
    for file in hiding(workdir):
        yield f"{file} hides Python's own module {file.stem} from all that the ranks import"
    for key in ("model", "data"):
        class_path, arguments = read_object(getattr(config, key), key, loaded.origins)
        found = locate(class_path, [str(workdir), *sys.path])
        if found is not None:
            for name, said in _on_texts(class_path, arguments, found).items():
                full = f"{key}.init_args.{name}"
                yield f"{loaded.origins.prefix(full)}{full} {said}"
        if found is None or not isinstance(found.definition, ast.ClassDef):
            continue
        for line, name in terminal_stops(ast.Module([found.definition], []), found.definition):
            yield f"{class_path} has a {name} (line {line}): {TELLS}"
        if key == "model":
            yield from _of_a_model(class_path, found, config, str(workdir))
            yield from _of_a_schedule(class_path, found.definition, arguments, config)
            if said := logs_in_predict(class_path, [str(workdir), *sys.path]):
                yield f"{said}, which hpc-train predict refuses: {INSTEAD}"
        else:
            yield from loader_notes(class_path, config, [str(workdir), *sys.path])


def _on_texts(class_path: str, arguments: Mapping[str, Any], found: Located) -> dict[str, str]:
    """By argument what is to be said of a text where the class may well have another thing."""
    known = parameters_of(found.name, found.names, open_too=True) if found.names else None
    annotations = known.annotations if known else {}
    return {
        **texts_for_numbers(class_path, arguments, found),
        **notes_on_python_texts(class_path, arguments, annotations, found),
    }


def _of_its_modules(class_path: str, found: Located, workdir: str) -> Iterator[str]:
    classes = list(with_its_modules(class_path, found, [workdir]))
    yield from hidden_layer_notes(classes, [workdir])
    for name, it in classes:
        if isinstance(it.definition, ast.ClassDef):
            place = functools.partial(place_of, it, path=[workdir])
            yield from last_sample_notes(it.definition, name, place)


def _of_a_model(class_path: str, found: Located, config: Config, workdir: str) -> Iterator[str]:
    definition = found.definition
    assert isinstance(definition, ast.ClassDef)
    yield from skipped_batches(class_path, ranks_of(config), [workdir, *sys.path])
    if (silent := silent_forward(found, [workdir])) and not silent.is_sure:
        yield f"{class_path} {silent.said}: {silent.hint}"
    yield from _of_its_modules(class_path, found, workdir)
    yield from twice_normalized_of_class(found, [workdir, *sys.path])
    if line := _asks_for_checkpoints(definition, config):
        says = f"{class_path} asks trainer.checkpoint_callback (line {line}), which is None"
        checkpoint = "{class_path: pytorch_lightning.callbacks.ModelCheckpoint}"
        add = of_project(checkpoint, [workdir, *sys.path], class_path)
        yield f"{says} without a ModelCheckpoint: add {add} to trainer.callbacks"
    if line := unset_max_steps(definition, config.trainer):
        says = f"{class_path} asks self.trainer.max_steps ({place_of(found, line, [workdir])})"
        write = "write self.trainer.estimated_stepping_batches"
        yield f"{says}, which is -1 without trainer.max_steps: {write}"
    if line := step_without_loss(definition):
        says = f"{class_path} has a training_step (line {line}) that gives no loss"
        yield f"{says}: unless it optimizes by hand, nothing is learned; write `return loss`"
    off, step = manual_without_step(definition)
    if off:
        says = f"{class_path} sets automatic_optimization = False (line {off}), and its"
        says += f" training_step (line {step}) steps no optimizer, so that nothing is learned"
        by_hand = "opt = self.optimizers(); opt.zero_grad(); self.manual_backward(loss); opt.step()"
        yield f"{says}: leave that line out, or write {by_hand}"
    if never := unstepped_by_hand(definition):
        off, line, names = never
        says = f"{class_path} sets automatic_optimization = False (line {off}), takes its optimizer"
        says += f"{'s' * (len(names) > 1)} (line {line}) and steps none, so that nothing is learned"
        write = " and ".join(f"{it}.step()" for it in names)
        yield f"{says}: write {write}, behind its manual_backward"
    line, key = misnamed_schedule(definition)
    if line:
        says = f"{class_path} returns {key!r} beside 'optimizer' (line {line})"
        yield f"{says}, which Lightning leaves out, and trains without it: write 'lr_scheduler'"
    if line := plateau_without_monitor(definition):
        says = f"{class_path} makes a ReduceLROnPlateau (line {line}) and names no monitor"
        yield f"{says}, which Lightning refuses: return {PLATEAU_FORM}"


def _of_a_schedule(
    class_path: str, definition: ast.ClassDef, arguments: Mapping[str, Any], config: Config
) -> Iterator[str]:
    """Of one that is stepped once an epoch, and is meant to be at each step."""
    max_epochs = config.trainer.get("max_epochs")
    if told := epoch_stepped(definition) or epoch_warmup(definition, arguments, max_epochs):
        line, said, hint = told
        yield f"{class_path} {said} (line {line}): {hint}"


def _on_unrun(loaded: LoadedConfig, path: list[str]) -> Iterator[str]:
    """Of callbacks that wait for a validation, which does not run."""
    for it in unrun_validations(loaded, path):
        yield f"{loaded.origins.prefix(it.key)}{it.key} {it.said}; {it.hint}"


def _on_hooks(loaded: LoadedConfig, path: list[str]) -> Iterator[str]:
    """Of the model, the data and each callback: see `hook_notes`."""
    config = loaded.config
    logs = refused_logs(loaded, path)
    yield from (f"{it.said}; {it.hint}" for it in logs if not it.is_sure)
    for key, spec in classes_of(config):
        class_path, _ = read_object(spec, key, loaded.origins)
        if (found := locate(class_path, path)) is None:
            continue
        yield from hook_notes(wanted_of(key), class_path, found, path)
        yield from trainer_lists(wanted_of(key), class_path, found, path)
        if key in ("model", "data"):
            yield from unknown_stages(class_path, found, path)
        yield from near_hooks(wanted_of(key), class_path, found, path)
        if key in ("model", "data") and config.slurm.gpus_per_node > 1:
            yield from only_prepared(class_path, found, path)


def _asks_for_checkpoints(definition: ast.ClassDef, config: Config) -> int:
    """The line that takes something of the Trainer's ModelCheckpoint, where there is none; else 0.

    Lightning's own default one is switched off: hpc-train saves.
    """
    text = ast.unparse(definition)
    others = repr(config.trainer.get("callbacks"))
    if _MAY_BE_CHECKPOINT.search(others) or "configure_callbacks" in text:
        return 0
    if re.search(r"\bif\b[^\n]*checkpoint_callback|checkpoint_callback[^\n]*\bif\b", text):
        return 0
    held = (it.value for it in ast.walk(definition) if isinstance(it, ast.Attribute))
    lines = (
        it.lineno
        for it in held
        if isinstance(it, ast.Attribute) and it.attr == "checkpoint_callback"
    )
    return next(lines, 0)


def _script_takes_gpus(path: str) -> bool:
    """Whether every Trainer and Fabric of a script, at least one, is for GPUs alone."""
    tree = script_tree(Path(path))
    return tree is not None and trainers_for_gpus(tree) is not None


def torch_notes(config: Config) -> list[str]:
    """A line where GPUs are asked for, and the torch that the ranks import is built without CUDA.

    The name of its folder of metadata tells, and torch is not imported. A torch that `env`, a
    container or PYTHONPATH brings is not looked at.
    """
    env, accelerator = config.env, config.trainer.get("accelerator")
    is_told = not (other_environment(env) or config.container.image or config.hosts)
    if not is_told or "PYTHONPATH" in env.variables:
        return []
    if config.script.path:
        asks = config.script.accelerator != "cpu" and _script_takes_gpus(config.script.path)
    else:
        asks = accelerator in (None, "gpu", "cuda")
    if not asks:
        return []
    from importlib.metadata import PackageNotFoundError, version

    try:
        torch = version("torch")
    except PackageNotFoundError:
        return []
    gpus = config.slurm.gpus_per_node
    what = f"torch {torch} of this Python is built without CUDA, and the job asks for {gpus} GPU(s)"
    key = "script.accelerator" if config.script.path else "trainer.accelerator"
    fix = f"install one with it, or train on CPUs with {key}=cpu"
    return [f"{what} a node: {fix}"] if torch.endswith("+cpu") else []
