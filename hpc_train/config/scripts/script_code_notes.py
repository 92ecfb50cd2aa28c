"""What a submission notes of a script: its arguments, its ranks, and what it will not learn."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.fit.batch_axis import last_sample_notes
from hpc_train.config.fit.pruned_weights import pruned_in_script
from hpc_train.config.fit.twice_normalized import (
    twice_normalized_of_script,
)
from hpc_train.config.load import LoadedConfig
from hpc_train.config.paths_not_copied import notes_on_paths_not_copied
from hpc_train.config.python_text.gone_uses import gone_notes
from hpc_train.config.python_text.modules import read_names
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.python_text.terminal_sizes import TELLS as NO_TERMINAL
from hpc_train.config.python_text.terminal_sizes import terminal_sizes
from hpc_train.config.python_text.terminal_stops import TELLS, terminal_stops
from hpc_train.config.schema import Config
from hpc_train.config.scripts.absent_checkpoints import notes_on_checkpoints
from hpc_train.config.scripts.absent_reads import notes_on_absent_reads
from hpc_train.config.scripts.fixed_ranks import fixed_ranks
from hpc_train.config.scripts.hidden_gpus import hidden_gpus
from hpc_train.config.scripts.hydra_multirun import notes_on_multirun
from hpc_train.config.scripts.inner_launchers import inner_launcher_notes
from hpc_train.config.scripts.kept_gradients import kept_gradients
from hpc_train.config.scripts.literal_variables import notes_on_variables
from hpc_train.config.scripts.rank_zero_scripts import rank_zero_of_script
from hpc_train.config.scripts.ranks_apart import Apart
from hpc_train.config.scripts.result_exits import result_exits
from hpc_train.config.scripts.same_order import notes_on_groups
from hpc_train.config.scripts.script_file import (
    data_of_ranks,
    module_apart,
    ranks_apart,
    ranks_of,
    unshared_session,
)
from hpc_train.config.scripts.script_trainers import old_in_each
from hpc_train.config.scripts.session_steps import steps_too_early
from hpc_train.config.scripts.single_process import alone_elsewhere
from hpc_train.config.scripts.spent_trainers import spent_trainers
from hpc_train.config.scripts.swallowed_errors import swallowed_errors
from hpc_train.config.scripts.typed_arguments import notes_on_arguments
from hpc_train.config.scripts.unkept_state import unkept_state
from hpc_train.config.scripts.unstepped_optimizers import unstepped_optimizers
from hpc_train.config.validate import other_environment, search_path_of

_MOST_TRAINERS = 4


def notes_on_script(loaded: LoadedConfig, workdir: Path) -> list[str]:
    """A line each, of the script and of what it imports.

    Args:
        workdir: Where the job begins.
    """
    notes = [*notes_on_variables(loaded), *notes_on_checkpoints(loaded.config, workdir)]
    notes += inner_launcher_notes(loaded.config, workdir)
    notes += notes_on_arguments(loaded.config, workdir)
    notes += notes_on_multirun(loaded.config, workdir)
    notes += notes_on_absent_reads(loaded.config, workdir)
    notes += notes_on_paths_not_copied(loaded, workdir)
    notes += _on_losses(loaded.config, workdir)
    notes += [*_on_old(loaded.config, workdir), *_on_gone(loaded.config, workdir)]
    return [*notes, *_on_ranks(loaded.config, workdir)]


def _on_losses(config: Config, workdir: Path) -> Iterator[str]:
    """Of a script that stops at a terminal, gives a loss probabilities, or learns from none."""
    path = config.script.path or ""
    file = workdir / path
    if (tree := script_tree(file)) is None:
        return
    for line, name in terminal_stops(tree):
        yield f"{path}:{line} has a {name}: {TELLS}"
    yield from _on_sizes(tree, file, path)
    yield from _on_swallowed(tree, file, path)
    for it in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        yield from last_sample_notes(it, it.name, lambda line: f"{path}:{line}")
    names, folders = read_names(file), [str(file.resolve().parent), *sys.path]
    yield from twice_normalized_of_script(tree, names, path, folders)
    for line, said, hint in (
        *unstepped_optimizers(tree, names),
        *kept_gradients(tree, names),
        *spent_trainers(tree),
        *unkept_state(tree, names),
        *steps_too_early(tree, names),
        *pruned_in_script(tree, names),
        *result_exits(tree, file.resolve(), folders),
    ):
        yield f"{path}:{line} {said}; {hint}"


def _on_old(config: Config, workdir: Path) -> Iterator[str]:
    """Of Trainers that are made under a condition, each with what Lightning 2 has dropped."""
    is_elsewhere = other_environment(config.env) or bool(config.container.image)
    tree = script_tree(workdir / (config.script.path or ""))
    if tree is None or is_elsewhere or config.script.launcher == "none":
        return
    for line, word, fix in old_in_each(tree)[:_MOST_TRAINERS]:
        yield f"{config.script.path}:{line} has {word}, which Lightning 2 refuses: {fix}"


def _on_gone(config: Config, workdir: Path) -> Iterator[str]:
    """Of names that Python has no more, in functions of the script and of what it imports."""
    file = (workdir / (config.script.path or "")).resolve()
    if other_environment(config.env) or config.container.image or not script_tree(file):
        return
    yield from gone_notes(file, [str(file.parent), *sys.path], workdir)


def _on_groups(tree: ast.Module, config: Config, workdir: Path) -> Iterator[str]:
    """Of a sampler of several ranks that is told no epoch, and a wrap without a process group."""
    file = (workdir / (config.script.path or "")).resolve()
    for line, said, hint in notes_on_groups(tree, file, [str(file.parent), *sys.path]):
        yield f"{config.script.path}:{line} {said}; {hint}"


def _on_rank_zero(tree: ast.Module, config: Config, workdir: Path) -> Iterator[str]:
    """Of calls that all ranks have to make, and that rank 0 alone makes."""
    file = (workdir / (config.script.path or "")).resolve()
    if ranks_of(config) < 2:
        return
    for name, line, said, hint in rank_zero_of_script(tree, file, [str(file.parent), *sys.path]):
        yield f"{Path(config.script.path or '').parent / name}:{line} {said}; {hint}"


def _on_sizes(tree: ast.Module, file: Path, path: str) -> Iterator[str]:
    """Of lines of the script, and of what it imports, that end without a terminal."""
    folder = file.resolve().parent
    for of, line, asked, write in terminal_sizes(tree, file, [str(folder)]):
        shown = path if of == file else Path(path).parent / of.relative_to(folder)
        yield f"{shown}:{line} asks a terminal for its size ({asked}), {NO_TERMINAL}: {write}"


def _on_swallowed(tree: ast.Module, file: Path, path: str) -> Iterator[str]:
    """Of loops whose errors are caught, and the script ends as if there were none."""
    whole = file.resolve()
    for of, line, said, hint in swallowed_errors(tree, whole, [str(whole.parent), *sys.path]):
        shown = path if of == whole else Path(path).parent / of.relative_to(whole.parent)
        yield f"{shown}:{line} {said}; {hint}"


def _on_ranks(config: Config, workdir: Path) -> Iterator[str]:
    """Of a script of several ranks that may train apart, or each on all; the sure is refused."""
    tree = script_tree(workdir / (config.script.path or ""))
    if tree is not None and config.script.launcher != "none":
        for line, said, hint in fixed_ranks(tree, ranks=ranks_of(config)):
            yield f"{config.script.path}:{line} {said}; {hint}"
        on_node = config.slurm.gpus_per_node if config.script.accelerator != "cpu" else 0
        if hidden := hidden_gpus(tree, ranks=on_node):
            line, said, hint = hidden
            yield f"{config.script.path}:{line} {said}; {hint}"
        yield from _on_groups(tree, config, workdir)
        yield from _on_rank_zero(tree, config, workdir)
    apart = ranks_apart(tree, config, workdir, sys.path) if tree is not None else None
    if apart is None and tree is not None and not config.script.may_take_no_steps:
        apart = _alone_elsewhere(tree, config, workdir)
    if apart is not None and not apart.is_sure:
        yield f"{config.script.path}:{apart.line} {apart.said}; {apart.hint}"
    if tree is not None and (lacking := unshared_session(tree, config, workdir, sys.path)):
        line, said, hint = lacking
        yield f"{config.script.path}:{line} {said}; {hint}"
        return
    for look in (module_apart, data_of_ranks):
        if tree is None or apart is not None:
            return
        if (told := look(tree, config, workdir, sys.path)) is not None:
            line, said, hint = told
            yield f"{config.script.path}:{line} {said}; {hint}"


def _alone_elsewhere(tree: ast.Module, config: Config, workdir: Path) -> Apart | None:
    file = (workdir / (config.script.path or "")).resolve()
    folders = [str(file.parent), *search_path_of(config.env, workdir, [])]
    return alone_elsewhere(tree, file, folders, [*folders, *sys.path], ranks=ranks_of(config))
