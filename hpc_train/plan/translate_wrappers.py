"""What stands around a training's command in a shell line: redirections, uv, a container. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from hpc_train.plan.translation import Translation

_OF_THE_SHELL = ("|", "|&", ">", ">>", ">|", ">&", "&>", "&>>", "||", "&", "2>&1")
_QUOTED = re.compile(r"('[^']*'|\"[^\"]*\")")
_NUMBERED = re.compile(r"(?<=\s)[012](?=>)")  # of a stream, in front of where it goes
_SYSTEM = ("/usr/bin", "/usr/local/bin", "/bin", "/opt/bin")
# What `TOOL run` makes ready, and where.
_RUNNERS = {
    "uv": ".venv",
    "pdm": ".venv",
    "rye": ".venv",
    "poetry": "`poetry env info --path`",
    "pipenv": "`pipenv --venv`",
    "hatch": "`hatch env find`",
}
_WITH_VALUE = {
    "uv": (
        "--with",
        "-p",
        "--python",
        "--project",
        "--extra",
        "--group",
        "--env-file",
        "--package",
    ),
    "apptainer": ("-H", "--home", "-W", "--workdir", "--pwd", "--cwd", "--overlay", "--env", "-S"),
}
_BINDS = ("-B", "--bind")


def without_streams(line: str) -> str:
    """Without the number of the stream in `2>&1` and `2> FILE`, which is no word of the command."""
    parts = _QUOTED.split(line)
    return "".join(_NUMBERED.sub("", it) if at % 2 == 0 else it for at, it in enumerate(parts))


def before_the_shells(words: list[str], made: Translation) -> list[str]:
    """The command without redirections, pipes and what runs beside it."""
    at = next((at for at, word in enumerate(words) if word in (*_OF_THE_SHELL, "<", "<<")), None)
    if at is None:
        return words
    word = " ".join(words[at:]).replace(">& 1", "2>&1")
    if words[at].startswith("<"):
        made.refuse(word, "a rank has no input: name the file as an argument of the script")
    else:
        made.say(word, "left out: logs are kept, hpc-train logs RUN")
    return words[:at]


def runner(program: str, words: list[str], made: Translation) -> list[str] | None:
    """The command behind `uv run` and others of the kind; None where it is none of them."""
    if program not in _RUNNERS or words[:1] != ["run"]:
        return None
    place = _RUNNERS[program]
    if place.startswith("`"):
        made.key(f"{program} run", "env.venv", "???", f"write the folder that {place} prints")
    else:
        made.key(f"{program} run", "env.venv", place)
    options, rest = _options(words[1:], _WITH_VALUE["uv"])
    if options:
        made.say(" ".join(options), f"left out: {program} makes the environment before the job")
    return rest


def container(program: str, words: list[str], made: Translation) -> list[str] | None:
    """The command behind `apptainer exec IMAGE`; None where it is none."""
    if program not in ("apptainer", "singularity") or words[:1] not in (["exec"], ["run"]):
        return None
    options, rest = _options(words[1:], (*_BINDS, *_WITH_VALUE["apptainer"]))
    if not rest:
        return []
    made.key(f"{program} {words[0]} {rest[0]}", "container.image", rest[0])
    if program == "singularity":
        made.config["container.runtime"] = program
    others: list[str] = []
    at = 0
    while at < len(options):
        name, _, value = options[at].partition("=")
        if name in _BINDS:
            value, at = (value, at) if value else (" ".join(options[at + 1 : at + 2]), at + 1)
            mounts = [*made.config.get("container.mounts", []), *value.split(",")]
            made.config["container.mounts"] = mounts
            made.say(f"{name} {value}", f"container.mounts: [{value}]")
        elif name != "--nv":  # the default, where there are GPUs
            others.append(options[at])
        at += 1
    if others:
        made.key(" ".join(others), "container.options", others)
    return rest[1:]


def python_of_venv(path: str, made: Translation) -> None:
    """A Python by its path is that of an environment, unless it is the system's."""
    folder, _, _ = path.replace("${HOME}", "~").replace("$HOME", "~").rpartition("/")
    if not folder.endswith("/bin") or folder in _SYSTEM or "$" in folder:
        return
    home = folder.removesuffix("/bin")
    made.key(path, "env.conda" if "/envs/" in home else "env.venv", home)


def _options(words: list[str], with_value: Collection[str]) -> tuple[list[str], list[str]]:
    """The options in front, with their values, and what follows them."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in with_value else 1
    return words[:at], words[at:][words[at : at + 1] == ["--"] :]
