"""A prediction's own methods that log, which Lightning refuses, told by the text.

Source: `LightningModule.log` of pytorch_lightning/core/module.py; trainer/connectors/
logger_connector/fx_validator.py has None for each hook of a prediction.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hpc_train.config.python_text.class_kind import method_of, place_of

HOOKS = (
    "predict_step",
    *(f"on_predict_{part}{end}" for part in ("", "epoch_", "batch_") for end in ("start", "end")),
)
INSTEAD = (
    "leave self.log out there and return the value, which comes into predictions.pt;"
    " or log it in test_step, for hpc-train test RUN"
)
_LOGS = ("self.log", "self.log_dict")


def logs_in_predict(class_path: str, path: Sequence[str]) -> str:
    """Which method of a prediction surely logs, and where; empty where none does.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    if any(method_of(class_path, name.removeprefix("self."), path) for name in _LOGS):
        return ""  # its own
    for hook in HOOKS:
        found = method_of(class_path, hook, path)
        for statement in found[1].body if found else ():
            if isinstance(statement, (ast.Return, ast.Raise)):
                break
            call = statement.value if isinstance(statement, ast.Expr) else None
            if found and isinstance(call, ast.Call) and ast.unparse(call.func) in _LOGS:
                return f"{class_path}.{hook} logs ({place_of(found[0], call.lineno, path)})"
    return ""
