"""What is typed behind `hpc-train submit` for a config, so that it can be typed again."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hpc_train.config.flags import FLAGS
from hpc_train.config.secrets import looks_secret

HIDDEN = "VALUE"  # what is kept of a secret
AND_AGAIN = " && hpc-train submit "  # behind a cd; the path of CFG from there comes behind it
_AGAIN = re.compile(rf"cd ('[^']+'|[^'\s]+){AND_AGAIN}('[^']+'|[^'\s]+)$")
_PLAIN = re.compile(r"-?[\d.]+(?:e-?\d+)?|true|false|null", re.IGNORECASE)
# Of a mapping in one word, {HF_TOKEN: abc}.
_PAIR = re.compile(r"""([\w.-]+)(\s*[:=]\s*)('[^']*'|"[^"]*"|[^\s,{}]+)""")
_WITH_PASSWORD = re.compile(r"(://)[^/@\s]+:[^/@\s]+@")


def again_above(place: Path, up: int, file: Path) -> str:
    """The line to type in a folder above.

    Args:
        place: That folder.
        up: How many above this one it is.
        file: The config, from there.
    """
    climb = "/".join([".."] * up)
    return f"it is in {place}: cd {climb}{AND_AGAIN}{shlex.quote(str(file))}"


def again_in_python(hint: str) -> str:
    """The same for who has called `hpc_train.load`; any other hint as it is."""
    if not (found := _AGAIN.search(hint)):
        return hint
    (folder,), (file,) = shlex.split(found[1]), shlex.split(found[2])
    return f"{hint[: found.start()]}os.chdir({folder!r}), and then hpc_train.load({file!r})"


def submission_words(
    path: str | os.PathLike[str],
    overrides: Sequence[str],
    flags: Mapping[str, object],
    sweep: Sequence[str],
    arguments: Sequence[str] | None,
) -> list[str]:
    """CFG, its options, the values, and what stands behind `--`; the arguments are `load`'s.

    No secret is in them: of `env.variables.HF_TOKEN=abc` the name is kept.
    """
    words = [str(path)]
    for name, flag in FLAGS.items():
        if flags.get(name) is not None:
            words += [flag.option, str(flags[name])]
    words += [word for typed in sweep for word in ("--sweep", typed)]
    words += overrides
    return _without_secrets([*words, *(() if arguments is None else ("--", *arguments))])


def typed_anew(words: Sequence[str], changed: str = "") -> list[str]:
    """The same words with one value changed.

    Args:
        changed: As it is to be typed, KEY=VALUE; empty for none.
    """
    key = changed.partition("=")[0]
    mark = words.index("--") if "--" in words else len(words)  # behind it are a script's own
    option = next((flag.option for flag in FLAGS.values() if flag.key == key), "")
    own: list[str] = []
    rest = iter(words[:mark])
    for word in rest:
        if changed and word == option:
            next(rest, "")
        elif not changed or word.partition("=")[0] != key:
            own.append(word)
    return [*own, *([changed] if changed else []), *words[mark:]]


def words_of_point(
    words: Sequence[str], chosen: Sequence[str], filled: Callable[[str], object]
) -> list[str]:
    """The words of a sweep with what is chosen for one point, to be typed behind `run`.

    Args:
        chosen: As they are to be typed, KEY=VALUE.
        filled: A script's argument with the values of the point in its braces.
    """
    mark = words.index("--") if "--" in words else len(words)
    own: list[str] = []
    rest = iter(words[:mark])
    for word in rest:
        if word in ("--sweep", "--cluster"):
            next(rest, "")
        else:
            own.append(word)
    behind = [str(filled(word)) for word in words[mark + 1 :]]
    return [*own, *chosen, *words[mark : mark + 1], *behind]


def typed_words(words: Sequence[str]) -> list[str]:
    """KEY=VALUE of each option and value among the words of a command but its first."""
    keys = {flag.option: flag.key for flag in FLAGS.values()}
    own: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in keys:
            own.append(f"{keys[word]}={next(rest, '')}")
        elif "=" in word:
            own.append(word)
    return own


def with_options(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """The same words with more options behind CFG."""
    return [*words[:1], *options, *words[1:]]


def _without_secrets(words: Sequence[str]) -> list[str]:
    told: list[str] = []
    for word in words:
        name, sign, value = word.partition("=")
        before = told[-1] if told else ""
        if sign and _is_secret(name):
            word = word if _PLAIN.fullmatch(value) else f"{name}={HIDDEN}"
        elif before.startswith("-") and "=" not in before and _is_secret(before):
            word = word if _PLAIN.fullmatch(word) or word.startswith("-") else HIDDEN
        elif "{" in word:
            word = _PAIR.sub(_hidden, word)
        told.append(_WITH_PASSWORD.sub(rf"\1{HIDDEN}@", word))
    return told


def _hidden(pair: re.Match[str]) -> str:
    name, sign, value = pair.groups()
    is_kept = _PLAIN.fullmatch(value) or not _is_secret(name)
    return f"{name}{sign}{value if is_kept else HIDDEN}"


def _is_secret(name: str) -> bool:
    return looks_secret(name.rpartition(".")[2].replace("-", "_"))
