"""A training outlives an outage of the service that its metrics go to.

MLflow's client raises where its server does not answer, which ends the training, also at its last
step (mlflow's utils/rest_utils.py, http_request). W&B's keeps what it logs by itself, but its
`wandb.init` raises CommError where a run is to be gone on with (docs.wandb.ai, "Resume a run").
In the first attempt that is told at once: a wrong address is more likely than an outage.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any

WRITES = ("log_", "set_", "delete_tag")
NEXT_TRY_S = 60.0
TRY_AT_MOST = 0.1  # of the training's time
MOST_WAITING = 100_000
MLFLOW_RETRIES = "2"  # the client's own 7 take four minutes, in which all ranks wait


def be_brief(environ: MutableMapping[str, str]) -> None:
    """Have MLflow's client give up after seconds, where the user has not said otherwise."""
    environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", MLFLOW_RETRIES)


def is_mlflow_outage(error: BaseException) -> bool:
    """Whether the server was not reached, or could not answer, whatever it was asked."""
    status = getattr(error, "get_http_status_code", None)
    if callable(status):  # an MlflowException; without an answer it has 500
        code = int(status())
        return code >= 500 or code == 429
    name = f"{type(error).__module__}.{type(error).__name__}"
    return name.startswith("requests.exceptions.") and isinstance(error, OSError)


def is_wandb_outage(error: BaseException) -> bool:
    """Whether `wandb.init` gave up on the service, or on its answer."""
    return type(error).__module__.startswith("wandb") and type(error).__name__ == "CommError"


def why_of(error: BaseException) -> str:
    """The short reason at the end of a chain of exceptions, `Connection refused`."""
    seen: BaseException | None = error
    words = str(error)
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror
        words = str(seen) or words
        seen = seen.__cause__ or seen.__context__
    lines = words.strip().splitlines()
    return (lines[-1].removeprefix("while retrying: ") if lines else type(error).__name__)[:200]


class OutageTolerantClient:
    """MLflow's client, whose writes wait in memory, in their order, while the server is away.

    Args:
        client: An MlflowClient.
        where: The server, for the notes.
        note: Says a line in the log and in the run's history.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        client: Any,
        *,
        where: str,
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._where = where
        self._note = note
        self._clock = clock
        self._waiting: deque[tuple[str, tuple[Any, ...], dict[str, Any]]] = deque()
        self._lost = 0
        self._next_try: float | None = None  # None: it answers

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        if not callable(value) or not name.startswith(WRITES):
            return value

        def write(*args: Any, **kwargs: Any) -> Any:
            return self._write(name, args, kwargs)

        return write

    def _write(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._next_try is not None:
            if self._clock() >= self._next_try:
                self.send_waiting()
            if self._next_try is not None:
                return self._keep(name, args, kwargs)
        began = self._clock()
        try:
            return getattr(self._client, name)(*args, **kwargs)
        except Exception as error:
            if not is_mlflow_outage(error):
                raise
            self._note(
                f"MLflow's server {self._where} does not answer ({why_of(error)}): the training"
                " goes on, and what it logs waits in memory"
            )
            self._put_off(began)
            return self._keep(name, args, kwargs)

    def _keep(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._waiting.append((name, args, kwargs))
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._lost += 1

    def _put_off(self, began: float) -> None:
        now = self._clock()
        self._next_try = now + max(NEXT_TRY_S, (now - began) / TRY_AT_MOST)

    def send_waiting(self) -> None:
        """Try once more; what the server then refuses is told, since nobody waits for it."""
        began = self._clock()
        sent = 0
        while self._waiting:
            name, args, kwargs = self._waiting[0]
            try:
                getattr(self._client, name)(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on
                if is_mlflow_outage(error):
                    self._put_off(began)
                    return
                self._note(f"MLflow refused what had waited ({name}): {why_of(error)}")
            self._waiting.popleft()
            sent += 1
        self._next_try = None
        if sent:
            lost = f"; {self._lost} were too many to keep" if self._lost else ""
            self._note(f"MLflow's server {self._where} answers again: {sent} calls sent{lost}")

    def last_try(self) -> None:
        """Send what waits, whether or not it is time for it."""
        if self._next_try is not None:
            self.send_waiting()

    def is_away_at_the_end(self, error: BaseException) -> None:
        """Say what is lost: nobody is there to send it later."""
        count = len(self._waiting) + self._lost
        what = (
            f"{count} calls with metrics were not sent; metrics.csv has them where"
            " the csv logger is on"
            if count
            else "its run is not marked as ended"
        )
        self._note(
            f"MLflow's server {self._where} does not answer at the end ({why_of(error)}): {what}"
        )
