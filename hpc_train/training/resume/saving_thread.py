"""The thread that saves while the training goes on: one job after the other."""

from __future__ import annotations

import os
import queue
import threading
import traceback
from collections.abc import Callable


class SavingThread:
    """Made with the first job; it dies with the process."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether a job waits or is under way."""
        return self._jobs.unfinished_tasks > 0

    def run(self, job: Callable[[], None]) -> None:
        """Do `job` behind those that were given before."""
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="hpc-train save", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until there is nothing to do."""
        self._jobs.join()

    def _serve(self) -> None:
        # The training comes first; on Linux this is a thread's own nice value (sched(7)).
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        while True:
            job = self._jobs.get()
            try:
                job()
            except Exception:  # noqa: BLE001 (the jobs behind it are done all the same)
                traceback.print_exc()
            finally:
                self._jobs.task_done()
