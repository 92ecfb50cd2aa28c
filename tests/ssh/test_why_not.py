"""What is said of a host that refuses, from ssh's own words."""

from __future__ import annotations

import pytest

from hpc_train.config.hosts import Host
from hpc_train.ssh.connect import why_not

REFUSED = "ssh: connect to host a port {}: Connection refused"


@pytest.mark.parametrize(
    ("port", "why", "fix"),
    [
        (
            4,
            "listens for ssh on port 4, as in a:4",
            "GPUs a host are --gpus 4, and a host is named",
        ),
        (2222, "listens for ssh on port 2222, as in a:2222", "a:PORT is the port of its sshd"),
        (None, "nothing there listens for ssh", "is sshd running? On another port: a:PORT"),
    ],
)
def test_a_port_that_was_named_is_named_again(port: int | None, why: str, fix: str) -> None:
    """Of Horovod and mpirun `a:4` are four slots."""
    said, hint = why_not(Host("a", port=port), "python", REFUSED.format(port or 22))
    assert why in said
    assert fix in hint
    assert ("--gpus" in hint) is (port == 4)
