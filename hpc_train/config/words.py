"""What may be meant by a word, or by a text in a number's place."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable

WEIGHTS = (".ckpt", ".pt", ".pth", ".safetensors")  # how files of a model's weights end
# How files of data end.
OF_DATA = (
    *(".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".npy", ".npz", ".h5", ".hdf5"),
    *(".pkl", ".zip", ".tar", ".gz", ".png", ".jpg", ".jpeg", ".wav", ".xlsx", ".db", ".sqlite"),
)
NEWEST = ("latest", "last")  # words for the newest run, unless one is called that
EVERY = ("all", "auto", "max", "any")  # in the place of a number
_NULLS = ("None", "none", "NONE", "nil", "Nil", "NIL", "null", "Null", "NULL")
_PLAIN = (str, bytes, int, float, list, tuple, set, dict, os.PathLike, type(None))
_MOST_SHOWN = 80
# What word processors and web pages put in the place of a space, quote, hyphen or colon.
_LOOKALIKES = re.compile("[\u00a0\u2000-\u201f\u3000\uff01-\uff5e]")
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?"


def is_null_word(text: str) -> bool:
    """Whether a text is a language's word for nothing; YAML's own is one only in quotes."""
    return text.strip() in _NULLS


def plain_one(text: str) -> str:
    """What to type for the first character that only looks like a plain one; empty without any."""
    found = _LOOKALIKES.search(text)
    return f"type a plain one in place of the {unicodedata.name(found[0])}" if found else ""


def did_you_mean(
    word: str, candidates: Iterable[str], *, prefix: str = "", cutoff: float = 0.6
) -> str:
    """`did you mean 'nodes'?`, or nothing when no candidate is near."""
    near = near_words(word, candidates, cutoff=cutoff)
    if not near:
        return ""
    return f"did you mean {' or '.join(repr(prefix + match) for match in near)}?"


def near_words(word: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """The one or two of the candidates that are near to a word, the nearest first."""
    import difflib  # only on the way to an error

    known = list(candidates)
    lower = {name.lower(): name for name in known}
    same = [lower[word.lower()]] if word.lower() in lower else []
    return same or difflib.get_close_matches(word, known, n=2, cutoff=cutoff)


def shown(value: object) -> str:
    """A value in a line: an object by its class, and of a plain one as much as is readable."""
    if not isinstance(value, _PLAIN):
        return f"the class {_full_name(value)}" if isinstance(value, type) else _an_object(value)
    text = " ".join(repr(value).split())
    return text if len(text) < _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def class_of_object(value: object) -> str:
    """`nets.Net` of such an object, of that class, or of a list of them; empty for plain values."""
    if isinstance(value, (list, tuple)):
        return next((found for it in value if (found := class_of_object(it))), "")
    if isinstance(value, type):
        return _full_name(value)
    return "" if isinstance(value, _PLAIN) else _full_name(type(value))


def _an_object(value: object) -> str:
    return f"an object of {_full_name(type(value))}"


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def meant_number(value: object, types: str) -> str:
    """What a text that stands in a number's place may be meant to be, for the end of a fix."""
    if isinstance(value, float) and value.is_integer():
        return f": {value:.0f}"
    if not isinstance(value, str) or not re.search("int|float", types):
        return ""
    if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", value):
        return f": {value.replace(',', '')}"
    if "float" in types and re.fullmatch(r"-?0,\d+", value):  # a decimal comma
        return f": {value.replace(',', '.')}"
    if marked := _with_a_mark(value):
        return marked
    if variable := re.fullmatch(r"\$(\w+)", value):
        return f'; of a variable of the shell: "${{oc.decode:${{oc.env:{variable[1]}}}}}"'
    if slip := re.fullmatch(rf"=?({_NUMBER}),?", value):
        if "float" not in types and not slip[1].lstrip("-").isdecimal():
            number = float(slip[1])
            return f": {number:.0f}, without a point" if number.is_integer() else ""
        as_text = " without quotes; of a variable: ${oc.decode:${oc.env:NAME}}"
        return as_text if slip[1] == value else f": {slip[1]}"
    words = split_words(value)
    if len(words) > 1 and "," not in value and all(re.fullmatch(_NUMBER, it) for it in words):
        return f"; several values are separated by commas: {','.join(words)}"
    comma = ", with a point" if re.fullmatch(r"-?\d+,\d+", value) else ""
    return f"{comma}; several values: --sweep KEY=VALUES" if "," in value else ""


def _with_a_mark(value: str) -> str:
    """What is meant by a share in percent, and by a number with a comment right behind it."""
    if share := re.fullmatch(r"([\d.]+)\s*%", value):
        return f": {float(share[1]) / 100:g}"
    found = re.fullmatch(rf"({_NUMBER})#\s*(.*)", value)
    return f": {found[1]}  # {found[2]} (a comment has a space in front of its #)" if found else ""


def is_number(text: str) -> bool:
    """Whether a word is a number as it is typed."""
    return re.fullmatch(_NUMBER, text) is not None


def with_commas(values: Iterable[object]) -> str:
    """`[1, 2]` of ["1 2"], which is what YAML makes of `[1 2]`."""
    return f"[{', '.join(word for it in values for word in split_words(str(it)))}]"


def split_words(text: str) -> list[str]:
    """The words of a text in which blanks, commas, semicolons or bars stand between them."""
    return re.split(r"\s*[\s,;|]\s*", text.strip())


def with_unit(memory: float) -> str:
    """The Slurm memory that a bare number is: GiB, or from 1000 on MiB, as Slurm takes it."""
    return f"{memory}{'G' if memory < 1000 else 'M'}"
