"""A variable of the user's that names a network interface which this node does not have."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping

_NAME = "GLOO_SOCKET_IFNAME"
_NOT_FOUND = re.compile(r"Unable to find (?:address|interface) for: (?P<name>[^\s\]]+)")


def absent_interface(error: BaseException, environ: Mapping[str, str] | None = None) -> str:
    """What to do where gloo was told to take an interface that is not there; else empty.

    One that is there and has no address is the node's trouble, as another node may have one.
    """
    found = _NOT_FOUND.search(str(error)) if isinstance(error, RuntimeError) else None
    named = (os.environ if environ is None else environ).get(_NAME, "")
    if found is None or found["name"] not in named.split(","):
        return ""
    there = [name for _, name in socket.if_nameindex()]
    if found["name"] in there:
        return ""
    return f"unset {_NAME}, or name an interface that is there: {', '.join(there)}"
