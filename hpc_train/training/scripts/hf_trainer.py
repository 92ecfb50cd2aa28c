"""Hugging Face's Trainer: it stops, saves and goes on through its own callbacks and arguments.

transformers is imported by the script alone; what is used of it is public: `add_callback`,
`TrainerCallback`, `TrainerControl.should_save` and `should_training_stop`,
`train(resume_from_checkpoint=...)`, and the folders `checkpoint-STEP` with `trainer_state.json`.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import Any

from hpc_train.runs.layout import RunDir
from hpc_train.runs.script_saves import OwnSaves
from hpc_train.training.scripts.plain_script import PlainScript

_STATE = "trainer_state.json"  # written last but for the model card (Trainer._save_checkpoint)


def follow_hugging_face(module: ModuleType, plain: PlainScript) -> None:
    """Let every Trainer of transformers stop and go on with the run."""
    kind: Any = module.Trainer
    callback = _callback(module.TrainerCallback, plain)
    make, train = kind.__init__, kind.train

    @functools.wraps(make)
    def init(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        if not any(isinstance(item, callback) for item in self.callback_handler.callbacks):
            self.add_callback(callback())

    @functools.wraps(train)
    def go_on(self: Any, resume_from_checkpoint: Any = None, *given: Any, **named: Any) -> Any:
        plain.by_callback = True
        if found := _newest(plain.run, Path(self.args.output_dir)):
            print(f"goes on from {found}", flush=True)  # noqa: T201 - a rank's log
            resume_from_checkpoint = str(found)
        done = train(self, resume_from_checkpoint, *given, **named)
        plain.leave_if_stopped()
        return done

    kind.__init__, kind.train = init, go_on


def _newest(run: RunDir, folder: Path) -> Path | None:
    """What this run has saved there, the most steps first."""
    saves = sorted(OwnSaves.of(run).saves, key=lambda save: save.step, reverse=True)
    paths = [Path(save.path) for save in saves]
    return next(
        (p for p in paths if p.parent == folder.absolute() and (p / _STATE).is_file()), None
    )


def _callback(base: type, plain: PlainScript) -> type:
    class HpcTrainCallback(base):  # type: ignore[misc]
        """Stops behind the step that all ranks agree on, with a checkpoint of it."""

        def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            plain.begin_at(state.global_step, steps=state.max_steps)

        def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> Any:
            if plain.is_stopping():
                control.should_save = True
                control.should_training_stop = True
            return control

        def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
            path = Path(args.output_dir).absolute() / f"checkpoint-{state.global_step}"
            plain.note_save(path=path, step=state.global_step)

    return HpcTrainCallback
