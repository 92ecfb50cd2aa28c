"""A file that `torch.save(model, PATH)` wrote: a whole model by its class, and no state_dict.

Told by the words of the pickle in it, which is read as text and never loaded: torch is not imported
and no code of the file's is run.
"""

from __future__ import annotations

import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

# Of each torch.nn.Module, whose attributes are pickled as a dict (torch/nn/modules/module.py).
_OF_MODULES = {"_parameters", "_buffers", "_modules", "training"}
_NOTHING_MADE = ("PROTO", "FRAME", "BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE")
_MOST_BYTES, _MOST_WORDS = 1 << 20, 2000


def whole_model_in(path: Path) -> str:
    """The class, `nets.Net`; empty for another file, and where its bytes do not tell for sure."""
    try:
        with zipfile.ZipFile(path) as archive:
            name = next(it for it in archive.namelist() if it.endswith("/data.pkl"))
            with archive.open(name) as stream:
                return _class_in(_words(stream.read(_MOST_BYTES)))
    except (OSError, StopIteration, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return ""


def _class_in(words: Iterator[tuple[str, object]]) -> str:
    """Of a pickle that is one object of a class: the class, no arguments, then its attributes."""
    known = [it for it in words if it[0] not in _NOTHING_MADE]
    begun = [it[0] for it in known[:5]]
    if begun[:3] == ["GLOBAL", "EMPTY_TUPLE", "NEWOBJ"]:
        made, rest = str(known[0][1]).replace(" ", "."), known[3:]
    elif begun[2:] == ["STACK_GLOBAL", "EMPTY_TUPLE", "NEWOBJ"]:  # of protocol 4 and later
        made, rest = f"{known[0][1]}.{known[1][1]}", known[5:]
    else:
        return ""
    texts = {it[1] for it in rest if "UNICODE" in it[0]}
    is_module = rest[:1] and rest[0][0] == "EMPTY_DICT" and texts.issuperset(_OF_MODULES)
    return made if is_module else ""


def _words(pickled: bytes) -> Iterator[tuple[str, object]]:
    """The first of a pickle, each with what stands beside it."""
    try:
        for number, (word, beside, _) in enumerate(pickletools.genops(pickled)):
            if number == _MOST_WORDS:
                return
            yield word.name, beside
    except ValueError:  # cut off, or no pickle
        return


def how_to_save_its_state(path: Path, class_path: str) -> str:
    """The line that makes a file with the weights alone; to type here, where the class is found."""
    save = "torch.save(model.state_dict(), PATH)"
    # A class of a notebook or a script is found nowhere else.
    if class_path.startswith("__main__.") or not re.fullmatch(r"[\w./+ -]+", str(path)):
        return f"write {save} in the program that has the model"
    new = path.with_name(f"{path.stem}-state{path.suffix}")
    load = f"torch.load('{path}', map_location='cpu', weights_only=False)"
    code = f"import torch; torch.save({load}.state_dict(), '{new}')"
    return f'python -c "{code}", and name {new}; or {save} where the model was made'
