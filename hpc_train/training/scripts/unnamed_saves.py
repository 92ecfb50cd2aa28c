"""What a script saves by torch.save, and its `script.resume` does not name."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.scripts.resume_arguments import resume_word
from hpc_train.plan.plan import ScriptPlan
from hpc_train.runs.layout import AttemptDir, RunDir
from hpc_train.runs.ranks import leave_note
from hpc_train.runs.script_saves import OwnSaves, names_save, save_to_go_on_from

_SURE = 2  # saves behind a step: one alone may be of another kind


class UnnamedSaves:
    """Keeps them in the run, and says once that a `script.resume` names none of them."""

    def __init__(self, run: RunDir, attempt: AttemptDir, script: ScriptPlan, workdir: Path) -> None:
        self._run, self._attempt = run, attempt
        self._script, self._workdir = script, workdir
        self._count = 0

    def noted(self, saves: OwnSaves, saved: Mapping[str, int]) -> OwnSaves:
        """With those of `saved` (path -> step) that are there still, and are not named."""
        when, others = self._script.resume_when, dict(saved)
        for path in saved:  # a file that is renamed when it is whole is none
            if not Path(path).exists() or names_save(when, self._workdir, path):
                del others[path]
        if not others:
            return saves
        for path, step in others.items():
            saves = saves.with_unnamed(path, self._workdir, step)
        with contextlib.suppress(OSError):
            saves.write(self._run)
        before = self._count
        self._count += sum(step > 0 for step in others.values())
        if when and before < _SURE <= self._count:
            self._tell(saves.unnamed)
        return saves

    def how_to_name(self, path: str) -> str:
        """What to type so that the next attempt goes on from it."""
        if self._script.resume_args:
            return resume_word(path, None)
        return resume_word(path, script_tree(self._workdir / self._script.path))

    def _tell(self, path: str) -> None:
        when = self._script.resume_when
        if save_to_go_on_from(when, self._workdir, self._run) is not None:
            return
        leave_note(
            self._attempt,
            f"the script has saved {path}, and nothing that script.resume.when={when} names:"
            f" unless that comes later, write {self.how_to_name(path)}",
        )
