"""Hooks of a model or a callback that no call of Lightning's fits, in a fit that surely calls them.

What may not be called, as the hooks of a validation, is noted and not refused (`hook_notes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_train.config.fit.hook_notes import cannot_be_called, hooks_of
from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.load import LoadedConfig
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.class_kind import derives_from, locate, method_of, place_of
from hpc_train.config.specs import CLASS_PATH, TARGET, classes_of, read_object, wanted_of

# loops/fit_loop.py, loops/training_epoch_loop.py, trainer/call.py
_ALWAYS = (
    *("setup", "on_fit_start", "on_train_start", "on_train_epoch_start", "on_train_batch_start"),
    *("on_train_batch_end", "on_train_epoch_end", "on_train_end", "on_fit_end", "teardown"),
)
# With one of these at 0 nothing is trained.
LENGTHS = ("max_epochs", "max_steps", "limit_train_batches")


def wrong_hooks(loaded: LoadedConfig, path: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The key of the class, what is wrong with one of its hooks, and what to write, for each."""
    trainer = loaded.config.trainer
    if any(trainer.get(it) == 0 for it in LENGTHS):
        return  # nothing is trained, and few of them are called
    for key, spec in classes_of(loaded.config):
        if key != "data":
            for said, hint in _of_class(key, spec, loaded.origins, path):
                yield f"{key}.{TARGET if TARGET in spec else CLASS_PATH}", said, hint


def _of_class(
    key: str, spec: Mapping[str, Any], origins: Origins, path: Sequence[str]
) -> Iterator[tuple[str, str]]:
    class_path, _ = read_object(spec, key, origins)
    kind, found = wanted_of(key), locate(class_path, path)
    if found is None or derives_from(found, kind, path) is not True:
        return
    for name, taken in hooks_of(kind, tuple(path)).items():
        sure = method_of(class_path, name, path) if name in _ALWAYS else None
        if sure is None or is_lightnings(sure[0].module):
            continue
        place, method = sure
        if cannot_be_called(method, taken):
            given = [it.arg for it in taken.args[1:]]
            own = [it.arg for it in (*method.args.posonlyargs, *method.args.args)][1:]
            own += [f"{it.arg} by keyword" for it in method.args.kwonlyargs]
            takes = ", ".join(own) or "nothing"
            where = f"{class_path}.{name} ({place_of(place, method.lineno, path)})"
            yield (
                f"{where} takes {takes}, and Lightning gives {', '.join(given) or 'nothing'}",
                f"write def {name}({', '.join(['self', *given])})",
            )
