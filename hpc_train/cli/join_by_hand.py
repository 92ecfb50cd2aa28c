"""`run --node-rank K --nodes N --master HOST:PORT`, and the lines for it that `render` prints."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hpc_train import api
from hpc_train.config.flags import FLAGS
from hpc_train.config.hosts import bracketed, family_of
from hpc_train.errors import CheckError, UsageError
from hpc_train.plan import env_names
from hpc_train.plan.by_hand import by_env, by_torchrun, read_master

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig

F = TypeVar("F", bound=Callable[..., Any])
master_option = click.option(
    "--master", metavar="HOST:PORT", help="The first machine, and a port that is free there."
)


def join_options(function: F) -> F:
    """`--node-rank` and `--master`."""
    rank = click.option(
        "--node-rank",
        type=click.IntRange(min=0),
        help="By hand on each of --nodes machines: the number of this one, from 0.",
    )
    return rank(master_option(function))


class Place:
    """This machine's place among those that are started by hand."""

    def __init__(self, rank: int, nodes: int, master: tuple[str, int]) -> None:
        self.rank = rank
        self.nodes = nodes
        self.master = master
        if rank >= nodes:
            raise UsageError(
                f"--node-rank {rank} of --nodes {nodes}", f"they are counted 0 to {nodes - 1}"
            )

    @classmethod
    def of(
        cls, rank: int | None, nodes: int | None, master: str | None, environ: Mapping[str, str]
    ) -> Place | None:
        """What is typed, else what `render --launcher env` sets; None where neither says any.

        Raises:
            UsageError: a part of it is missing, or cannot be meant.
        """
        names = ("NODE_RANK", "NNODES", "MASTER_ADDR", "MASTER_PORT")
        if rank is None and master is None and all(name in environ for name in names):
            if not all(environ[name].isdigit() for name in (*names[:2], names[3])):
                raise UsageError(
                    f"NODE_RANK={environ['NODE_RANK']}, NNODES={environ['NNODES']} and"
                    f" MASTER_PORT={environ['MASTER_PORT']} have to be numbers",
                    "hpc-train render --launcher env --hosts a,b CFG prints them",
                )
            typed = f"{bracketed(environ['MASTER_ADDR'])}:{environ['MASTER_PORT']}"
            return cls(int(environ["NODE_RANK"]), int(environ["NNODES"]), read_master(typed))
        if rank is None and master is None:
            return None
        if rank is None or master is None or nodes is None:
            raise UsageError(
                "--node-rank, --nodes and --master belong together",
                "hpc-train run --node-rank 0 --nodes 2 --master a:29500 CFG",
            )
        return cls(rank, nodes, read_master(master))


def run_joined(loaded: LoadedConfig, place: Place, run: Callable[[LoadedConfig], int]) -> int:
    """Be one of the machines: the first trains on all of them, the others serve it.

    Args:
        run: Trains in the foreground.
    """
    import hashlib

    from hpc_train.ssh.join import gathered, joined

    plan = api.plan(loaded)
    host, port = place.master
    folder = Path(plan.runs_dir).expanduser() / ".join" / f"{host}-{port}"
    same = f"{plan.config_hash} {plan.shape}"
    about = hashlib.sha256(same.encode()).hexdigest()[:16]
    if place.rank > 0:
        click.echo(f"node {place.rank} of {place.nodes}: serves the first until its end", err=True)
        joined(folder, place.rank, place.master, about)
        return 0
    _check_port(host, port)

    def say(text: str) -> None:
        click.echo(text, err=True)

    with gathered(folder, place.nodes, place.master, about, say) as names:
        loaded.config.hosts = names
        os.environ[env_names.JOIN_DIR] = str(folder)
        os.environ[env_names.JOIN_MASTER] = f"{host}:{port}"
        return run(loaded)


def _check_port(host: str, port: int) -> None:
    """Whether the ranks can meet there."""
    import socket

    try:
        with socket.socket(family_of(host), socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen()
    except OSError as error:
        where = f"--master {bracketed(host)}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise CheckError(
                f"{where}: another process has that port on this machine",
                "give another port, the same on all",
            ) from error
        if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
            raise CheckError(
                f"{where}: that is no address of this machine, and node 0 is started here",
                "name this machine, as the others reach it; or start it with its own --node-rank",
            ) from error
        raise CheckError(f"{where}: {error.strerror}", "a port above 1023") from error


def lines_for(
    loaded: LoadedConfig,
    launcher: str,
    master: str | None,
    cfg: Path,
    overrides: Sequence[str],
    flags: Mapping[str, Any],
) -> str:
    """What `render --launcher` prints.

    Raises:
        UsageError: no hosts are named, or `master` is not HOST:PORT.
    """
    if not loaded.config.hosts:
        raise UsageError("--launcher needs the machines", "--hosts a,b,c")
    meeting = read_master(master) if master else None
    plan = api.plan(loaded)
    if launcher == "torchrun":
        return by_torchrun(plan, meeting)
    words = [str(cfg), *overrides, f"--nodes={plan.shape.nodes}"]
    words += [
        f"{flag.option}={flags[name]}"
        for name, flag in FLAGS.items()
        if name not in ("nodes", "hosts") and flags.get(name) is not None
    ]
    arguments = flags.get("arguments")
    return by_env(plan, meeting, [*words, *(["--", *arguments] if arguments is not None else [])])
