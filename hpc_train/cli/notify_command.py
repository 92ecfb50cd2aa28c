"""`hpc-train notify`: try the channels before the night."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from hpc_train.cli.common import ConfigCommand, config_arguments, load_config
from hpc_train.errors import HpcTrainError, UsageError


@click.command("notify", cls=ConfigCommand)
@config_arguments
def command(cfg: Path, overrides: tuple[str, ...], **flags: Any) -> int:
    """Send a test notice to where CFG's `notify` says, as a run would."""
    from hpc_train.supervisor.send_notice import Notice, how_to_correct, read_urls, send

    config = load_config(cfg, overrides, flags, for_notices=True).config
    if not config.notify.urls_from:
        fix = "write notify.urls_from: NAME of a variable, or a file: docs/notices.md"
        raise UsageError(f"{cfg} has no notify.urls_from, so nobody is told", fix)
    urls = read_urls(config.notify.urls_from, os.environ)
    text = f"A run of {config.name} would be told of here: {', '.join(config.notify.events)}."
    sent = send(config.notify, Notice("hpc-train: a test", text))
    if sent.troubles:
        words = [" ".join(line.split()) for line in sent.said]
        said = f": {'; '.join(words)}" if words else ""
        message = f"{'; '.join(sent.troubles)}{said}"
        raise HpcTrainError(message, how_to_correct(urls) or f"correct {config.notify.urls_from}")
    channels = f"{sent.channels} channel{'s' if sent.channels > 1 else ''}"
    click.echo(f"sent to {channels}; look whether it came")
    return 0
