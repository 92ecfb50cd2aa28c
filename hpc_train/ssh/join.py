"""Machines joined by hand: each waits in a folder that all share, and the first starts steps there.

A machine that joins listens on a port of its own and leaves its address and a random word in that
folder, which this user alone can read. Who knows the word gets a bash there, as `ssh HOST bash -s`
would give it; all else is as over ssh. The word itself never crosses the network: it signs what the
machine sends first. What follows is not encrypted, as nothing is between ranks.
`python -m hpc_train.ssh.join FILE` is that other end.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hpc_train.config.hosts import Host, bracketed, family_of
from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.plan import env_names
from hpc_train.plan.quoting import slug
from hpc_train.runs.atomic import write_text
from hpc_train.ssh.connect import CONNECT_S, ssh_argv
from hpc_train.ssh.node import LEAVE_S

COME_S = 600.0  # for a person to type the same on every machine
POLL_S = 0.2
SILENCE_S = 30.0
FIRST = "place.0"  # as no NAME.json is called
ASKED = 32  # bytes that a machine sends to who connects, and of the answer (SHA-256)


def way_to(host: Host, connect_s: int = CONNECT_S) -> list[str]:
    """The command that runs bash on a host: where all have joined by hand, through its door."""
    if folder := os.environ.get(env_names.JOIN_DIR):
        return [sys.executable, "-m", "hpc_train.ssh.join", f"{folder}/{host.name}.json"]
    return ssh_argv(host, connect_s)


@contextlib.contextmanager
def gathered(
    folder: Path, nodes: int, master: tuple[str, int], about: str, say: Callable[[str], None]
) -> Iterator[list[str]]:
    """On the first machine: wait for the others, and give the names of all, in their order.

    Args:
        about: What all have to be started with alike; in words of no meaning.

    Raises:
        CheckError: another start waits at this address, one has another config, or one is late.
    """
    _make_own(folder)
    if _answers(folder / FIRST):
        raise CheckError(
            f"another node 0 is there already at --master {bracketed(master[0])}:{master[1]}",
            "give another port, the same on all",
        )
    with _door(folder / FIRST, master, about):
        try:
            yield _wait_for_all(folder, nodes, about, say)
        finally:
            for file in folder.glob("*.json"):
                file.unlink(missing_ok=True)


def _make_own(folder: Path) -> None:
    """Make the folder that the words lie in, or take one that is there, for this user alone.

    Raises:
        CheckError: somebody else has made it, who could read what is put there.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.lstat().st_uid != os.getuid():
        raise CheckError(f"{folder} belongs to somebody else", "give a runs_dir of your own")
    folder.chmod(0o700)


def _wait_for_all(folder: Path, nodes: int, about: str, say: Callable[[str], None]) -> list[str]:
    deadline = time.monotonic() + COME_S
    said = False
    found: dict[int, str] = {}
    while len(found) < nodes:
        for number in set(range(nodes)).difference(found):
            file = folder / f"place.{number}"
            place = _read(file) if _answers(file) else None
            if place is None:
                continue
            if place["about"] != about:
                raise CheckError(
                    f"node {number} ({place['host']}) was started with another config or shape",
                    "type the same config and options on all, but for --node-rank",
                )
            name = slug(place["host"])
            found[number] = f"{name}-{number}" if name in found.values() else name
            shutil.copy(file, folder / f"{found[number]}.json")
        missing = sorted(set(range(nodes)).difference(found))
        if missing and time.monotonic() > deadline:
            raise CheckError(
                f"node {missing[0]} did not come within {COME_S:.0f} s",
                f"type it there with --node-rank {missing[0]}; all share {folder.parent}",
            )
        if missing and not said:
            said = True
            say(f"waiting for node {', '.join(map(str, missing))}")
        time.sleep(POLL_S if missing else 0)
    return [found[number] for number in range(nodes)]


def joined(folder: Path, node_rank: int, master: tuple[str, int], about: str) -> None:
    """On any other machine: serve the first one until it is over.

    Raises:
        HpcTrainError: nobody called within the time that the first one waits.
    """
    _make_own(folder)
    deadline = time.monotonic() + COME_S
    with _door(folder / f"place.{node_rank}", master, about):
        while not _answers(folder / FIRST):
            if time.monotonic() > deadline:
                raise HpcTrainError(
                    f"node 0 did not come within {COME_S:.0f} s",
                    f"type it there with --node-rank 0; all share {folder.parent}",
                )
            time.sleep(POLL_S)
        heard = time.monotonic()
        while _read(folder / FIRST) is not None and time.monotonic() - heard < SILENCE_S:
            time.sleep(1.0)
            if _answers(folder / FIRST):
                heard = time.monotonic()


@contextlib.contextmanager
def _door(file: Path, master: tuple[str, int], about: str) -> Iterator[None]:
    children: list[subprocess.Popen[bytes]] = []
    with socket.create_server(("", 0), family=family_of(master[0])) as listener:
        word = secrets.token_hex(32)
        host = socket.gethostname()
        place = {"host": host, "address": _address(master), "port": listener.getsockname()[1]}
        write_text(file, json.dumps({**place, "word": word, "about": about}))
        threading.Thread(target=_serve, args=(listener, word, children), daemon=True).start()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            _end(children)


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """What still runs here is asked to save and leave, and is then killed."""
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(LEAVE_S + 5)
        except subprocess.TimeoutExpired:
            child.kill()


def _address(master: tuple[str, int]) -> str:
    """Of this machine, on the way to the first one."""
    with socket.socket(family_of(master[0]), socket.SOCK_DGRAM) as probe:
        probe.connect(master)  # sends nothing (udp(7))
        return str(probe.getsockname()[0])


def _serve(listener: socket.socket, word: str, children: list[subprocess.Popen[bytes]]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # closed: all is over
        children[:] = [child for child in children if child.poll() is None]
        with connection, contextlib.suppress(OSError):
            connection.settimeout(CONNECT_S)
            asked = secrets.token_bytes(ASKED)
            connection.sendall(asked)
            answer = connection.recv(ASKED, socket.MSG_WAITALL)
            if not hmac.compare_digest(answer, _sign(word, asked)):
                continue
            connection.settimeout(None)
            end = connection.fileno()
            children.append(
                subprocess.Popen(
                    ["bash", "-s"], stdin=end, stdout=end, stderr=end, start_new_session=True
                )
            )


def _sign(word: str, asked: bytes) -> bytes:
    return hmac.digest(word.encode(), asked, "sha256")


def _read(file: Path) -> dict[str, str] | None:
    try:
        place: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return place


def _connected(place: dict[str, str]) -> socket.socket:
    return socket.create_connection((place["address"], int(place["port"])), CONNECT_S)


def _answers(file: Path) -> bool:
    """Whether a machine is behind it, and it is not only what one has left."""
    place = _read(file)
    if place is None:
        return False
    try:
        with _connected(place):
            return True  # without the word: that door stays shut
    except OSError:
        return False


def main(argv: list[str]) -> int:
    """Pass standard input to a machine's bash, and what it says to standard output."""
    place = _read(Path(argv[0]))
    try:
        if place is None:
            raise OSError("it has left")
        connection = _connected(place)
        asked = connection.recv(ASKED, socket.MSG_WAITALL)
        connection.settimeout(None)
        connection.sendall(_sign(place["word"], asked))
    except OSError as error:
        print(f"it does not answer: {error}", file=sys.stderr)  # noqa: T201
        return 255
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def send() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(0, 65536):
                connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(65536):
            os.write(1, data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
