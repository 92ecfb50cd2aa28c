"""What a script wants to do at a signal: kept, and done when all ranks are at the same step.

The signals themselves only set a flag, see `resume.stop`; a handler of the script's would act on
each rank at another step.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

from hpc_train.training.resume.stop import STOP_SIGNALS

OnStop = Literal["SIGTERM", "SIGUSR1", "KeyboardInterrupt", "exit"]


class ScriptSignals:
    """The script's own handlers of the signals that mean a stop."""

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._pid = os.getpid()
        self._signal: Callable[..., Any] = signal.signal
        self._getsignal: Callable[..., Any] = signal.getsignal

    def follow(self, handlers: Mapping[int, Any]) -> None:
        """From now on `signal.signal` keeps what this process sets for these signals.

        Args:
            handlers: What the script has set before.
        """
        self._handlers.update(handlers)
        module: Any = signal
        module.signal, module.getsignal = self._set, self._get

    def leave(self) -> None:
        """What is set from now on is set as ever."""
        module: Any = signal
        module.signal, module.getsignal = self._signal, self._getsignal

    def deliver(self, on_stop: OnStop) -> bool:
        """Do what the script wants to do at a stop, in the main thread.

        Returns:
            Whether it goes on after this; False where it has said nothing of such a stop.

        Raises:
            BaseException: whatever its handler raises; KeyboardInterrupt and SystemExit as asked.
        """
        if on_stop == "exit":
            raise SystemExit(0)
        number = signal.SIGINT if on_stop == "KeyboardInterrupt" else signal.Signals[on_stop]
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        handler = self._handlers.get(number, default)
        if callable(handler):
            handler(int(number), inspect.currentframe())
            return True
        return bool(handler == signal.SIG_IGN)

    def _is_kept(self, number: int) -> bool:
        # A forked child, such as a data worker, decides for itself.
        return (number in STOP_SIGNALS or number == signal.SIGINT) and os.getpid() == self._pid

    def _set(self, number: int, handler: Any) -> Any:
        if not self._is_kept(number) or threading.current_thread() is not threading.main_thread():
            return self._signal(number, handler)
        before = self._get(number)
        self._handlers[number] = handler
        return before

    def _get(self, number: int) -> Any:
        if not self._is_kept(number):
            return self._getsignal(number)
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        return self._handlers.get(number, default)
