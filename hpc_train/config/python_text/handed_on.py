"""What classes of Lightning's hand their `**kwargs` on to, and what others call their arguments.

Any other name is met a minute later, by a class that the config does not name: "SummaryWriter()
got multiple values for keyword argument 'log_dir'".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpc_train.config.python_text.class_kind import Located
from hpc_train.config.words import did_you_mean

_LOGGERS = re.compile(r"(?:pytorch_lightning|lightning\.pytorch)\.loggers(?:\.\w+)*")
# To torch's SummaryWriter, or that of tensorboardX; log_dir it gives itself.
_HANDED_ON = {
    "TensorBoardLogger": (
        *("comment", "purge_step", "max_queue", "flush_secs", "filename_suffix"),
        *("write_to_disk", "comet_config"),
    )
}
# As torch's SummaryWriter, TensorBoard, wandb and transformers have it.
_FOLDERS_OF_LOGS = ("log_dir", "logdir", "logging_dir", "dir", "path", "folder", "output_dir")


def handed_on(found: Located) -> tuple[str, ...]:
    """Names that are taken besides those of the class; empty where nobody knows them."""
    is_logger = _LOGGERS.fullmatch(found.module) is not None
    return _HANDED_ON.get(found.name, ()) if is_logger else ()


def instead_of_argument(name: str, taken: Sequence[str]) -> str:
    """What to write for an argument that a class does not take.

    Args:
        taken: Those that it takes.
    """
    if name in _FOLDERS_OF_LOGS and "save_dir" in taken:
        return "did you mean 'save_dir'?"
    if meant := did_you_mean(name, taken):
        return meant
    return f"it takes {', '.join(taken)}" if taken else "leave it out: it takes none"
