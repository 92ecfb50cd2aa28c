"""A preflight by itself: on this host, in the allocation at hand, or in one asked for now."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import ConfigError, SlurmError
from hpc_train.plan.gpus_given import gpus_of_job
from hpc_train.plan.hostlist import expand
from hpc_train.preflight.options import PreflightRequest
from hpc_train.preflight.run_preflight import run_preflight
from hpc_train.preflight.verdict import Verdict
from hpc_train.slurm.command import is_available
from hpc_train.slurm.command import run as run_slurm
from hpc_train.slurm.jobs import PendingJob, job_details, pending_job
from hpc_train.slurm.nodes import down_nodes_for, known_nodes, told_by_reason
from hpc_train.slurm.partitions import check_partition
from hpc_train.slurm.pending import Asked, explain_pending, explain_waiting, never_starts
from hpc_train.slurm.refusals import UNAVAILABLE, refusal_error
from hpc_train.slurm.reservations import is_reserved, known_reservations
from hpc_train.slurm.site import controller_down

FIRST_QUESTION_S = 2.0  # an allocation that is there sooner waits for nothing
QUESTIONS_APART_S = 10.0
QUESTIONS_EVERY_S = 60.0
_NO_NODES = "ask for less, or for another --partition (`sinfo -s`); nothing waits any more"


def preflight_here(
    config: PreflightConfig,
    environ: Mapping[str, str],
    *,
    gpus_per_node: int | None = None,
) -> Verdict:
    """Check the nodes of the allocation this process is in, or this host alone.

    Args:
        config: How carefully, and what is allowed.
        environ: Where SLURM_* and the user's NCCL_* are.
        gpus_per_node: Of the allocation; None asks Slurm.

    Raises:
        ConfigError: nothing can be written into the current folder, which all nodes must see.
    """
    nodes = expand(environ["SLURM_JOB_NODELIST"]) if environ.get("SLURM_JOB_ID") else []
    if gpus_per_node is None:
        # Inside salloc no variable tells (salloc(1)).
        gpus_per_node = gpus_of_job(job_details(environ["SLURM_JOB_ID"]).fields) if nodes else 0
    with _scratch(Path.cwd()) as out:
        request = PreflightRequest(
            nodes=tuple(nodes) or (socket.gethostname(),),
            folder=out,
            environ=environ,
            python=sys.executable,
            cwd=str(Path.cwd()),
            gpus_per_node=gpus_per_node,
            ranks_per_node=gpus_per_node or 1,
            is_local=not nodes,
            is_asked=True,
        )
        return run_preflight(config, request)


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    try:
        # A probe that hangs may write once more when it goes on.
        made = tempfile.TemporaryDirectory(
            prefix=".hpc-train-preflight-", dir=parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise ConfigError(
            f"{parent} cannot be written: {error.strerror}",
            "start it in a folder of yours that all nodes see",
        ) from error
    with made as out:
        yield Path(out)


def in_new_allocation(
    arguments: Sequence[str], nodes: int, salloc: Sequence[str], *, say: Callable[[str], None]
) -> int:
    """Ask Slurm for nodes with salloc and run this command again in them.

    Args:
        arguments: Of `hpc-train`; its command has to find that it is in an allocation.
        nodes: How many are asked for.
        salloc: Options of salloc.
        say: Told why and since when Slurm keeps it waiting, whenever that changes.

    Returns:
        The exit code of the command inside.

    Raises:
        SlurmError: when there is no Slurm here, or when the job could never start.
    """
    if not is_available("salloc"):
        raise SlurmError(
            "--nodes needs Slurm's salloc, which is not on this machine's PATH",
            "log in to a node of the cluster, or leave --nodes out to look at this host",
        )
    if said := controller_down(10):
        raise SlurmError(
            f"Slurm's controller does not answer: {said}",
            "`scontrol ping` tells when it is back; leave --nodes out to look at this host",
        )
    options = dict(word.removeprefix("--").split("=", 1) for word in salloc)
    try:
        _check(salloc, options, arguments[0])
    except SlurmError as error:
        raise SlurmError(_as_options(error.message), _as_options(error.hint)) from error
    say(f"asking Slurm for {nodes} node{'s' if nodes > 1 else ''}")
    # By its name squeue finds the job whose number salloc tells only in words.
    name = f"hpc-train-{arguments[0]}-{secrets.token_hex(4)}"
    again = [sys.executable, "-m", "hpc_train.cli", *arguments]
    asked = ["salloc", "--quiet", f"--job-name={name}", *salloc, *again]
    return _told_why_it_waits(subprocess.Popen(asked, env=dict(os.environ)), name, say)


def _check(salloc: Sequence[str], options: Mapping[str, str | None], command: str) -> None:
    check_partition(options)
    # What Slurm would refuse is asked of sbatch: salloc's words go to the terminal as they are.
    test = ["sbatch", "--test-only", *salloc, "--wrap=true"]
    if is_available() and (refused := run_slurm(test, timeout_s=30)).returncode:
        raise _refusal(refused.stderr, options, command)


# What a training has keys for is an option here; none is kept in reserve.
_OPTIONS = (
    ("slurm.nodes or --nodes", "--nodes"),
    ("slurm.partition (--partition)", "--partition"),
    ("slurm.nodes", "--nodes"),
    ("slurm.partition", "--partition"),
    ("slurm.gpus_per_node", "--gpus"),
    ("slurm.account", "--account"),
)


def _as_options(text: str) -> str:
    """A refusal of a submission in the words of this command."""
    for key, option in _OPTIONS:
        text = text.replace(key, option)
    return text


def _refusal(stderr: str, options: Mapping[str, str | None], command: str) -> SlurmError:
    """Why Slurm does not give the nodes, where a drained one keeps it from that, too."""
    out = down_nodes_for(options, known_nodes()) if UNAVAILABLE in stderr else {}
    if not out:
        return refusal_error(stderr, options)
    wait = "once an administrator has resumed them, the same again"
    return SlurmError(
        f"Slurm has no {options['nodes']} nodes to look at now: {told_by_reason(out)}",
        f"nothing has to be changed: {wait}; hpc-train {command} alone looks at this host",
    )


def _told_why_it_waits(
    process: subprocess.Popen[bytes], name: str, say: Callable[[str], None]
) -> int:
    said = ""
    wait_s = FIRST_QUESTION_S
    while True:
        try:
            return process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            waiting = pending_job(name)
        except KeyboardInterrupt:
            process.wait()  # it has had the Ctrl-C as well, and gives the allocation back
            raise
        if waiting is not None and (line := _why_waiting(waiting)) != said:
            say(line)
            said = line
            if never_starts(waiting.reason):
                process.terminate()  # salloc gives the job back (salloc(1), "SIGNALS")
                process.wait()
                raise SlurmError(f"Slurm would never start it: {line}", _NO_NODES)
        wait_s = min(max(2 * wait_s, QUESTIONS_APART_S), QUESTIONS_EVERY_S)


def _why_waiting(job: PendingJob) -> str:
    why = job.reason or "Slurm gives no reason yet"
    asked = Asked()
    if is_reserved(job.reason):
        asked = Asked(reservations=known_reservations(), now=time.time())
    if meaning := explain_pending(job.reason, job.job_id, asked) or explain_waiting(job.reason):
        why += f" ({meaning})"
    start = f"; Slurm expects it to start at {job.start}" if job.start else ""
    return f"job {job.job_id} waits since {job.submitted}: {why}{start}"
