"""A config file for tests, and its refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpc_train import api
from hpc_train.config.load import LoadedConfig, load
from hpc_train.errors import ConfigError

MINIMAL = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net}
data: {class_path: nets.Data}
"""


def write(folder: Path, text: str, name: str = "cfg.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, more: str = "", *overrides: str, **keywords: Any) -> LoadedConfig:
    """MINIMAL with `more` behind it; line 5 of the file is the first of `more`."""
    return load(write(folder, MINIMAL + more), overrides, **keywords)


def refusal(path: Path, *overrides: str, **keywords: Any) -> ConfigError:
    """The error of loading `path`, in which the folder of the test is left out."""
    with pytest.raises(ConfigError) as caught:
        load(path, overrides, **keywords)
    error = caught.value
    assert "\n" not in str(error)
    folder = f"{path.parent}/"
    return ConfigError(error.message.replace(folder, ""), error.hint.replace(folder, ""))


def refused(folder: Path, more: str = "", *overrides: str, **keywords: Any) -> ConfigError:
    return refusal(write(folder, MINIMAL + more), *overrides, **keywords)


def told_of_script(
    folder: Path, text: str, *words: str, about: str, gpus: int = 2
) -> tuple[tuple[str, str] | None, list[str]]:
    """Of a script on several ranks: what is refused, with its fix; and the notes `about` it."""
    write(folder, text, "train.py")
    try:
        notes = api.load("train.py", *words, gpus=gpus).notes
    except ConfigError as error:
        return (error.message.removeprefix("train.py: script.path: "), error.hint or ""), []
    return None, [it for it in notes if about in it]
