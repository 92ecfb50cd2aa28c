"""The one place that runs a command for the cluster and waits for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

__all__ = ["ClusterError", "run", "wait_until"]


class ClusterError(RuntimeError):
    """The test cluster could not do what it was asked for."""


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    check: bool = True,
    timeout_s: float = 90,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and capture its output.

    Args:
        argv: The command.
        env: Variables to add to this process's own.
        stdin: Text for its standard input.
        check: Raise when it does not exit with 0.
        timeout_s: Limit for the whole command.

    Raises:
        ClusterError: It failed; the message holds the command and what it said.
    """
    done = subprocess.run(
        argv,
        input=stdin,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise ClusterError(f"{shlex.join(argv)} exited {done.returncode}: {said}")
    return done


def wait_until(
    condition: Callable[[], bool], what: str, *, timeout_s: float, interval_s: float = 0.02
) -> None:
    """Poll until the condition holds.

    Raises:
        ClusterError: It did not hold in time; ``what`` names it.
    """
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise ClusterError(f"waited {timeout_s:g} s in vain for {what}")
        time.sleep(interval_s)
