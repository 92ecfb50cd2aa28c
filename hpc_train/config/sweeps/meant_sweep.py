"""What was meant as a sweep and is none yet: a list, keys in one word, a key without section."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.keys import FIELDS
from hpc_train.config.whole_forms import flow
from hpc_train.errors import ConfigError

_OPENS = re.compile(r"[\"']|[\[{(][^\]})]*\Z")  # inside of it no key begins
_NEXT_KEY = re.compile(r"\s*([;|,]|\s)\s*(?=([A-Za-z_][\w.]*)=)")
_MOST_SHOWN = 80
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_NUMBERS = rf"{_NUMBER}(?:\s*,\s*{_NUMBER})*"
_THROTTLED = re.compile(rf"(\[\s*{_NUMBERS}\s*\]|{_NUMBERS}|range\([^()]*\))\s*%\s*([1-9]\d*)")
_AS_IN_A_FILE = re.compile(r"([A-Za-z_][\w.]*)\s*:\s*(\S.*)")
# What `unknown_key` writes of a key of a file: below its section, or with it.
_BELOW = re.compile(r"write below (?P<above>[\w.]+): (?P<name>\w+): (?P<value>.+)")
_NESTED = re.compile(r"write \{?(?P<above>(?:\w+: \{)+)(?P<name>\w+): (?P<value>[^{}]+)\}+")
_DOTTED = re.compile(r"write (?:.*: )?(?P<name>[a-z]\w*(?:\.\w+)*)")


def several_values(key: str, value: Any, *, is_typed: bool) -> str:
    """How each of some numbers is trained that stand where one belongs, for the end of a fix.

    Args:
        key: Dotted; the points of a sweep share all of `slurm`.
        is_typed: Not written in a file.
    """
    many = value if isinstance(value, list) else []
    are_numbers = all(type(it) in (int, float) for it in many)
    if len(many) < 2 or not are_numbers or len(set(many)) < len(many) or key[:6] == "slurm.":
        return ""
    text = flow(many)
    if is_typed:
        return f"; several values: --sweep {key}={text[1:-1].replace(' ', '')}"
    return f"; several values: sweep: {{{key}: {text}}}"


def check_one_key(key: str, text: str) -> None:
    """Refuse `--sweep "lr=1,2;seed=1,2"`: another key's values are none of the first one's.

    Raises:
        ConfigError: with an option for each.
    """
    starts: list[tuple[int, int]] = []
    for found in _NEXT_KEY.finditer(text):
        is_key = found[1] == ";" or found[2].partition(".")[0] in FIELDS
        if is_key and not _OPENS.search(text[: found.start()]):
            starts.append(found.span())
    if not starts:
        return
    ends = [start for start, _ in starts[1:]] + [len(text)]
    pairs = [f"{key}={text[: starts[0][0]]}"]
    pairs += [text[begin:end] for (_, begin), end in zip(starts, ends, strict=True)]
    options = " ".join(f"--sweep {shlex.quote(it.strip())}" for it in pairs)
    message = f"command line: --sweep {shlex.quote(f'{key}={text}')} has several keys in one word"
    raise ConfigError(message, f"write an option for each: {options}")


def check_throttle(key: str, text: str) -> None:
    """Refuse `--sweep seed=1,2,3%2`: as in Slurm's --array, two of them at once are meant.

    Raises:
        ConfigError: with the option for that; behind a text a % may belong to it.
    """
    if found := throttled(text):
        values, most = found
        message = f"command line: --sweep {key}={text.strip()}: %{most} is of Slurm's --array"
        swept = shlex.quote(f"{key}={values.replace(' ', '')}")
        raise ConfigError(message, f"write --sweep {swept} --at-most {most}")


def throttled(text: str) -> tuple[str, str] | None:
    """The values of `1,2,3%2` or `range(3)%2`, and how many at once; None for other texts."""
    found = _THROTTLED.fullmatch(text.strip())
    return (found[1], found[2]) if found else None


def without_equals(typed: str) -> tuple[str, str] | None:
    """What is wrong with `--sweep "lr: [0.1, 0.01]"`, as a file has it, and the fix; else None."""
    found = _AS_IN_A_FILE.fullmatch(typed.strip())
    if found is None:
        return None
    key, text = found.groups()
    inner = text[1:-1] if text[0] == "[" and text[-1] == "]" else text
    has_plain_values = not re.search(r"[\[\]{}()\"']", inner)
    values = re.sub(r"\s*,\s*", ",", inner.strip()) if has_plain_values else text
    most = ""
    if parts := throttled(values):
        values, most = parts[0], f" --at-most {parts[1]}"
    message = f"command line: --sweep {shlex.quote(typed)} has the form of a file"
    return message, f"write it with an =: --sweep {shlex.quote(f'{key}={values}')}{most}"


def with_swept_keys(
    error: ConfigError, swept: Mapping[str, Any], section: Mapping[str, Any]
) -> None:
    """Let the fix for unknown keys of a file's sweep name them as a sweep has them: dotted.

    Those that only have to be written with all their words get one fix: the whole section.

    Args:
        error: Of one point, whose fixes are those for the keys outside of a sweep.
        swept: What the keys of files have, as they were written: a list, or a text with a range.
        section: All of the sweep.
    """
    meant: dict[str, str] = {}
    others = []
    for it in (error, *error.others):
        key, found = "", ""
        if isinstance(it, ConfigError):
            key = next(iter(it.keys), "")
            found = with_swept_key(it, key, swept[key]) if key in swept else ""
        meant |= {key: found} if found else {}
        others += [it] if it is not error and not found else []
    if len(section) > 1 and error.keys[0] in meant:
        written = [f"{meant.get(it, it)}: {_written(of)}" for it, of in section.items()]
        rest = [it for it in meant if it != error.keys[0]]
        also = f", and {', '.join(rest)} {'is' if len(rest) == 1 else 'are'} none"
        error.message += also if rest else ""
        error.hint = f"write sweep: {{{', '.join(written)}}}"
        error.others = tuple(others)


def with_swept_key(error: ConfigError, key: str, values: Any) -> str:
    """The key that is meant, where its fix is to write it; else empty."""
    if "." in key or key in FIELDS or tuple(error.keys) != (key,):
        return ""
    found = _BELOW.fullmatch(error.hint) or _NESTED.fullmatch(error.hint)
    if found:
        meant = ".".join([*re.findall(r"\w+", found["above"]), found["name"]])
    else:
        found = _DOTTED.fullmatch(error.hint)
        meant = found["name"] if found else ""
    if meant.partition(".")[0] not in FIELDS:
        return ""
    if meant.startswith("slurm."):
        error.hint = f"the points of a sweep share {meant}: submit it once for each value"
        return ""
    is_other = found is not None and found.groupdict().get("value") == "..."
    error.hint = f"write sweep: {{{meant}: {'[...]' if is_other else _written(values)}}}"
    return "" if is_other else meant


def _written(values: Any) -> str:
    is_list = isinstance(values, Sequence) and bool(values)
    return flow(values) if is_list and len(flow(values)) <= _MOST_SHOWN else "[...]"
