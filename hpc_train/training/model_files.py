"""What the user's ModelCheckpoints save: in the run's own folder, over all attempts, in a list.

An attempt that is killed leaves files of steps that the next one takes again. Lightning would save
those models a second time under another name (`-v1`), beyond `save_top_k`. Here they are written
over when the step comes again, and what has not come again by the training's end is deleted.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from hpc_train.config.fit.made_folders import why_unmade
from hpc_train.errors import ConfigError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.saved_models import SavedModel, read_models, write_models
from hpc_train.training.private.lightning import pl

_PATHS = ("best_model_path", "kth_best_model_path", "last_model_path")


class ModelFiles:
    """The files of one Trainer; made before its fit.

    Those of a script's Trainer stay where it has them, as they are: they are listed.

    Only rank 0 looks at files and keeps the list; what it finds reaches the others by Lightning's
    own collectives.
    """

    def __init__(self, run: RunDir, trainer: pl.Trainer, *, stay: bool = False) -> None:
        self._run = run
        self._stay = stay
        self._trainer = trainer
        self._rows: dict[str, SavedModel] = {}
        self._to_come: set[str] = set()  # files of steps that will be taken again
        save = trainer.save_checkpoint

        def save_and_list(filepath: Any, *args: Any, **kwargs: Any) -> None:
            self._list(os.fspath(filepath))
            try:
                save(filepath, *args, **kwargs)
            except OSError as error:
                self._drop_torn(os.fspath(filepath), error)
                raise

        cast("Any", trainer).save_checkpoint = save_and_list
        self.place()

    def place(self) -> None:
        """Let those that have no `dirpath` save into the run's folder."""
        for callback in self._callbacks() if not self._stay else ():
            if callback.dirpath is None:
                callback.dirpath = str(self._run.models)

    def begin(self, step: int, checkpoint: dict[str, Any] | None = None) -> None:
        """The training begins after `step` steps, with the state in `checkpoint`.

        Args:
            checkpoint: Changed where the run has another path now: Lightning forgets the best
                models of another `dirpath`.
        """
        if self._trainer.is_global_zero:
            self._rows = {row.path: row for row in read_models(self._run)}
        if self._stay:
            return
        known: set[str] = set()
        for callback in self._callbacks():
            state = (checkpoint or {}).get("callbacks", {}).get(callback.state_key)
            if state is not None:
                _move(state, str(callback.dirpath))
                known |= _paths(state)
            if self._trainer.is_global_zero:
                _hide(callback, self._to_come)
            if not Path(str(callback.dirpath)).is_relative_to(self._run.path):
                self._say(f"ModelCheckpoint saves into its own dirpath {callback.dirpath}")
        if not self._trainer.is_global_zero:
            return
        own = {str(path) for path in self._run.models.glob("*.ckpt")}
        self._to_come |= own - self._rows.keys() - known
        self._to_come |= {
            path
            for path, row in self._rows.items()
            if path not in known and (row.step > step or row.monitor)
        }

    def end(self) -> None:
        """The training is over: what was not saved again is deleted from the run's folder."""
        known = {path for callback in self._callbacks() for path in _paths(callback.state_dict())}
        for path in map(Path, sorted(self._to_come - known)):
            if path.is_relative_to(self._run.models):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if self._trainer.is_global_zero and self._rows:
            self._write("")

    def _list(self, path: str) -> None:
        """Before a file is written, so that none is ever without its row."""
        if not self._trainer.is_global_zero:
            return
        self._to_come.discard(path)
        row = SavedModel(
            path=path if "://" in path else str(Path(path).absolute()),
            step=self._trainer.global_step,
            epoch=self._trainer.current_epoch,
        )
        for callback in self._callbacks():
            if path in callback.best_k_models:
                score = float(callback.best_k_models[path])
                row = replace(
                    row,
                    monitor=callback.monitor or "",
                    mode=callback.mode,
                    score=score if math.isfinite(score) else None,  # Lightning's form of NaN
                )
            elif path == callback.last_model_path:
                row = replace(row, last=True)
        self._rows[row.path] = row
        self._write(row.path)

    def _drop_torn(self, path: str, error: OSError) -> None:
        """Remove what a full disk has let be written of a model: the rank's own end needs room."""
        torn = SavedModel(path=path, step=0, epoch=0).why_torn
        if self._stay or not torn or not self._trainer.is_global_zero:
            return
        with contextlib.suppress(OSError):
            Path(path).unlink()
            self._say(f"WARNING: {path} could not be saved whole, and is removed: {error.strerror}")
            self._write("")

    def _write(self, to_be_saved: str) -> None:
        rows = [it for it in self._rows.values() if it.path == to_be_saved or it.is_there]
        self._rows = {row.path: row for row in rows}
        try:
            write_models(self._run, rows)
        except OSError as error:  # a full disk costs the list, not the training
            self._say(f"WARNING: {self._run.models_list} cannot be written: {error.strerror}")

    def _callbacks(self) -> list[Any]:
        return _checkpoints(self._trainer)

    def _say(self, text: str) -> None:
        if self._trainer.is_global_zero:
            print(text, flush=True)  # noqa: T201 - a rank's log


def check_folders(trainer: pl.Trainer, run: RunDir) -> None:
    """Make the own folders of ModelCheckpoints on rank 0: the first save may be hours away.

    Raises:
        ConfigError: one cannot be made, or written.
    """
    for callback in _checkpoints(trainer) if trainer.is_global_zero else ():
        folder = str(callback.dirpath or "")
        is_used = callback.save_top_k != 0 or callback.save_last
        if not folder or not is_used or "://" in folder or Path(folder).is_relative_to(run.path):
            continue
        if why := why_unmade(Path(folder)):
            raise ConfigError(
                f"ModelCheckpoint cannot write into its dirpath {folder}: {why}",
                "give it a folder that can be written, or leave dirpath out",
            )


def _checkpoints(trainer: pl.Trainer) -> list[Any]:
    kind = pl.callbacks.ModelCheckpoint
    return [item for item in trainer.checkpoint_callbacks if isinstance(item, kind)]


def _paths(state: dict[str, Any]) -> set[str]:
    return {*state["best_k_models"], *(state[name] for name in _PATHS)}


def _move(state: dict[str, Any], folder: str) -> None:
    """Let the state of a ModelCheckpoint, whose folder has another path now, name it so."""
    before = str(state.get("dirpath"))
    if before == folder:
        return

    def moved(path: str) -> str:
        inside = path and Path(path).is_relative_to(before)
        return str(Path(folder, Path(path).relative_to(before))) if inside else path

    state["dirpath"] = folder
    state["best_k_models"] = {moved(path): it for path, it in state["best_k_models"].items()}
    for name in _PATHS:
        state[name] = moved(state[name])


def _hide(callback: Any, to_come: set[str]) -> None:
    """Let files of steps to come count as not there, on rank 0: the others ask it."""
    asked = callback.file_exists

    def file_exists(filepath: Any, trainer: pl.Trainer) -> bool:
        if os.fspath(filepath) not in to_come:
            return bool(asked(filepath, trainer))
        # The same one collective as in Lightning's own method, which the other ranks call.
        return bool(trainer.strategy.reduce_boolean_decision(False, all=False))

    callback.file_exists = file_exists
