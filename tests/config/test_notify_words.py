"""Addresses and events of `notify` in other forms, and what is written for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.supervisor.send_notice import how_to_correct
from tests.config.files import MINIMAL, refusal, refused, write

SENDS = ", in place of it (Slurm sends mail at the end and at a failure)"
AS_URL = "write it as a URL of Apprise into a file that only you can read, and "
IN_FILE = "put it into a file that only you can read, and write "


@pytest.mark.parametrize(
    ("more", "fix"),
    [
        ("notify: {email: me@uni.edu}\n", f"write slurm: {{mail_user: me@uni.edu}}{SENDS}"),
        ("notify: {mail_to: a.b@c-d.org}\n", f"write slurm: {{mail_user: a.b@c-d.org}}{SENDS}"),
        ("notify: me@uni.edu\n", f"write slurm: {{mail_user: me@uni.edu}}{SENDS}"),
        ("email: me@uni.edu\n", f"write slurm: {{mail_user: me@uni.edu}}{SENDS}"),
        (
            "slurm: {nodes: 2}\nnotify: {emails: me@uni.edu}\n",
            f"write mail_user: me@uni.edu in slurm{SENDS}",
        ),
        ("notify: {email: true}\n", f"{AS_URL}urls_from: ~/FILE"),
        ("notify: {slack: 'https://hooks/SECRET'}\n", f"{AS_URL}urls_from: ~/FILE"),
        ("notify: {slack_webhook: 'https://hooks/SECRET'}\n", f"{AS_URL}urls_from: ~/FILE"),
        ("notify: {url: 'mailto://me:SECRET@uni.edu'}\n", f"{AS_URL}urls_from: ~/FILE"),
        (
            "notify: 'slack://SECRET'\n",
            f"{IN_FILE}notify: {{urls_from: ~/.config/hpc-train/notify}}",
        ),
        ("notify: CHAT\n", "write notify: {urls_from: CHAT}"),
        ("notify: ~/chat\n", "write notify: {urls_from: ~/chat}"),
        (
            "notify: {urls_from: me-SECRET@uni.edu}\n",
            "for mail write slurm.mail_user, with the address, in place of urls_from",
        ),
    ],
)
def test_an_address_is_told_with_the_key_that_takes_it(tmp_path: Path, more: str, fix: str) -> None:
    error = refused(tmp_path, more)
    assert error.hint == fix
    assert "SECRET" not in error.message


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("notify.email=me@uni.edu", f"write slurm.mail_user=me@uni.edu{SENDS}"),
        ("notify=me@uni.edu", f"write slurm.mail_user=me@uni.edu{SENDS}"),
        ("notify.url=slack://x", f"{AS_URL}notify.urls_from=~/FILE"),
        ("notify=slack://x", f"{IN_FILE}notify.urls_from=~/.config/hpc-train/notify"),
    ],
)
def test_a_typed_one_is_told_as_it_is_typed(tmp_path: Path, word: str, fix: str) -> None:
    assert refusal(write(tmp_path, MINIMAL), word).hint == fix


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("done", "did you mean 'end'?"),
        ("Finished", "did you mean 'end'?"),
        ("fail", "did you mean 'failure'?"),
        ("FAIL", "did you mean 'failure'?"),
        ("begin", "did you mean 'start'?"),
        ("requeue", "did you mean 'preemptions'?"),
        ("strggler", "did you mean 'straggler'?"),
        ("all", "leave events out: all are told"),
        ("hourly", "write start, end, failure, preemptions, straggler"),
    ],
)
def test_an_event_of_others_is_told_with_ours(tmp_path: Path, word: str, fix: str) -> None:
    assert refused(tmp_path, f"notify: {{events: [{word}]}}\n").hint == fix


@pytest.mark.parametrize(
    ("urls", "said"),
    [
        (["json://host/x", "MAILTO://me:pw@uni.edu", "https://hooks.slack.com/a/b/c"], ""),
        (
            ["json://host/x", "me@uni.edu", "x"],
            (
                "for mail write mailto://USER:PASSWORD@HOST there; or in place of notify mail_user:"
                " ADDRESS in slurm, and Slurm sends it"
            ),
        ),
        (
            ["slack:", "xoxb"],
            "write SERVICE://... there, as https://github.com/caronc/apprise/wiki lists them",
        ),
    ],
)
def test_what_is_no_url_is_told_with_what_one_is(urls: list[str], said: str) -> None:
    assert how_to_correct(urls) == said
