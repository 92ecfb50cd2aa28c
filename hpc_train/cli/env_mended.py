"""What is typed next where `env` of a run has failed on its node, before Python began there."""

from __future__ import annotations

import re
import shlex

from hpc_train.codec import read_object
from hpc_train.runs.layout import RunDir

# What is typed for none of it, and in the place of another.
_FORMS = {
    "conda": ("null", "NAME"),
    "venv": ("null", "FOLDER"),
    "modules": ("[]", "[NAME]"),
    "setup": ("[]", "[LINE]"),
}
_NAMED = re.compile(rf"\benv\.({'|'.join(_FORMS)})\b")


def with_env_mended(run: RunDir, name: str, reason: str) -> str:
    """The line to type: with the key that was typed changed, else from the file once it is mended.

    Args:
        name: Of the run, as it is typed.
        reason: Why the run failed.
    """
    from hpc_train.backends.submit_again import submit_again

    if key := _typed_key(run, reason):
        none, other = (shlex.quote(f"env.{key}={value}") for value in _FORMS[key])
        resume = f"hpc-train resume {name}"
        return f"without env.{key}: {resume} {none}; with another: {resume} {other}"
    return f"with env mended: {submit_again(run)}; {keeps_env(name)}"


def keeps_env(name: str) -> str:
    """What resume does with the env of a run."""
    kept = "keeps the env of its submission but for env.KEY=VALUE behind it"
    return f"hpc-train resume {name} {kept}"


def _typed_key(run: RunDir, reason: str) -> str:
    """The key of env that failed, where it was typed; empty where the file has it."""
    kept = read_object(run.environment).get("config") or {}
    words = [str(it).partition("=")[0] for it in kept.get("words") or ()]
    keys = [*words, *map(str, kept.get("typed_since") or ())]
    typed = {key for key in _FORMS if f"env.{key}" in keys}
    named = [it for it in _NAMED.findall(reason) if it in typed]
    if not run.config.is_file():
        return ""
    if named:
        return str(named[0])
    return typed.pop() if len(typed) == 1 and not _NAMED.search(reason) else ""
