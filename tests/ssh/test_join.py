"""The door of a machine that joined by hand: bash for who knows the word, nothing for others."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.errors import CheckError
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


def test_the_folder_of_the_word_is_for_this_user_alone_also_where_it_was_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "there").mkdir(mode=0o777)
    for folder in (tmp_path / "there", tmp_path / "new"):
        with gathered(folder, 1, ("127.0.0.1", 9), "a config", print):
            assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_that_somebody_else_has_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, -1)
    with pytest.raises(CheckError, match="belongs to somebody else"):
        gathered(tmp_path / "theirs", 1, ("127.0.0.1", 9), "a config", print).__enter__()
