"""Callbacks of Lightning's with which a fit could not go on exactly, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.config.python_text.class_kind import Located, locate

_MOST_STEPS = 12  # as classes may derive from one another in a text that is wrong

# By class: what it does in each attempt, and what a config has in its place.
REFUSED: Mapping[str, tuple[str, str]] = {
    "LearningRateFinder": (
        "takes trial steps within the fit, anew in each attempt",
        "leave it out, and compare rates: --sweep model.init_args.lr=0.1,0.01,0.001",
    ),
    "BatchSizeFinder": (
        "takes trial steps within the fit, anew in each attempt",
        "leave it out, and write micro_batch_size, the samples that a rank takes at once",
    ),
    "GradientAccumulationScheduler": (
        "changes how many samples a step has, which is global_batch_size in all epochs",
        "leave it out, and write global_batch_size and micro_batch_size: accumulation follows",
    ),
}


def refused_callback(class_path: str, search_path: Sequence[str]) -> tuple[str, str]:
    """What to say of a class that is one of those, or derives from one, and the fix; or two ''."""
    for made in with_bases(locate(class_path, search_path), search_path):
        if made.name in REFUSED and is_lightnings(made.module):
            why, fix = REFUSED[made.name]
            own = "" if class_path.endswith(f".{made.name}") else f", a {made.name},"
            return f": {class_path}{own} {why}", fix
    return "", ""


def is_lightnings(module: str) -> bool:
    """Whether a module is of either of its packages."""
    return module.partition(".")[0] in ("pytorch_lightning", "lightning")


def with_bases(
    found: Located | None, search_path: Sequence[str], steps: int = _MOST_STEPS
) -> Iterator[Located]:
    """A class and all that it derives from, as far as the text tells."""
    if found is None or not steps:
        return
    yield found
    definition = found.definition
    for base in definition.bases if isinstance(definition, ast.ClassDef) else ():
        below = locate(f"{found.module}.{ast.unparse(base)}", search_path)
        yield from with_bases(below, search_path, steps - 1)
