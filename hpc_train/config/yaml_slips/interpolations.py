"""`${...}` in a config that names what is not to be written down, or what is Hydra's alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.config.origins import Origins
from hpc_train.config.secrets import looks_secret

_ENVIRONMENT = re.compile(r"\$\{\s*oc\.env\s*:\s*([A-Za-z_]\w*)")
# Resolvers of Hydra: hydra/core/utils.py, and its page "Resolvers provided by Hydra".
_OF_HYDRA = re.compile(r"(?<!\\)\$\{\s*(hydra|now)\s*:\s*([^{}]*?)\s*\}(/?)")
HOLDS_VALUES = "x-"  # as in Docker's compose files
_MOST_SHOWN = 3
_HELD = re.compile(rf"(?<!\\)\$\{{\s*({HOLDS_VALUES}[\w-]+(?:\.[\w-]+)*)\s*\}}")
_DEEPEST = 10  # of values that are taken from values
_TYPED_FROM = "a relative path begins in the folder where you type the command"
_OWN_FOLDER = (
    "leave it out: each run has a folder of its own, in the model self.trainer.default_root_dir"
)


def check_interpolations(values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse what `${...}` cannot give.

    Raises:
        ConfigError: for `${oc.env:NAME}` of a secret, whose value would be written into the run
            directory, and for a word of Hydra.
    """
    for key, value in walk(values, ""):
        if not isinstance(value, str):
            continue
        for name in _ENVIRONMENT.findall(value):
            if looks_secret(name):
                raise origins.error(
                    key,
                    f"takes the value of {name}, which looks like a secret, and would write it",
                    f"list it in env.passthrough: [{name}], and read it in your code",
                )
        found = None if key.startswith("script.") else _OF_HYDRA.search(value)
        if found:
            said = f"calls {found[1]}:{found[2]}, which is Hydra's"
            raise origins.error(key, said, _instead(found, key, value, origins))


def _instead(found: re.Match[str], key: str, value: str, origins: Origins) -> str:
    """What to write for a value with a word of Hydra in it."""
    resolver, word, _ = found.groups()
    sign = "=" if origins.is_typed(key) else ": "
    name = key if sign == "=" else key.rpartition(".")[2]
    if resolver == "now":
        return "write a text of your own: each run's folder has the time in its name"
    if word == "runtime.cwd":
        meant = value.removeprefix(found[0]) or "."
        is_path = meant != value and _OF_HYDRA.search(meant) is None
        return f"write {name}{sign}{meant} ({_TYPED_FROM})" if is_path else _TYPED_FROM
    if word in ("runtime.output_dir", "run.dir"):
        return _OWN_FOLDER
    if word == "job.name":
        return f"write {name}{sign}{value.replace(found[0], '${name}')}"
    return "write the value here; ${oc.env:NAME} is a variable of the shell"


def held_by_prefix(
    name: str, values: Mapping[str, Any], origins: Origins
) -> tuple[str, tuple[str, ...]]:
    """How a key that is none of ours is written so that `${name.x}` finds it, and who does that.

    Args:
        name: Of a key at the top.
        values: The whole config.
        origins: Of its values.

    Returns:
        The hint, and the keys whose values take something of it; empty where none does.
    """
    meant = _taking(name)
    users = {
        key: meant.sub(f"${{{HOLDS_VALUES}", it)
        for key, it in walk(values, "")
        if isinstance(it, str) and meant.search(it)
    }
    if not users:
        return "", ()
    lines = [
        f"{key.rpartition('.')[2]}: {it} ({origins.prefix(key).removesuffix(': ')})"
        for key, it in users.items()
    ]
    more = ", and the same in the others" if lines[_MOST_SHOWN:] else ""
    shown = ", ".join(lines[:_MOST_SHOWN])
    return f"write {HOLDS_VALUES}{name} for it, and {shown}{more}", tuple(users)


def takes(name: str, values: Any) -> bool:
    """Whether a value takes something of the key `name` by `${name}` or `${name.x}`."""
    meant = _taking(name)
    return any(isinstance(it, str) and meant.search(it) for _, it in walk(values, ""))


def _taking(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\\)\$\{{\s*(?={re.escape(name)}\s*[.}}\[])")


def with_held(value: Any, held: Mapping[str, Any], depth: int = 0) -> Any:
    """The values in which each `${x-name.key}` that there is is what it holds."""
    if isinstance(value, Mapping):
        return {name: with_held(item, held, depth) for name, item in value.items()}
    if isinstance(value, list):
        return [with_held(item, held, depth) for item in value]
    if not isinstance(value, str) or depth > _DEEPEST:
        return value
    whole = _HELD.fullmatch(value)
    if whole and (found := _held(whole[1], held)) is not None:
        return with_held(found, held, depth + 1)

    def text_of(match: re.Match[str]) -> str:
        found = _held(match[1], held)
        return match[0] if found is None or isinstance(found, (Mapping, list)) else str(found)

    meant = _HELD.sub(text_of, value)
    return value if meant == value else with_held(meant, held, depth + 1)


def _held(key: str, held: Mapping[str, Any]) -> Any:
    found: Any = held
    for word in key.split("."):
        if isinstance(found, list) and word.isdecimal() and int(word) < len(found):
            found = found[int(word)]
        else:
            found = found.get(word) if isinstance(found, Mapping) else None
    return found


def walk(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Every value below, with its dotted key."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from walk(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, f"{key}.{index}")
    else:
        yield key, value
