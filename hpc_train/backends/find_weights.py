"""Which weights are meant: a run's best model, its newest state, or a file. Nothing is loaded."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.config.load import LoadedConfig
from hpc_train.errors import CheckError, HpcTrainError, NoSuchRunError, UsageError
from hpc_train.runs.checkpoints import MANIFEST
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import find_run
from hpc_train.runs.saved_models import best_models, choose_best, read_models
from hpc_train.runs.sweep_dir import refuse_sweep
from hpc_train.training.resume.checkpoint import CheckedCheckpoint, list_checkpoints

_MODEL = ("model.ckpt", "model")  # of a run's own checkpoint: a file, or a folder of shards
_SUFFIXES = (".ckpt", ".pt", ".pth", ".bin", ".safetensors")
_SHARDS = ".metadata"  # torch.distributed.checkpoint's index of a folder


@dataclass(frozen=True)
class FoundWeights:
    """Where they are, and what they are for a person: `best: val_acc 0.98, step 225`."""

    path: Path
    said: str


def find_weights(reference: str, folders: Sequence[Path], workdir: Path) -> FoundWeights:
    """What `init_from` means: a checkpoint's path, or a run.

    Args:
        folders: Where runs are.
        workdir: What a relative path begins at.

    Raises:
        CheckError: there are no weights; NoSuchRunError: neither a path nor a run.
    """
    path = workdir / Path(reference).expanduser()
    if path.exists() and not (path / "plan.json").is_file():
        try:
            return FoundWeights(_weights_in(path), "as named")
        except CheckError as error:
            raise CheckError(f"init_from: {error.message}", error.hint) from error
    refuse_sweep(reference, folders)
    try:
        run = find_run(str(path) if path.exists() else reference, folders)
    except NoSuchRunError as error:
        what = f"init_from: {reference!r} is neither a checkpoint nor a run"
        hint = error.hint
        if "://" in reference:
            hint = "download it, and name the file"
        elif os.sep in reference or path.suffix in _SUFFIXES:
            what += f": there is no {path.absolute()}"
            hint = "correct the path, or name a run, by its name or id"
        raise NoSuchRunError(what, hint) from error
    try:
        return weights_of_run(run)
    except UsageError as error:  # several metrics have decided
        name = shlex.quote(sorted(best_models(read_models(run)))[0])
        prints_it = f"`hpc-train checkpoints {shlex.quote(run.run_id)} --monitor {name}` prints it"
        raise UsageError(
            f"init_from: {error.message}", f"name the file: init_from=PATH; {prints_it}"
        ) from error
    except HpcTrainError as error:
        hint = f"name a run that has one, or a file: init_from: PATH; {_kept_by(run)}"
        raise type(error)(f"init_from: {error.message}", hint) from error


def _kept_by(run: RunDir) -> str:
    return f"`hpc-train checkpoints {shlex.quote(run.run_id)}` shows what it has"


def settle_weights(loaded: LoadedConfig, folders: Sequence[Path], workdir: Path) -> LoadedConfig:
    """The same config with the path that its `init_from` means, and a note about it.

    Raises:
        HpcTrainError: see `find_weights`.
    """
    found = find_weights(str(loaded.config.init_from), folders, workdir)
    loaded.config.init_from = str(found.path)
    note = f"the model begins with the weights in {found.path} ({found.said})"
    return dataclasses.replace(loaded, notes=(*loaded.notes, note))


def weights_of_run(run: RunDir, choice: str = "") -> FoundWeights:
    """Those of a run.

    Args:
        choice: `best`, `last` or a path; by default the best model by the one metric that decides,
            and where none does the newest state.

    Raises:
        HpcTrainError: there are none; CheckError: the path is no checkpoint.
    """
    if choice not in ("", "best", "last"):
        path = Path(choice).expanduser().absolute()
        if not path.exists():
            raise CheckError(f"--ckpt {choice}: there is no {path}", "write best, last or a path")
        return FoundWeights(_weights_in(path), "as named")
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
            prints_it = f"hpc-train checkpoints {run.run_id} --monitor NAME prints it"
            raise UsageError(error.message, f"name its path with --ckpt; {prints_it}") from error
        return FoundWeights(Path(best.path), f"best: {best.metric_text}, step {best.step}")
    if state := _newest_state(run):
        return FoundWeights(_weights_in(state.path), f"last: step {state.step}")
    raise HpcTrainError(
        f"{run.name} ({run.run_id}) has saved no checkpoint",
        f"`hpc-train status {shlex.quote(run.run_id)}` says where it stands; a file: --ckpt PATH",
    )


def _newest_state(run: RunDir) -> CheckedCheckpoint | None:
    states = list_checkpoints(run.checkpoints, verify=False)
    return next((state for state in states if state.valid), None)


def choose_and_hold(run: RunDir, choice: str, folder: Path) -> tuple[FoundWeights, Path]:
    """Find the weights of a run that may train on and delete them, and link them at once.

    Args:
        folder: Where to make the folder of links, see `hold_weights`.

    Returns:
        What was found, and the folder; it may be empty, and is the caller's to move or remove.
    """
    found = weights_of_run(run, choice)
    held = Path(tempfile.mkdtemp(prefix=".weights-", dir=folder))
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


def _weights_in(path: Path) -> Path:
    if path.is_file() and not _may_be_torchs(path):
        raise CheckError(
            f"{path} is no checkpoint: torch.save wrote no such file, or not all of it",
            "name a .ckpt, or a run",
        )
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
