"""`self.log` in a method of a prediction, which Lightning refuses with the advice of another."""

from __future__ import annotations

import traceback

from hpc_train.config.fit.logs_in_predict import HOOKS, INSTEAD

_REFUSED = "it doesn't support logging"


def logged_in_predict(error: BaseException) -> str:
    """What to write; empty where the error is of something else.

    Lightning names a prediction also where something logs before a training begins.
    """
    if _REFUSED not in str(error):
        return ""
    called = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
    hook = next((it for it in called if it in HOOKS), "")
    return f"{hook} cannot log: {INSTEAD}" if hook else ""
