"""Sends one notice by Apprise, in a process of its own that is killed when it takes too long.

Apprise is imported in that process alone: whatever a channel does, it cannot hold up, crash or grow
the supervisor. What is said of a channel is its number and its kind, never its address.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hpc_train.codec import Document
from hpc_train.config.meant_words.notify_words import MAIL_ADDRESS
from hpc_train.config.schema import NotifyConfig
from hpc_train.errors import HpcTrainError
from hpc_train.runs.installed import install_command

_ROOT = Path(__file__).parents[2]  # not the folder of the run: its modules could hide Apprise's
_MOST_CHARACTERS = 2000  # chats cut what is longer
_EXTRA = "notices"


@dataclass(frozen=True)
class Notice(Document):
    """What a person is told; plain text."""

    title: str
    text: str


@dataclass(frozen=True)
class Sent(Document):
    """What came of it: how many channels there are, and a line for each that failed.

    Attributes:
        said: Apprise's own words. They may hold a part of an address: for the terminal alone.
    """

    channels: int = 0
    troubles: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def read_urls(source: str, environ: Mapping[str, str]) -> list[str]:
    """The addresses; `#` begins a comment.

    Raises:
        HpcTrainError: there are none, in words that hold no address.
    """
    key = "notify.urls_from"
    try:
        is_file = source[0] in "/~"
        text = Path(source).expanduser().read_text("utf-8") if is_file else environ[source]
    except KeyError:
        fix = f"export {source}=... in the shell that submits"
        raise HpcTrainError(f"{key}: {source} is not set here", fix) from None
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "cannot be read as text"
        raise HpcTrainError(f"{key}: {source}: {why}", "write one URL a line into it") from None
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    urls = " ".join(lines).split()
    if not urls:
        raise HpcTrainError(f"{key}: {source} is empty", "write one URL of Apprise a line into it")
    return urls


def how_to_correct(urls: Sequence[str]) -> str:
    """What to write for the first word that is no URL, as all of Apprise's are; else empty."""
    wrong = next(filter(_is_no_url, urls), "")
    if MAIL_ADDRESS.fullmatch(wrong):
        own = "in place of notify mail_user: ADDRESS in slurm, and Slurm sends it"
        return f"for mail write mailto://USER:PASSWORD@HOST there; or {own}"
    every = "https://github.com/caronc/apprise/wiki"
    return f"write SERVICE://... there, as {every} lists them" if wrong else ""


def _is_no_url(word: str) -> bool:
    return "://" not in word


def channel_notes(notify: NotifyConfig) -> list[str]:
    """Why no notice could be sent from this shell; it is no reason to refuse a training."""
    if not notify.urls_from:
        return []
    try:
        urls = read_urls(notify.urls_from, os.environ)
    except HpcTrainError as error:
        return [f"{error.message}, so no notice will be sent: {error.hint}"]
    if fix := how_to_correct(urls):
        wrong = sum(map(_is_no_url, urls))
        what = "what it has is no URL" if len(urls) == 1 else f"{wrong} of {len(urls)} are no URLs"
        which = "no notice will be" if wrong == len(urls) else "to these no notice will be"
        return [f"notify.urls_from: {notify.urls_from}: {what}, and {which} sent: {fix}"]
    if find_spec("apprise") is None:
        return [
            f"Apprise is not installed, so no notice will be sent: {install_command(extra=_EXTRA)}"
        ]
    return []


def send(notify: NotifyConfig, notice: Notice) -> Sent:
    """Send to every channel at once; returns after `notify.timeout_s` at the latest."""
    assert notify.urls_from is not None
    command = [sys.executable, "-m", "hpc_train.supervisor.send_notice", notify.urls_from]
    try:
        with tempfile.TemporaryFile() as answer:  # a pipe could be held open by a child of it
            subprocess.run(
                command,
                input=json.dumps(notice.to_json()).encode(),
                stdout=answer,
                stderr=subprocess.DEVNULL,
                cwd=_ROOT,
                timeout=notify.timeout_s,
                start_new_session=True,
                check=False,
            )
            answer.seek(0)
            return Sent.from_json(json.loads(answer.read() or "null"))
    except subprocess.TimeoutExpired:
        return Sent(troubles=(f"a channel gave no answer within {notify.timeout_s:g} s",))
    except (OSError, ValueError) as error:
        return Sent(troubles=(f"its process failed: {type(error).__name__}",))


def _send_all(urls: Sequence[str], notice: Notice) -> Sent:
    from concurrent.futures import ThreadPoolExecutor

    import apprise

    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("apprise").addHandler(handler)
    troubles = []
    channels = [apprise.Apprise.instantiate(url) for url in urls]

    def told(number: int) -> str:
        channel = channels[number]
        if channel is None:
            scheme = re.match(r"\w{1,30}(?=://)", urls[number])
            begins = f" ({scheme[0]}://...)" if scheme else ", which begin with SERVICE://"
            return f"URL {number + 1} of {len(urls)} is none that Apprise knows{begins}"
        text = notice.text[:_MOST_CHARACTERS]
        form = apprise.NotifyFormat.TEXT
        if channel.notify(body=text, title=notice.title, body_format=form):
            return ""
        return f"channel {number + 1} of {len(urls)} ({channel.service_name}) did not take it"

    with ThreadPoolExecutor(max_workers=len(urls)) as pool:
        troubles = [trouble for trouble in pool.map(told, range(len(urls))) if trouble]
    return Sent(len(urls), tuple(troubles), tuple(said))


def main() -> None:
    """Send the notice on standard input; the answer is JSON on standard output."""
    answer = os.dup(1)
    os.dup2(2, 1)  # a channel's own print is no answer
    try:
        urls = read_urls(sys.argv[1], os.environ)
        sent = _send_all(urls, Notice.from_json(json.load(sys.stdin)))
    except HpcTrainError as error:
        sent = Sent(troubles=(f"{error.message} ({error.hint})",))
    except ImportError:
        sent = Sent(troubles=(f"Apprise is not installed ({install_command(extra=_EXTRA)})",))
    except Exception as error:  # noqa: BLE001 - a channel may raise anything
        sent = Sent(troubles=(f"Apprise failed: {type(error).__name__}",))
    os.write(answer, json.dumps(sent.to_json()).encode())


if __name__ == "__main__":
    main()
