"""Paths among the arguments of the model and the data: those of another machine, and their keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.meant_words.near_paths import meant_path
from hpc_train.config.specs import INIT_ARGS

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

_OF_A_LAPTOP = re.compile(r"/Users/\w|[A-Za-z]:[\\/]\w")
_READ = re.compile(r"(?:^|_)(?:root|path|dir|directory|folder|file|filename)s?$|^datadir$")
_DATA = re.compile(
    r"\.(?:csv|tsv|parquet|jsonl?|txt|np[yz]|h5|hdf5|pkl|pickle|feather|arrow|xlsx?|pth?|zip|tar)"
    r"(?:\.(?:gz|bz2|xz|zst))?$",
    re.IGNORECASE,
)
# Of an argument of these names a text with such an ending may be no path of a file to be read, or
# one that a library looks for elsewhere: a name on a hub, a pattern, what the training writes.
_NO_READ = re.compile(
    r"(?:^|_)(?:name|pattern|glob|ext|extension|suffix|format|template|url|repo|hub|version|variant"
    r"|weights|model|backbone|checkpoint|ckpt|pretrained|tokenizer|save|to|out|outputs?|logs?"
    r"|logger|results?|preds?|predictions?|export|dump|cache|report|metrics|history)(?:_|s?$)"
)
# What a training makes itself.
_WRITTEN = re.compile(r"(?:^|_)(?:save|output|out|log|logs|logging|cache|results?|export|tmp)_")
_NO_PATH = re.compile(r"[*?\[{$\n]|://")


def notes_on_paths(loaded: LoadedConfig) -> Iterator[str]:
    """A line for each path that is not on this machine; inside a container other ones are."""
    config = loaded.config
    if config.container.image:
        return
    written = {"model": config.model, "data": config.data}
    loads = _loads_itself(written)
    for key, text in argument_texts(written).items():
        is_meant = _OF_A_LAPTOP.match(text) or (
            not loads and text.startswith("/") and is_read(key, text)
        )
        if is_meant and is_absent(text):
            where = f"{loaded.origins.prefix(key)}{key} is {text}, which is not on this machine"
            meant = meant_path(text, Path()) if text.startswith("/") else ""
            yield f"{where}: {meant or 'write the path by which the nodes of the job see it'}"


def argument_texts(written: Mapping[str, Any]) -> dict[str, str]:
    """The texts among the arguments of objects, by dotted key.

    Args:
        written: The objects by key, in the form with class_path or as they were read.
    """
    return {key: text for name, value in written.items() for key, text in _texts(name, value)}


def keys_of_path(path: str, texts: Mapping[str, str]) -> list[str]:
    """The keys whose text is this path, or a folder above it; of several the longest text's.

    Args:
        path: A file's, or words that have it in them.
        texts: Of `argument_texts`.
    """
    found = {key: text for key, text in texts.items() if _begins(path, text.rstrip("/\\"), key)}
    longest = max(map(len, found.values()), default=0)
    return [key for key, text in found.items() if len(text) == longest]


def _begins(path: str, text: str, key: str) -> bool:
    name = _argument(key)
    is_path = "/" in text or "\\" in text or names_a_path(key) or _is_of_data(name, text)
    if len(text) < 2 or not is_path:
        return False
    return re.search(rf"(?:^|(?<=['\" ])){re.escape(text)}(?=$|[/\\'\" :,;])", path) is not None


def _texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name not in ("class_path", "_target_"):
                yield from _texts(f"{key}.{name}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(f"{key}.{index}", item)


def is_read(key: str, text: str) -> bool:
    """Whether a text may be a path, and is by its argument's name one of something to be read.

    A text with the ending of a file of data is one by itself, unless the name tells otherwise.
    """
    name = _argument(key)
    if not text or _NO_PATH.search(text) or _WRITTEN.search(name):
        return False
    return names_a_path(key) or _is_of_data(name, text)


def names_a_path(key: str) -> bool:
    """Whether an argument is by its name one for a path."""
    return _READ.search(_argument(key)) is not None


def _is_of_data(name: str, text: str) -> bool:
    return _DATA.search(text) is not None and not _NO_READ.search(name)


def _argument(key: str) -> str:
    """The name of the argument, also of an item in its list."""
    names = [part for part in key.split(".") if not part.isdigit()]
    return names[-1]


def _loads_itself(written: Mapping[str, Any]) -> bool:
    """Whether an argument asks for a download, which makes the folder."""
    arguments = [value.get(INIT_ARGS, value) for value in written.values() if _is_map(value)]
    return any(_is_map(given) and given.get("download") for given in arguments)


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def is_absent(path: str) -> bool:
    """Whether this machine says that there is no such file; where it may not look, it does not."""
    try:
        os.stat(path)  # noqa: PTH116 - Path.exists takes a refusal for an absence
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
