"""What tests of the supervisor share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def _signals_are_put_back() -> Iterator[None]:
    """A supervisor takes these for its process, which is the one of the tests."""
    before = {number: signal.getsignal(number) for number in TAKEN}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
