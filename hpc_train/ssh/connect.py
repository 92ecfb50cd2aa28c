"""The ssh command: how it is called, what the shell behind it is told, what its words mean. Pure.

The command and no library: it reads the user's own ~/.ssh/config, known_hosts, keys, agent and jump
hosts. BatchMode has it fail where it would ask for something (ssh_config(5)); a connection that the
user keeps open (ControlMaster) is used.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence

from hpc_train.config.hosts import Host
from hpc_train.plan.plan import Plan
from hpc_train.plan.setup_watch import SHELL_ENDED
from hpc_train.plan.shell import environment_lines

CONNECT_S = 10
NODE = "hpc_train.ssh.node"
# BatchMode is not handed to the ssh of a jump host (ssh_config(5), ProxyJump), which would ask at
# the terminal: whatever it asks for, this answers no (ssh(1), SSH_ASKPASS_REQUIRE).
NEVER_ASK = {"SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "force"}
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": str(CONNECT_S),
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ClearAllForwardings": "yes",  # a forwarded port of the user's could be opened only once
    "RemoteCommand": "none",
    "LogLevel": "ERROR",
}
# Of the environment of the shell in which one launches: what is meant for the ranks. The rest
# (HOME, PATH, SSH_*) belongs to this machine. MASTER_* is decided by each step.
_FORWARDED = re.compile(r"(?:HPC_TRAIN|NCCL|GLOO|TORCH|UCX|OMP|MKL|PYTHON)[A-Z_0-9]*\Z")

_MOST_SLOTS = 16  # host:4 is mpirun's and Horovod's way to say so many processes
# ssh's words (OpenSSH's sshconnect.c, ssh.c), what they mean, and what to do; {} is the host.
_WORDS = (
    (
        "HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one that is known here",
        "`ssh-keygen -R {name}` if it was installed anew, then `ssh {typed}` once",
    ),
    (
        "Host key verification failed",
        "its host key is not known here",
        "`ssh {typed}` once, and compare the fingerprint",
    ),
    (
        "Permission denied|Too many authentication",
        "it lets nobody in {as_user}without a password",
        "`ssh-copy-id {typed}`, or name the user: USER@{name}; a password is never asked for",
    ),
    ("Could not resolve hostname", "no such host is known here", "correct its name"),
    (
        "Connection refused",
        "nothing there listens for ssh",
        "is sshd running? On another port: {name}:PORT",
    ),
    (
        "timed out|No route to host|unreachable|closed by|reset by",
        "it does not answer",
        "`ssh {typed} true` has to work; leave the host out, or bring it back",
    ),
    (
        r"No module named '?hpc_train",
        "its Python ({python}) has no hpc-train",
        "install it there; or env.venv, env.conda or env.setup name an environment that has it",
    ),
    (
        r"bash: .*(?:No such file|command not found|not found|Permission denied)",
        "there is no {python}",
        "env.venv, env.conda or env.setup in the config name the environment of the hosts",
    ),
)


def ssh_argv(host: Host, connect_s: int = CONNECT_S) -> list[str]:
    """The command that runs bash on a host; what it is to do comes through its standard input.

    So nothing has to be quoted for the login shell, whichever it is, and no value is seen in `ps`.
    """
    options = {**_OPTIONS, "ConnectTimeout": str(connect_s)}
    words = [f"-o{name}={value}" for name, value in options.items()]
    user = ["-l", host.user] if host.user else []
    port = ["-p", str(host.port)] if host.port else []
    return ["ssh", "-T", *words, *user, *port, host.name, "bash -s"]


def forwarded(environ: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """What the hosts get of the environment here."""
    names = {name for name in environ if _FORWARDED.match(name)} | set(plan.shell.passthrough)
    return {name: environ[name] for name in sorted(names) if name in environ}


def opening(plan: Plan, environ: Mapping[str, str], words: Sequence[str] = ()) -> str:
    """What bash on a host reads first; its standard input is then that of `hpc_train.ssh.node`.

    The lines of `env` read nothing of it: bash takes no more from a pipe than it needs.
    """
    shell = dataclasses.replace(plan.shell, passthrough=[])
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environ.items()]
    workdir = shlex.quote(plan.workdir)
    argv = shlex.join([shell.python, "-m", NODE, *words])
    lines = [
        *exports,
        f"cd {workdir} || {{ echo hpc-train: no folder {workdir} >&2; exit 1; }}",
        *environment_lines(shell),
    ]
    return "\n".join(["{", *lines, "} </dev/null", f"exec {argv}", ""])


def why_not(host: Host, python: str, said: str) -> tuple[str, str]:
    """What is wrong and what to do, where a host did not come to run our program."""
    as_user = f"as {host.user} " if host.user else ""
    if host.port and "Connection refused" in said:
        why = f"nothing there listens for ssh on port {host.port}, as in {host.name}:{host.port}"
        slots = f"GPUs a host are --gpus {host.port}, and a host is named without a number; or "
        fix = f"{host.name}:PORT is the port of its sshd"
        return why, slots + fix if host.port <= _MOST_SLOTS else fix
    for pattern, why, fix in _WORDS:
        if re.search(pattern, said):
            names = {"name": host.name, "typed": host.typed, "python": python, "as_user": as_user}
            return why.format(**names), fix.format(**names)
    ours = re.search(r"hpc-train: (.+)", said)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = ours[1] if ours else (lines[-1][:200] if lines else "it says nothing")
    if ours and ours[1].startswith("no folder"):
        return f"there is {last}", "the hosts share the folder of the code: a shared file system"
    if ours and ours[1].startswith(f"error: {SHELL_ENDED}"):
        ended = ours[1].removeprefix("error: ").partition("; fix: ")[0]
        *_, before = ["", *filter(str.strip, said[: ours.start()].splitlines())]  # why it did so
        last = f"{before.strip()[:200]} ({ended})" if before else ended
    return f"nothing can be started there: {last}", f"`ssh {host.typed} bash -s` has to work"
