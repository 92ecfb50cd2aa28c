"""Modules and classes of Lightning 1 that are somewhere else, or called otherwise, today.

Sources: Lightning's pages "Upgrade from 1.x to 2.0", and the package itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpc_train.config.python_text.modules import find_module, lacks_name

_OLD, _NEW = "pytorch_lightning", "lightning.pytorch"
# The longest first; below Lightning's package where they begin with a dot.
_MODULES: Mapping[str, str] = {
    ".metrics.functional": "torchmetrics.functional",
    ".metrics": "torchmetrics",
    ".core.lightning": ".",
    ".callbacks.base": ".callbacks",
    ".callbacks.progress.base": ".callbacks",
    ".loggers.base": ".loggers",
    ".plugins.training_type": ".strategies",
    ".profiler": ".profilers",
    ".trainer.supporters": ".utilities.combined_loader",
    ".utilities.apply_func": ".utilities",
    ".utilities.cli": ".cli",
    ".utilities.distributed": ".utilities",
    ".utilities.seed": ".",
}
# Class -> its module and its name.
_CLASSES: Mapping[str, tuple[str, str]] = {
    ".callbacks.GPUStatsMonitor": (".callbacks", "DeviceStatsMonitor"),
    ".callbacks.ProgressBarBase": (".callbacks", "ProgressBar"),
    ".callbacks.base.ProgressBarBase": (".callbacks", "ProgressBar"),
    ".callbacks.progress.ProgressBarBase": (".callbacks", "ProgressBar"),
    ".loggers.LightningLoggerBase": (".loggers", "Logger"),
    ".loggers.base.LightningLoggerBase": (".loggers", "Logger"),
    ".loggers.TestTubeLogger": (".loggers", "TensorBoardLogger"),
    ".plugins.DDPPlugin": (".strategies", "DDPStrategy"),
    ".plugins.DDPSpawnPlugin": (".strategies", "DDPStrategy"),
    ".plugins.DDPShardedPlugin": (".strategies", "FSDPStrategy"),
    ".plugins.DeepSpeedPlugin": (".strategies", "DeepSpeedStrategy"),
    ".strategies.DDPSpawnStrategy": (".strategies", "DDPStrategy"),
    ".strategies.DDPShardedStrategy": (".strategies", "FSDPStrategy"),
}


TORCH_SIX = "torch._six"  # of projects up to 2022; gone in torch 2.0
_OF_SIX: Mapping[str, str] = {
    "inf": "from math import inf",
    "nan": "from math import nan",
    "string_classes": "string_classes = (str, bytes)",
    "int_classes": "int_classes = int",
    "container_abcs": "import collections.abc as container_abcs",
    "queue": "import queue",
    "with_metaclass": "class A(B, metaclass=M) in the place of with_metaclass(M, B)",
}


def instead_of_six(names: Sequence[str]) -> str:
    """What to write for `from torch._six import NAMES`."""
    known = [_OF_SIX[it] for it in names if it in _OF_SIX]
    written = "; and ".join(known)
    return f"write {written} in its place" if known else "leave it out: it was for Python 2"


def moved_import(module: str, names: Sequence[str], search_path: Sequence[str]) -> str:
    """What to write for an import of Lightning 1's; empty where it is none that is known.

    Args:
        module: Dotted.
        names: From it; none of `import module`.
        search_path: As `sys.path`.
    """
    package = _NEW if module == _NEW or module.startswith(f"{_NEW}.") else _OLD
    if module != package and not module.startswith(f"{package}."):
        return ""
    below = module.removeprefix(package)
    for name in names:
        if moved := _CLASSES.get(f"{below}.{name}"):
            return f"write from {_home(package, moved[0])} import {moved[1]}"
        if whole := _MODULES.get(f"{below}.{name}"):
            return f"write import {_home(package, whole)} as {name}"
    old = next((it for it in _MODULES if below == it or below.startswith(f"{it}.")), "")
    today = _home(package, _MODULES[old]) if old else ""
    if today and names and not any(_lacks(today, it, search_path) for it in names):
        return f"write from {today} import {', '.join(names)}"
    return f"what {module} had is in {today} today" if today else ""


def _home(package: str, module: str) -> str:
    return f"{package}{module}".rstrip(".") if module.startswith(".") else module


def _lacks(module: str, name: str, search_path: Sequence[str]) -> bool:
    found, rest = find_module(module, search_path)
    return found is None or bool(rest) or lacks_name(found, name, search_path)
