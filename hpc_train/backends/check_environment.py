"""What the submitting host can tell of `env`, before a job fails on it without a line of Python."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.config.origins import Origins
from hpc_train.config.schema import ContainerConfig, EnvConfig
from hpc_train.plan.container import is_file
from hpc_train.plan.setup_folder import moved_shell
from hpc_train.plan.setup_watch import ending_line, is_of_venv, only_venv
from hpc_train.plan.shell import shell_plan
from hpc_train.runs.installed import install_command

LIMIT_S = 30.0
ABSENT = 3
FIND_US = f"import importlib.util as u, sys; sys.exit(0 if u.find_spec('hpc_train') else {ABSENT})"
# A node may have what this host lacks: without the tool here, the job itself has to tell.
IF_MODULE = ("type module >/dev/null 2>&1 || . /etc/profile", "type module >/dev/null || exit 0")
# A line that is part of a larger command: a condition, a loop, a function, a here-document.
_PART = re.compile(
    r"^\s*(?:if|for|while|until|case|select|function)\b|[{(\\]\s*$|<<|^\s*\w+\s*\(\)"
)
_INSTALLS = re.compile(r"\b(?:pip3?|(?:micro)?mamba|conda|poetry|uv)\s+(?:install|sync|add)\b")
_PARTS = ("bin", "lib", "lib64")  # of a venv
IF_CONDA = ("type conda >/dev/null 2>&1 || exit 0",)


def check_environment(
    env: EnvConfig, workdir: Path, environ: Mapping[str, str], origins: Origins
) -> None:
    """Refuse what is wrong here and would be on the nodes, too.

    Args:
        env: The section of the config; lines of `setup` may set what `passthrough` names.
        workdir: The folder the job starts in.
        environ: Of the shell that submits; sbatch hands it on (sbatch(1), --export).
        origins: For the file and line of an error.

    Raises:
        ConfigError: a variable of `passthrough` is not set, bash cannot read `setup`, `venv` is
            no environment, hpc-train is not in it or in the one that `setup` activates, or
            `module load` or `conda activate` fails.
    """
    lines = "\n".join(env.setup)
    for name in env.passthrough:
        if name not in environ and name not in env.variables and name not in lines:
            hint = f"export {name}=... in the shell that submits, or take it from the list"
            raise origins.error("env.passthrough", f": {name} is not set here", hint)
    check_setup(env, origins)
    _check_sourced(env.setup, workdir, origins)
    if env.venv:
        _check_venv(env, workdir, environ, origins)
    _check_activated(env, workdir, environ, origins)
    _check_tools(env, workdir, environ, origins)


def check_setup(env: EnvConfig, origins: Origins) -> None:
    """Have bash read the lines of `setup` without running them.

    Raises:
        ConfigError: it cannot, or a line ends the shell.
    """
    if not env.setup:
        return
    code, said = _run(["bash", "-n", "-c", "\n".join(env.setup) + "\n"], Path("/"), os.environ)
    if code:
        reason = said.splitlines()[0].removeprefix("bash: ").removeprefix("-c: ")
        raise origins.error("env.setup", f"is no shell that bash can read: {reason}", "correct it")
    if found := ending_line(env.setup):
        place, command = found
        why = f": `{command}` ends the job's shell, so no training begins"
        hint = "leave that line out: training begins behind the last line of env.setup"
        raise origins.error(f"env.setup.{place}", why, hint)


def _check_sourced(lines: Sequence[str], workdir: Path, origins: Origins) -> None:
    """Refuse `source FILE` of a file that is not there: bash goes on behind it without a word."""
    for index, path in _absent_sources(lines, workdir):
        if path.parent.is_dir():
            hint = "correct it; what only the nodes have: [ -e FILE ] && source FILE"
            raise origins.error(f"env.setup.{index}", f": {path} is not there", hint)


def unseen_sources(lines: Sequence[str], workdir: Path) -> list[str]:
    """A note of each file that a line sources and that only the nodes may have."""
    return [
        f"env.setup.{index}: {path} is not there on this host; on a node without it the job"
        f" {'ends before its training' if is_of_venv(lines[index]) else 'goes on behind that line'}"
        for index, path in _absent_sources(lines, workdir)
        if not path.parent.is_dir()
    ]


def _absent_sources(lines: Sequence[str], workdir: Path) -> Iterator[tuple[int, Path]]:
    """The lines that are `source FILE` of a file that this host has not."""
    if any(_PART.search(line) for line in lines):
        return  # whether it is reached, and what it means there, only bash can tell
    for index, line in enumerate(lines):
        found = re.fullmatch(r"\s*(?:source|\.)\s+([\w@%+=:,./~-]+)\s*", line)
        if found is None or any(re.match(r"\s*(cd|pushd)\b", other) for other in lines[:index]):
            continue
        path = workdir / Path(found[1]).expanduser()
        is_on_path = "/" not in found[1] and shutil.which(found[1], os.F_OK)  # bash(1), `source`
        if not path.exists() and not is_on_path:
            yield index, path


def check_image(container: ContainerConfig, workdir: Path, origins: Origins) -> None:
    """Refuse an image that is not there, as far as this host sees the folder that it should be in.

    Raises:
        ConfigError: it is not there; an address of a registry is not looked at.
    """
    image = container.image
    if not image or not is_file(container):
        return
    path = workdir / Path(image).expanduser()
    if not path.exists() and (path.parent.is_dir() or path.parent.parent.is_dir()):
        hint = "name the file; a relative path starts in the working folder"
        if ":" in path.name:  # NAME:TAG
            pull = f"{container.runtime} pull image.sif docker://{image}"
            hint = f"fetch it from its registry once: {pull}, and name image.sif"
        raise origins.error("container.image", f": there is no {path}", hint)


def _check_venv(
    env: EnvConfig, workdir: Path, environ: Mapping[str, str], origins: Origins
) -> None:
    folder = workdir / Path(env.venv or "").expanduser()
    if not (folder / "bin/activate").is_file():
        if any(it.is_dir() for it in (folder.parent, *folder.parents[:-1])):  # seen from here
            message = f"is {env.venv}, and there is no {folder}/bin/activate"
            raise origins.error("env.venv", message, _venv_meant(folder))
        return
    if env.modules or env.conda or env.setup:
        return  # they may change what its Python finds
    python = [str(folder / "bin/python"), "-c", FIND_US]
    if _run(python, workdir, {**environ, **env.variables})[0] == ABSENT:
        raise origins.error(
            "env.venv", f"is {env.venv}, which has no hpc-train", _install_into(folder)
        )


def _check_activated(
    env: EnvConfig, workdir: Path, environ: Mapping[str, str], origins: Origins
) -> None:
    """The same of a venv that a line of `setup` activates, as far as nothing else has a say."""
    place = None if env.modules or env.conda or env.venv else only_venv(env.setup)
    if place is None:
        return
    line = env.setup[place].strip()
    file = workdir / Path(os.path.expandvars(line.split(maxsplit=1)[1])).expanduser()
    if "$" in str(file) or not file.is_file():
        return
    # By its own text, which may set more than the PATH.
    probe = ["bash", "-c", '. "$1" && exec python -c "$2"', "bash", str(file), FIND_US]
    if _run(probe, workdir, {**environ, **env.variables})[0] == ABSENT:
        what = f"is `{line}`, a venv that has no hpc-train"
        raise origins.error(f"env.setup.{place}", what, _install_into(file.parent.parent))


def _install_into(venv: Path) -> str:
    """What installs hpc-train into it; one that uv made has no pip of its own."""
    pip = [f"{venv}/bin/pip"]
    if not Path(pip[0]).exists():
        pip = [sys.executable, "-m", "pip", "--python", f"{venv}/bin/python"]
    return install_command(pip=shlex.join(pip))


def _venv_meant(folder: Path) -> str:
    """What to write for a folder, or a file, that is no venv: the one around it, or one in it."""
    if (folder / "conda-meta").is_dir():
        return f"it is an environment of conda: write env.conda={shlex.quote(str(folder))}"
    around = (it for it in folder.parents if folder.relative_to(it).parts[0] in _PARTS)
    if venv := next(filter(_is_venv, around), None):
        return f"write the folder itself: {_as_word(venv)}"
    if folder.is_file():
        return "write the folder that has bin/activate, and not a file in it"
    within = []
    with contextlib.suppress(OSError):
        within = sorted(it for it in folder.iterdir() if _is_venv(it))
    if within:
        one = "the folder that has bin/activate" if len(within) == 1 else "one of its folders"
        return f"write {one}: {_as_word(within[0])}"
    new = f"; `python3 -m venv {folder}` makes one" if folder.name not in _PARTS else ""
    return f"write the folder that has bin/activate{new}"


def _as_word(venv: Path) -> str:
    return f"env.venv={shlex.quote(str(venv))}"


def _is_venv(folder: Path) -> bool:
    """Also one that virtualenv made before 20, without pyvenv.cfg; conda's base is none."""
    return (folder / "bin/activate").is_file() and not (folder / "conda-meta").is_dir()


def _check_tools(
    env: EnvConfig, workdir: Path, environ: Mapping[str, str], origins: Origins
) -> None:
    """Run the very lines of the job's script here, each tool's only where it is here."""
    modules, conda = (
        shell_plan(part, workdir=".", python="python").setup
        for part in (EnvConfig(modules=env.modules), EnvConfig(conda=env.conda))
    )
    lines = [*(IF_MODULE if modules else ()), *modules, *(IF_CONDA if conda else ()), *conda]
    code, said = _run(["bash", "-c", "\n".join(lines)], workdir, environ) if lines else (0, "")
    if not code:
        return
    key = "env.conda" if "hpc-train: error: env.conda" in said else "env.modules"
    value = env.conda if key == "env.conda" else ", ".join(env.modules)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    tools = [line for line in lines if not line.startswith(("hpc-train: error: ", "fix: "))]
    words = tools or lines or ["it says nothing"]
    reason = next((line for line in words if re.search("error|not ?found", line, re.I)), words[0])
    see = "`conda env list`" if key == "env.conda" else "`module avail`"
    hint = f"{see} shows what there is; what only the nodes have, load in a line of env.setup"
    raise origins.error(key, f"is {value}, which fails here: {reason}", hint)


def installing_lines(setup: Sequence[str]) -> list[str]:
    """A note of each line that installs packages, while other nodes read that environment."""
    return [
        f"env.setup.{place} installs ({line.strip()}): every node does that, at every attempt, into"
        " one environment at once; install it once, before the submission"
        for place, line in enumerate(setup)
        if _INSTALLS.search(line)
    ]


def moving_lines(
    setup: Sequence[str], workdir: Path, environ: Mapping[str, str], *, is_copied: bool
) -> list[str]:
    """A note of a `cd`, behind which an old batch script had its training start.

    Args:
        setup: The lines of env.setup.
        workdir: The folder that it is submitted from.
        environ: Of the shell that submits.
        is_copied: Whether the run starts in a copy of that folder.
    """
    moved = moved_shell(setup, str(workdir), environ)
    if moved is None:
        return []
    line = f"env.setup.{moved.item}: `{moved.command}` moves the job's shell and not the training"
    begin = "the run's copy of the code" if is_copied else str(workdir)
    paths = f" ({moved.folder}/...)" if moved.folder else ""
    fix = f"write whole paths{paths}, or call os.chdir in your code"
    return [f"{line}, whose relative paths begin in {begin}: {fix}"]


def unchecked_tools(env: EnvConfig, environ: Mapping[str, str]) -> list[str]:
    """What `check_environment` has passed over, since this host has neither the tool nor a way to.

    A conda that a module brings is looked for with that module.
    """
    absent = {}
    if env.modules:
        absent["module"] = f"env.modules={','.join(env.modules)}"
    if env.conda:
        absent["conda"] = f"env.conda={env.conda}"
    asked = {"module": IF_MODULE[0], "conda": "true"}
    return [
        f"no {tool} on this host: whether {written} loads only the nodes can tell"
        for tool, written in absent.items()
        if not (tool == "conda" and env.modules)
        and _run(["bash", "-c", f"{asked[tool]}; type {tool} >/dev/null"], Path("/"), environ)[0]
    ]


def path_notes(env: EnvConfig) -> list[str]:
    """That `env.variables.PATH`, which is exported behind all else, lacks what the job starts."""
    path = env.variables.get("PATH")
    if path is None:
        return []
    python = shell_plan(env, workdir=".", python="").python  # of an environment that is activated
    absent = [it for it in ("srun", python) if it and shutil.which(it, path=path) is None]
    if not absent:
        return []
    fix = f"in its place a line of env.setup: export PATH={shlex.quote(path)}:$PATH"
    what = f"env.variables.PATH={path} takes the place of the whole PATH of the job, and has no"
    return [f"{what} {' and no '.join(absent)} on this host: {fix}"]


def _run(argv: Sequence[str], workdir: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and standard error; 0 where it cannot be run here, or takes too long."""
    try:
        done = subprocess.run(
            argv,
            cwd=workdir,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0, ""
    return done.returncode, done.stderr
