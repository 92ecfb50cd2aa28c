"""Whether all hosts can be reached, and have what the ranks need: asked before anything starts."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hpc_train import __version__
from hpc_train.config.hosts import Host, read_hosts
from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.plan.plan import Plan
from hpc_train.ssh.connect import CONNECT_S, NEVER_ASK, forwarded, opening, why_not
from hpc_train.ssh.join import way_to
from hpc_train.ssh.node import MARK

LOOK_S = 60.0  # a host's modules or conda may take their time
ASK_S = 5


def check_hosts(plan: Plan, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Look at every host of a plan whose folders are settled, all at once.

    Returns:
        What a person should know though nothing is wrong.

    Raises:
        CheckError: the first host with which it cannot begin, why, and what to do; one of two names
            of the same machine.
    """
    hosts = read_hosts(plan.hosts)
    missing = [name for name in plan.shell.passthrough if name not in environ]
    if missing:
        raise CheckError(
            f"env.passthrough: {missing[0]} is not set here", f"export {missing[0]}=..."
        )
    with _shared_file(Path(plan.runs_dir)) as file, ThreadPoolExecutor(len(hosts)) as pool:
        text = opening(plan, forwarded(environ, plan), ("look", str(file)))
        said = list(pool.map(lambda host: _ask(host, text, LOOK_S), hosts))
        token = file.read_text(encoding="utf-8")
    machines: dict[str, str] = {}
    notes = []
    for host, words in zip(hosts, said, strict=True):
        seen = _answer(words)
        if seen is None:
            why, fix = why_not(host, plan.shell.python, words)
            raise CheckError(f"host {host.name}: {why}", fix)
        notes += judge_host(host, seen, plan, token)
        if seen["machine"] in machines:
            raise CheckError(
                f"host {host.name}: it is the same machine as {machines[seen['machine']]}",
                "name each machine once",
            )
        machines[seen["machine"]] = host.name
    return tuple(notes)


def judge_host(host: Host, seen: Mapping[str, Any], plan: Plan, token: str) -> list[str]:
    """Notes on one host, by what `hpc_train.ssh.node.look` says of it. Pure.

    Raises:
        CheckError: the ranks cannot begin there.
    """
    where = f"host {host.name}"
    if seen["token"] != token:
        raise CheckError(
            f"{where}: it does not see the runs of this machine in {plan.runs_dir}",
            "all hosts share that folder: set runs_dir to one on a shared file system",
        )
    if seen["version"] != __version__:
        raise CheckError(
            f"{where}: its hpc-train is {seen['version']}, and this one is {__version__}",
            "install the same one there; a venv on the shared file system is the same everywhere",
        )
    if not seen["torch"]:
        raise CheckError(
            f"{where}: its Python ({plan.shell.python}) has no torch", "install it there"
        )
    wanted, there = plan.shape.gpus_per_node, int(seen["gpus"])
    if there < wanted:
        hint = f"--gpus {there}, or leave {host.name} out" if there else f"leave {host.name} out"
        raise CheckError(
            f"{where}: it has {there} GPUs, and slurm.gpus_per_node is {wanted}",
            f"every host starts as many ranks: {hint}; trainer.accelerator=cpu needs none",
        )
    if wanted and there > wanted:
        return [f"{where} has {there} GPUs, of which {wanted} are used: every host starts as many"]
    return []


def silent_hosts(named: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
    """Those of `nodes` that ssh does not reach; none where it does not reach most."""
    hosts = [host for host in read_hosts(named) if host.name in nodes]
    with ThreadPoolExecutor(len(hosts)) as pool:
        said = list(pool.map(lambda host: _ask(host, f"echo {MARK}\n", 4.0 * ASK_S, ASK_S), hosts))
    silent = tuple(
        host.name for host, words in zip(hosts, said, strict=True) if MARK.strip() not in words
    )
    return () if len(hosts) > 1 and 2 * len(silent) > len(hosts) else silent


def _ask(host: Host, text: str, limit_s: float, connect_s: int = CONNECT_S) -> str:
    """Both streams of a bash there; without an answer in time, that it does not answer."""
    argv = way_to(host, connect_s)
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, **NEVER_ASK},
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise HpcTrainError(
            "there is no ssh on this machine's PATH", "apt install openssh-client"
        ) from error
    except subprocess.TimeoutExpired:
        return f"timed out after {limit_s:.0f} s"
    return done.stdout


def _answer(words: str) -> dict[str, Any] | None:
    for line in words.splitlines():
        if line.startswith(MARK):
            answer: dict[str, Any] = json.loads(line[len(MARK) :])
            return answer
    return None


@contextlib.contextmanager
def _shared_file(folder: Path) -> Iterator[Path]:
    """A file with a word that nobody knows in a folder, which is made for the time of the block."""
    absent = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    file = folder / f".hosts-{secrets.token_hex(8)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(secrets.token_hex(16), encoding="utf-8")
    except OSError as error:
        raise CheckError(
            f"runs_dir: cannot write {error.filename}: {error.strerror}",
            "set runs_dir to a folder on a shared file system where you may write",
        ) from error
    try:
        yield file
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
            for made in absent:
                made.rmdir()
