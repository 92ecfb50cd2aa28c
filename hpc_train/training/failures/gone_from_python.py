"""A name that a module of Python's own, or NumPy, has no more: what is written today."""

from __future__ import annotations

import re
import sys

from hpc_train.config.python_text.gone_names import gone_module, gone_name

_NO_NAME = re.compile(
    r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'"
    r"|module '(?P<whole>[\w.]+)' has no attribute '(?P<attribute>\w+)'"
)


def gone_from_python(error: BaseException) -> str:
    """What to write in its place; empty where the error is another one."""
    if isinstance(error, ModuleNotFoundError):
        gone, fix = gone_module((error.name or "").partition(".")[0])
        return f"{fix}: {error.name} is gone since {gone}" if gone else ""
    is_name = isinstance(error, AttributeError | ImportError)
    if not is_name or not (found := _NO_NAME.search(str(error))):
        return ""
    return _told(found["module"] or found["whole"], found["name"] or found["attribute"])


def _told(module: str, name: str) -> str:
    numpy = str(getattr(sys.modules.get("numpy"), "__version__", ""))
    gone, fix = gone_name(module, name, numpy=numpy)
    return f"{fix}: {module}.{name} is gone since {gone}" if gone else ""
