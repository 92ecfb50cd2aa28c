"""A preflight by itself: on this host, in the allocation at hand, or in one asked for now."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import ConfigError, SlurmError
from hpc_train.network.preflight import Verdict, run_preflight_local
from hpc_train.slurm.command import is_available

__all__ = ["explain_log", "preflight_here", "preflight_in_new_allocation"]


def preflight_here(
    config: PreflightConfig, environ: Mapping[str, str], folder: Path | None
) -> Verdict:
    """Check the nodes of the allocation this process is in, or this host alone.

    Args:
        config: How carefully, and what is allowed.
        environ: Where SLURM_* and the user's NCCL_* are.
        folder: On a file system that all nodes see; the current one's `.hpc-train-preflight-*` by
            default, removed afterwards.
    """
    from hpc_train.plan.hostlist import expand
    from hpc_train.supervise.launch import NOT_INHERITED
    from hpc_train.supervise.probes import preflight_options, run_probes

    nodes = expand(environ["SLURM_JOB_NODELIST"]) if environ.get("SLURM_JOB_ID") else []
    is_nccl = bool(environ.get("SLURM_JOB_GPUS") or environ.get("SLURM_GPUS_ON_NODE"))
    with tempfile.TemporaryDirectory(
        prefix=".hpc-train-preflight-", dir=folder or Path.cwd()
    ) as out:
        options = preflight_options(
            config,
            nodes or [socket.gethostname()],
            Path(out),
            wanted=len(nodes) or 1,
            is_nccl=is_nccl or not nodes,
            is_local=not nodes,
            environ=environ,
        )
        if not nodes:
            return run_preflight_local(options, environ)
        clean = {key: value for key, value in environ.items() if not NOT_INHERITED.match(key)}
        return run_probes(options, sys.executable, clean, str(Path.cwd()))


def preflight_in_new_allocation(arguments: Sequence[str], salloc: Sequence[str]) -> int:
    """Ask Slurm for nodes with salloc and run this command again in them.

    Args:
        arguments: Of `hpc-train preflight`, without those that ask for nodes.
        salloc: Options of salloc.

    Returns:
        The exit code of the preflight inside.

    Raises:
        SlurmError: when there is no Slurm here.
    """
    if not is_available("salloc"):
        raise SlurmError(
            "--nodes needs Slurm's salloc, which is not on this machine's PATH",
            "log in to a node of the cluster, or leave --nodes out to look at this host",
        )
    again = [sys.executable, "-m", "hpc_train.cli", "preflight", *arguments]
    done = subprocess.run(["salloc", "--quiet", *salloc, *again], env=dict(os.environ), check=False)
    return done.returncode


def explain_log(path: Path) -> list[str]:
    """What an NCCL log of a user's says, line by line.

    Raises:
        ConfigError: when it cannot be read, or is no NCCL log.
    """
    from hpc_train.network.nccl_log import read_nccl_log
    from hpc_train.network.nccl_report import explain

    try:
        return list(explain(read_nccl_log(path)))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
