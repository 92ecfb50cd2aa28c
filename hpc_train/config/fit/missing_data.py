"""What to write where a config names no data: the model may have loaders, the project a class."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.python_text.class_kind import method_of, place_of
from hpc_train.config.python_text.meant_class import class_of_project
from hpc_train.config.specs import CLASS_PATH, TARGET, is_object


def missing_data(model: Any, example: str) -> tuple[str, str]:
    """What to add to the message, and what to write.

    The data of a run is an object of its own: it gets the micro batch, and workers, that follow
    from the shape, and is made anew where a run goes on in another one.

    Args:
        model: As it is written.
        example: What to write where nothing is known.
    """
    path = [str(Path.cwd()), *sys.path]
    written = model.get(CLASS_PATH, model.get(TARGET)) if _names_a_class(model) else ""
    found = method_of(str(written), "train_dataloader", path) if written else None
    if found:
        module, _, name = str(written).rpartition(".")
        place = place_of(found[0], found[1].lineno, path)
        said = f": {written} has its own train_dataloader ({place}), which a config does not call"
        move = "move it into a LightningDataModule and name that: data: {class_path:"
        script = f"submit a script that calls Trainer(...).fit({name}(...))"
        return said, f"{move} {module}.{name}Data}}; or {script}"
    own = class_of_project(path, "LightningDataModule", str(written))
    return "", f"data: {{class_path: {own}}}" if own else example


def _names_a_class(model: Any) -> bool:
    return isinstance(model, Mapping) and is_object(model)
