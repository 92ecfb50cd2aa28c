"""The door of a machine that joined by hand: bash for who knows the word, nothing for others."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.ssh.join import gathered


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Iterator[Path]:
    with gathered(tmp_path, 1, ("127.0.0.1", 9), "a config", print) as names:
        yield tmp_path / f"{names[0]}.json"


def test_who_knows_the_word_gets_a_bash_there(place: Path) -> None:
    argv = [sys.executable, "-m", "hpc_train.ssh.join", str(place)]
    done = subprocess.run(
        argv, input="echo $((6*7)); exit\n", capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "42\n"


@pytest.mark.parametrize("what", ["the word itself", "what was asked", "nothing of it"])
def test_nobody_else_does_and_the_word_is_not_sent(place: Path, what: str) -> None:
    known = json.loads(place.read_text(encoding="utf-8"))
    with socket.create_connection((known["address"], known["port"]), 60) as connection:
        asked = connection.recv(32, socket.MSG_WAITALL)
        assert len(asked) == 32
        answers = {
            "the word itself": known["word"].encode()[:32],
            "what was asked": asked,
            "nothing of it": secrets.token_bytes(32),
        }
        connection.sendall(answers[what])
        connection.sendall(b"echo in\n")
        said = b""
        with contextlib.suppress(ConnectionResetError):  # closed with our words unread
            said = connection.recv(100)
        assert said == b""


def test_it_asks_something_else_each_time(place: Path) -> None:
    known = json.loads(place.read_text(encoding="utf-8"))
    asked = set()
    for _ in range(3):
        with socket.create_connection((known["address"], known["port"]), 60) as connection:
            asked.add(connection.recv(32, socket.MSG_WAITALL))
    assert len(asked) == 3
