"""Steps of a model that no call of Lightning's fits, by the text."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.config.python_text.class_kind import method_of, place_of

# What Lightning gives by position (loops/training_epoch_loop.py, evaluation_loop.py), at most.
_GIVEN = ("batch", "batch_idx")
_OF_SEVERAL = "dataloader_idx"  # beside them in all but a training, of several loaders


def wrong_step(class_path: str, name: str, path: Sequence[str]) -> tuple[str, str]:
    """What is wrong with what a step surely takes, and what to write; empty where nothing is."""
    found = method_of(class_path, name, path)
    if found is None:
        return "", ""
    method = found[1]
    where = f"{class_path}.{name} ({place_of(found[0], method.lineno, path)})"
    hint = f"write def {name}(self, {', '.join(_GIVEN)})"
    positional = [it.arg for it in (*method.args.posonlyargs, *method.args.args)]
    needed = positional[1 : len(positional) - len(method.args.defaults)]
    given = _GIVEN if name == "training_step" else (*_GIVEN, _OF_SEVERAL)
    by_keyword = zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)
    if len(positional) < 2 and not method.args.vararg:
        return f"{where} takes no batch", hint
    if len(needed) > len(given):
        return f"{where} needs {', '.join(needed)}, and Lightning gives {', '.join(given)}", hint
    if keywords := [it.arg for it, default in by_keyword if default is None]:
        said = f"{where} needs {', '.join(keywords)} by keyword, and Lightning gives none"
        return said, hint
    return "", ""
