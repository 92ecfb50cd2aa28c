"""Which names hold secrets: they are passed on by name, and their values are never written."""

from __future__ import annotations

import re

# TOKENIZERS_PARALLELISM is in every other script and is no secret: the word must end a part.
_SECRET = re.compile(
    r"(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(?:_|\Z)", re.IGNORECASE
)


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is treated as a secret: WANDB_API_KEY, HF_TOKEN."""
    return _SECRET.search(name) is not None
