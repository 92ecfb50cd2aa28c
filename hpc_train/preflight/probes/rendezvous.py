"""How the probes find each other: by a file in the run's folder.

The file carries every address of the coordinator's node, so that a node on which the name means
something wrong can still come and say so.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

from hpc_train.preflight.inventory.inventory import NodeInventory, Resolution
from hpc_train.preflight.options import PreflightOptions
from hpc_train.preflight.probes.wire import ClosedError, Frames, SilenceError, WireError, dial
from hpc_train.runs.atomic import write_text

RENDEZVOUS_FILE = "rendezvous.json"
_RESOLVER_S = 2.0
# A coordinator that takes connections and says nothing so often in a row, two seconds each, hangs.
_SILENCES = 3
_ANNOUNCE_S = 5.0


def addresses_of(inventory: NodeInventory) -> list[str]:
    """Return the node's routable addresses without their prefixes, IPv4 first."""
    found = [
        text.partition("/")[0]
        for item in inventory.interfaces
        if item.kind != "loopback" and item.is_up
        for text in item.routable
    ]
    return sorted(dict.fromkeys(found), key=lambda address: ":" in address)


def announce(folder: Path, addresses: list[str], port: int) -> None:
    """Tell the other probes where the coordinator listens."""
    document = {"addresses": addresses, "port": port}
    write_text(folder / RENDEZVOUS_FILE, json.dumps(document), durable=False)


def _announced(folder: Path) -> list[tuple[str, int]]:
    try:
        document = json.loads((folder / RENDEZVOUS_FILE).read_text())
        return [(str(address), int(document["port"])) for address in document["addresses"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # not there yet, or not visible here yet


def find_coordinator(
    options: PreflightOptions, token: bytes, source: str, deadline: float
) -> tuple[socket.socket, Frames]:
    """Return a proven connection to the coordinator.

    Raises:
        WireError: None before the deadline (monotonic), or it hangs; the text tells the last
            attempt.
    """
    folder = Path(options.folder)
    last, silences = "no rendezvous file and no answer", 0
    first_node = folder / f"look-{options.nodes[0]}.json"
    due: float | None = None
    while silences < _SILENCES and time.monotonic() < deadline:
        places = _announced(folder)
        for address, port in places:
            try:
                return dial(address, port, token, deadline, source)
            except SilenceError as error:
                last, silences = str(error), silences + 1
            except ClosedError as error:
                # It lives: one that is flooded hangs up on seven of eight.
                last, silences = str(error), 0
            except WireError as error:
                last = str(error)
        if due is None and first_node.exists():
            # It is there, and has nothing more to do than to say where it listens.
            due = time.monotonic() + _ANNOUNCE_S
        if not places and due is not None and time.monotonic() > due:
            break
        time.sleep(0.05)
    raise WireError(last)


def resolve(name: str) -> Resolution:
    """Return what a name means here; a resolver that hangs is cut off after two seconds."""
    found: list[Resolution] = []
    started = time.monotonic()

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP)
        except OSError as error:
            found.append(Resolution(name=name, error=f"cannot be resolved: {error.strerror}"))
            return
        addresses = tuple(sorted({str(item[4][0]).partition("%")[0] for item in answers}))
        found.append(Resolution(name=name, addresses=addresses, seconds=time.monotonic() - started))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_RESOLVER_S)
    if not found:
        text = f"the resolver does not answer within {_RESOLVER_S:g} s"
        return Resolution(name=name, error=text, seconds=_RESOLVER_S)
    return found[0]
