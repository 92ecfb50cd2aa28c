"""Which weights are meant: a run's best model, its newest state, or a file. Nothing is loaded."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.backends.not_saved_yet import NotSavedYetError, refuse_not_saved_yet
from hpc_train.backends.whole_models import how_to_save_its_state, whole_model_in
from hpc_train.config.fit.left_out_layers import KEY
from hpc_train.config.load import LoadedConfig
from hpc_train.config.specs import read_object
from hpc_train.config.words import NEWEST, did_you_mean
from hpc_train.errors import CheckError, HpcTrainError, NoSuchRunError, UsageError
from hpc_train.runs.checkpoints import MANIFEST, MODEL_FILE
from hpc_train.runs.events import read_events
from hpc_train.runs.history import has_ended
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import all_runs, find_run, matching_runs, unwritable
from hpc_train.runs.run_word import run_word
from hpc_train.runs.saved_models import (
    TornBestError,
    best_models,
    choose_best,
    passed_over,
    read_models,
    without_torn,
)
from hpc_train.runs.sweep_dir import refuse_sweep
from hpc_train.runs.this_folder import is_own
from hpc_train.runs.weights_arguments import other_arguments, run_of_weights
from hpc_train.training.resume.checkpoint import CheckedCheckpoint, list_checkpoints

_MODEL = (MODEL_FILE, "model")  # of a run's own checkpoint: a file, or a folder of shards
_SUFFIXES = (".ckpt", ".pt", ".pth", ".bin", ".safetensors")
_MOST_SHOWN = 3
_MOST_READ = 100  # runs, on the way to an error
_CHOICES = ("best", "last")  # of --ckpt, which names no run
_WHICH = "its best model where one metric decides, else its newest state"
_SHARDS = ".metadata"  # torch.distributed.checkpoint's index of a folder

_NO_NAMES = {  # what is in no name of a run, and what to do instead
    "://": "download it, and name the file",
    "{": "write init_from=RUN init_leave_out=[LAYER]",
}


@dataclass(frozen=True)
class FoundWeights:
    """Where they are, and what they are for a person: `best: val_acc 0.98, step 225`."""

    path: Path
    said: str
    run: RunDir | None = None  # of which they are, where a run was named


def find_weights(reference: str, folders: Sequence[Path], workdir: Path) -> FoundWeights:
    """What `init_from` means: a checkpoint's path, or a run.

    A name means the newest run of that name. Where it has ended without any weights, as a training
    that failed at its first step, the one before it is meant.

    Args:
        folders: Where runs are.
        workdir: What a relative path begins at.

    Raises:
        CheckError: there are no weights; NoSuchRunError: neither a path nor a run.
    """
    path = workdir / Path(reference).expanduser()
    is_of_runs = path.is_dir() and any(path.glob("*/plan.json"))  # the folder of a name
    if path.exists() and not (path / "plan.json").is_file() and not is_of_runs:
        try:
            return FoundWeights(_weights_in(path), "as named")
        except CheckError as error:
            raise CheckError(f"init_from: {error.message}", error.hint) from error
    refuse_sweep(reference, folders)
    meant = str(path) if path.exists() else reference
    try:
        run = find_run(meant, folders)
    except NoSuchRunError as error:
        raise _neither(error, reference, path, folders) from error
    run, passed = _with_weights(run, meant, folders)
    try:
        found = weights_of_run(run)
        return dataclasses.replace(found, run=run, said=f"{found.said}{passed}")
    except UsageError as error:  # several metrics have decided
        name = shlex.quote(sorted(best_models(read_models(run)))[0])
        prints_it = f"`hpc-train checkpoints {run_word(run.path)} --monitor {name}` prints it"
        raise UsageError(
            f"init_from: {error.message}", f"name the file: init_from=PATH; {prints_it}"
        ) from error
    except TornBestError as error:
        state = _newest_state(run)
        typed = f"init_from={shlex.quote(str(_weights_in(state.path)))}" if state else ""
        hint = _instead(run, typed, _kept_by(run))
        raise TornBestError(f"init_from: {error.message}", hint) from error
    except HpcTrainError as error:
        has = _run_with_weights(folders) if reference in NEWEST else _of_its_name(run, folders)
        other = f": init_from={has}" if has else ""
        hint = f"name a run that has one{other}, or a file: init_from: PATH; {_kept_by(run)}"
        hint = error.hint if isinstance(error, NotSavedYetError) else hint
        raise type(error)(f"init_from: {error.message}", hint) from error


def _neither(
    error: NoSuchRunError, reference: str, path: Path, folders: Sequence[Path]
) -> NoSuchRunError:
    """The refusal of what is no checkpoint and no run."""
    what = f"init_from: {reference!r} is neither a checkpoint nor a run"
    hint = error.hint
    if reference in _CHOICES:
        has = _run_with_weights(folders)
        hint = f"name a run: init_from={has or 'RUN'} takes {_WHICH}; or a file: init_from=PATH"
    elif mark := next((it for it in _NO_NAMES if it in reference), ""):
        hint = _NO_NAMES[mark]
    elif os.sep in reference or path.suffix in _SUFFIXES:
        what += f": there is no {path.absolute()}"
        hint = "correct the path, or name a run, by its name or id"
    return NoSuchRunError(what, hint)


def _with_weights(run: RunDir, reference: str, folders: Sequence[Path]) -> tuple[RunDir, str]:
    """The newest run of a name but for those that ended without weights, and what is said of it.

    One that waits or trains is not passed over: its weights may be meant, and come later.
    """
    if reference != run.name and Path(reference).resolve() != run.path.parent.resolve():
        return run, ""
    for newer, it in enumerate(matching_runs(reference, folders)[:_MOST_READ]):
        if _has_weights(it):
            without = (
                f"{newer} newer {'run' if newer == 1 else 'runs'} of that name ended without any"
            )
            return it, f", of {it.run_id}: {without}" if newer else ""
        if newest_damage(it) or not has_ended(read_events(it.events)):
            break
    return run, ""


def _has_weights(run: RunDir) -> bool:
    return bool(best_models(read_models(run))) or _newest_state(run) is not None


def _of_its_name(run: RunDir, folders: Sequence[Path]) -> str:
    """The id of the newest run of the same name that has weights; empty where none has."""
    others = matching_runs(run.name, folders)[:_MOST_READ] if run.name else []
    return next((it.run_id for it in others if it.name == run.name and _has_weights(it)), "")


def _run_with_weights(where: Sequence[Path]) -> str:
    """The newest run of this folder that has saved a model, quoted; empty where none has."""
    for run in [it for it in all_runs(where)[:_MOST_READ] if is_own(it, where)]:
        with contextlib.suppress(HpcTrainError):
            if _has_weights(run):
                is_named = find_run(run.name, where).path == run.path
                return shlex.quote(run.name if is_named else run.run_id)
    return ""


def _kept_by(run: RunDir) -> str:
    return f"`hpc-train checkpoints {run_word(run.path)}` shows what it has"


def settle_weights(loaded: LoadedConfig, folders: Sequence[Path], workdir: Path) -> LoadedConfig:
    """The same config with the path that its `init_from` means, and a note about it.

    Raises:
        HpcTrainError: see `find_weights`.
    """
    try:
        found = find_weights(str(loaded.config.init_from), folders, workdir)
    except HpcTrainError as error:
        place = loaded.origins.prefix("init_from")
        raise type(error)(f"{place}{error.message}", error.hint) from error
    loaded.config.init_from = str(found.path)
    left_out = ", ".join(loaded.config.init_leave_out)
    but = f", without {left_out}" if left_out else ""
    note = f"the model begins with the weights in {found.path} ({found.said}){but}"
    others = _notes_on_arguments(found, loaded, workdir)
    return dataclasses.replace(loaded, notes=(*loaded.notes, note, *others))


def _notes_on_arguments(found: FoundWeights, loaded: LoadedConfig, workdir: Path) -> Iterator[str]:
    """A line on arguments that the model of the weights was made with otherwise."""
    run = found.run or run_of_weights(found.path)
    class_path, now = read_object(loaded.config.model, "model") if run else ("", {})
    others = other_arguments(run, class_path, now, [str(workdir), *sys.path]) if run else []
    if run and others:
        had = f"{run.name} ({run.run_id}) had {'; '.join(it.said for it in others)}"
        left_out = ", ".join(loaded.config.init_leave_out)
        but = f", but for those of {left_out}" if left_out else f" unless {KEY}=[LAYER] names it"
        yield f"{had}: weights of another shape are refused as the training begins{but}"


def weights_of_run(run: RunDir, choice: str = "", then: str = "") -> FoundWeights:
    """Those of a run.

    Args:
        choice: `best`, `last` or a path; by default the best model by the one metric that decides,
            and where none does the newest state.
        then: The command that takes them, for a run that has saved nothing yet.

    Raises:
        HpcTrainError: there are none; CheckError: the path is no checkpoint.
    """
    if choice not in ("", "best", "last"):
        path = Path(choice).expanduser().absolute()
        if not path.exists():
            what = f"--ckpt {choice}: there is no {path}"
            what += "" if Path(choice).is_absolute() else "; a relative path starts in this folder"
            raise CheckError(what, _what_there_is(run, Path(choice)))
        return FoundWeights(_weights_in(path), "as named")
    if not _has_weights(run) and not newest_damage(run):
        refuse_not_saved_yet(run, then)
    if choice == "best" and not best_models(read_models(run)) and _newest_state(run):
        raise HpcTrainError(
            f"{run.name} ({run.run_id}) has saved no best model",
            "write --ckpt last, or leave --ckpt out; a training keeps its best with a"
            " ModelCheckpoint with init_args.monitor in trainer.callbacks",
        )
    if choice == "best" or (not choice and best_models(read_models(run))):
        try:
            best = choose_best(run)
        except UsageError as error:
            prints_it = f"hpc-train checkpoints {run_word(run.path)} --monitor NAME prints it"
            raise UsageError(error.message, f"name its path with --ckpt; {prints_it}") from error
        except TornBestError as error:
            raise TornBestError(error.message, _instead(run, "--ckpt last", error.hint)) from error
        said = "; ".join([f"best: {best.metric_text}, step {best.step}", *passed_over(run, best)])
        return FoundWeights(Path(best.path), said)
    if state := _newest_state(run):
        return FoundWeights(_weights_in(state.path), f"last: step {state.step}")
    if damaged := newest_damage(run):
        again = f"`hpc-train resume {run_word(run.path)}` begins again at step 0"
        raise HpcTrainError(
            f"{run.name} ({run.run_id}) has no whole checkpoint: {damaged}",
            f"{again}; a file: --ckpt PATH",
        )
    raise HpcTrainError(
        f"{run.name} ({run.run_id}) has saved no checkpoint",
        f"`hpc-train status {run_word(run.path)}` says where it stands; a file: --ckpt PATH",
    )


def _instead(run: RunDir, typed: str, otherwise: str) -> str:
    """What to write where the best model is torn: its newest state, if it has one."""
    state = _newest_state(run)
    return f"write {typed}, its state of step {state.step}" if state else otherwise


def _what_there_is(run: RunDir, meant: Path) -> str:
    """What to write for a file that is not there: the one of its name, or what the run has."""
    models, _ = without_torn(read_models(run))
    states = [it for it in list_checkpoints(run.checkpoints, verify=False) if it.valid]
    there = [*(Path(it.path) for it in models), *(it.path for it in states)]
    if named := [it for it in there if meant.name in (it.name, it.stem)]:
        return f"write --ckpt {shlex.quote(_from_here(named[0]))}"
    words = [*["best"] * any(best_models(models)), *["last"] * bool(states)]
    shown = [shlex.quote(_from_here(it)) for it in there[:_MOST_SHOWN]]
    lists = f"`hpc-train checkpoints {run_word(run.path)}` lists what it has"
    if said := did_you_mean(str(meant), ("best", "last")):
        return said
    if not there:
        return f"name a file's path: {run.name} ({run.run_id}) has saved no checkpoint itself"
    choices = " or ".join(f"--ckpt {word}" for word in [*words, *shown])
    return f"write {choices}; {lists}" if len(there) > _MOST_SHOWN else f"write {choices}"


def _from_here(path: Path) -> str:
    """As it is typed in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _newest_state(run: RunDir) -> CheckedCheckpoint | None:
    states = list_checkpoints(run.checkpoints, verify=False)
    return next((state for state in states if state.valid), None)


def newest_damage(run: RunDir) -> str:
    """What is wrong with the newest checkpoint of a run that has no whole one; empty without any.

    One whose manifest is missing was never finished.
    """
    states = list_checkpoints(run.checkpoints, verify=False)
    newest = next((it for it in states if (it.path / MANIFEST).is_file()), None)
    if newest is None or any(it.valid for it in states):
        return ""
    return f"that of step {newest.step} is damaged: {newest.reason}"


def choose_and_hold(
    run: RunDir, choice: str, folder: Path, then: str = ""
) -> tuple[FoundWeights, Path]:
    """Find the weights of a run that may train on and delete them, and link them at once.

    Args:
        folder: Where to make the folder of links, see `hold_weights`.
        then: See `weights_of_run`.

    Returns:
        What was found, and the folder; it may be empty, and is the caller's to move or remove.
    """
    found = weights_of_run(run, choice, then)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = Path(tempfile.mkdtemp(prefix=".weights-", dir=folder))
    except OSError as error:
        raise unwritable(error, folder) from error
    for _ in range(10):
        hold_weights(found.path, held)
        if (held / found.path.name).exists() or found.path.exists():
            break
        found = weights_of_run(run, choice)
    return found, held


def hold_weights(path: Path, folder: Path) -> None:
    """Link the weights into `folder`, so that they outlive their deletion by the run they are of.

    Where no hard link can be (another file system), nothing is done: the path itself is used.
    """
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    for file in files:
        target = folder / path.name / file.relative_to(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(file, target)
        except OSError:
            shutil.rmtree(folder / path.name, ignore_errors=True)
            return


def _may_be_torchs(path: Path) -> bool:
    """Whether a file is one of the zip archives or pickles that torch.save writes, by its frame."""
    with path.open("rb") as stream:
        if stream.read(2) == b"\x80\x02":
            return True
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist())
    except zipfile.BadZipFile:  # also one that was cut off: its list of names stands at the end
        return False


def check_file(path: Path) -> None:
    """Refuse a file that surely has no weights by its frame; it is not loaded.

    Raises:
        CheckError: it is no checkpoint, or a whole model.
    """
    if not _may_be_torchs(path):
        raise CheckError(
            f"{path} is no checkpoint: torch.save wrote no such file, or not all of it",
            "name a .ckpt, or a run",
        )
    if made := whole_model_in(path):
        is_one = f"{path} is a whole model, {made}, as torch.save(model, PATH) writes it"
        raise CheckError(f"{is_one}, and no state_dict", how_to_save_its_state(path, made))


def _weights_in(path: Path) -> Path:
    if path.is_file():
        check_file(path)
    if path.is_file() or (path / _SHARDS).exists():
        return path
    if (path / MANIFEST).exists():
        for name in _MODEL:
            if (path / name).exists():
                return path / name
    raise CheckError(
        f"{path} is a folder, and no checkpoint",
        "name a .ckpt of Lightning's, a folder step-... of a run's checkpoints, or a run",
    )
