"""What is meant by an address or an event of `notify` in another form than ours."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.words import did_you_mean

MAIL_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# Keys that others have for it, at the top and below notify.
_OF_MAIL = re.compile(r"(?:notify\.)?(?:e_?mails?|mails?|mail_?(?:to|user)|to|address(?:es)?)")
_OF_A_URL = re.compile(
    r"notify\.(?:urls?|slack|discord|teams|telegram|ntfy|matrix|mattermost|webhooks?)(?:_\w+)?"
)
_IN_A_FILE = "into a file that only you can read"
_EVENTS = {  # as Slurm's --mail-type and other tools call them
    **dict.fromkeys(("done", "complete", "completed", "completion", "success", "succeeded"), "end"),
    **dict.fromkeys(("finish", "finished", "ended", "cancelled"), "end"),
    **dict.fromkeys(
        ("fail", "failed", "error", "errors", "crash", "crashed", "timeout"), "failure"
    ),
    **dict.fromkeys(("begin", "began", "started", "submit"), "start"),
    **dict.fromkeys(("preempt", "preempted", "preemption", "requeue", "requeued"), "preemptions"),
}


def of_address(full: str, values: Mapping[str, Any], *, typed: bool) -> str:
    """What to write for a key with an address, which stands nowhere in a config; or empty.

    Slurm's own mail needs no more than an address. Another address may hold a secret, and is not
    told again.

    Args:
        full: The key, dotted.
        values: The whole config.
        typed: Whether it stands on the command line.
    """
    section, _, name = full.rpartition(".")
    beside = values.get(section) if section else values
    value = beside.get(name) if isinstance(beside, Mapping) else None
    if _OF_MAIL.fullmatch(full) and isinstance(value, str) and MAIL_ADDRESS.fullmatch(value):
        return of_mail(value, values, typed=typed)
    is_address = _OF_A_URL.fullmatch(full) or (section and _OF_MAIL.fullmatch(full))
    sign = "=" if typed else ": "
    key = "notify.urls_from" if typed else "urls_from"
    return f"write it as a URL of Apprise {_IN_A_FILE}, and {key}{sign}~/FILE" if is_address else ""


def of_mail(address: str, values: Mapping[str, Any], *, typed: bool) -> str:
    """Slurm's own mail, which needs no more than the address (sbatch(1), --mail-user)."""
    if typed:
        write = f"write slurm.mail_user={shlex.quote(address)}"
    elif isinstance(values.get("slurm"), Mapping):
        write = f"write mail_user: {address} in slurm"
    else:
        write = f"write slurm: {{mail_user: {address}}}"
    return f"{write}, in place of it (Slurm sends mail at the end and at a failure)"


def of_section(value: str, values: Mapping[str, Any], *, typed: bool) -> str:
    """What to write where the section itself has an address, or a place of some; or empty."""
    if MAIL_ADDRESS.fullmatch(value):
        return of_mail(value, values, typed=typed)
    if re.fullmatch(r"[a-z_]\w*", value):  # a service, as slack
        return ""
    is_name = re.fullmatch(r"[A-Z_]\w*|[/~][^:]*", value)
    source = value if is_name else "~/.config/hpc-train/notify"
    write = f"notify.urls_from={source}" if typed else f"notify: {{urls_from: {source}}}"
    return f"write {write}" if is_name else f"put it {_IN_A_FILE}, and write {write}"


def event_hint(word: str, known: Sequence[str]) -> str:
    """What to write for an event that is none."""
    lower = word.lower()
    if lower == "all":
        return "leave events out: all are told"
    if meant := _EVENTS.get(lower):
        return f"did you mean {meant!r}?"
    return did_you_mean(lower, known) or f"write {', '.join(known)}"
