"""A cluster to try things on by hand: ``python -m tests.cluster up``, ``down``, ``status``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

from tests.cluster import registry
from tests.cluster.accounting import ensure_template
from tests.cluster.cluster import Cluster
from tests.cluster.layout import Layout
from tests.cluster.requirements import missing
from tests.cluster.shell import ClusterError
from tests.cluster.spec import ClusterSpec


def main(argv: list[str]) -> int:
    """Run one command.

    Returns:
        The exit code.
    """
    args = _parser().parse_args(argv)
    lacking = missing()
    if lacking:
        print(f"no real Slurm here: {lacking}", file=sys.stderr)
        return 1
    try:
        return int(args.function(args))
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="raise a cluster that stays until it is taken down")
    up.add_argument(
        "field", nargs="*", type=_field, help="field=value of ClusterSpec, such as grace_s=5"
    )
    up.set_defaults(function=_up)
    down = commands.add_parser("down", help="take clusters down, by their numbers")
    down.add_argument("index", nargs="*", type=int, help="any cluster, whoever owns it")
    down.add_argument("--all", action="store_true", help="all that were raised by hand, by anybody")
    down.set_defaults(function=_down)
    status = commands.add_parser("status", help="show every cluster of this machine")
    status.set_defaults(function=_status)
    prepare = commands.add_parser("prepare", help="make the database template, once a machine")
    prepare.set_defaults(function=_prepare)
    return parser


def _field(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if name not in {field.name for field in dataclasses.fields(ClusterSpec)}:
        raise argparse.ArgumentTypeError(f"ClusterSpec has no field {name!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _up(args: argparse.Namespace) -> int:
    cluster = Cluster(ClusterSpec(**dict(args.field)), detached=True)
    cluster.up()
    print(f"export SLURM_CONF={cluster.layout.slurm_conf}")
    print(f"srun --nodes={len(cluster.nodes)} --gres=gpu:1 hostname")
    return 0


def _down(args: argparse.Namespace) -> int:
    known = {layout.index: layout for layout in registry.existing()}
    by_hand = [
        it for it in known if registry.read_state(known[it].root).get("owner", {}).get("detached")
    ]
    chosen = by_hand if args.all else args.index
    strange = [str(index) for index in chosen if index not in known]
    if strange or not (chosen or args.all):
        _status(args)
        what = f"there is no cluster {', '.join(strange)}" if strange else "which of them?"
        print(f"{what} Write: down NUMBER..., or down --all for all by hand", file=sys.stderr)
        return 2
    for index in chosen:
        registry.remove(known[index])
        print(f"cluster {index} is down")
    return 0


def _status(args: argparse.Namespace) -> int:
    for layout in registry.existing():
        print(f"cluster {layout.index}: {_describe(layout)}")
    return 0


def _describe(layout: Layout) -> str:
    owner = registry.read_state(layout.root).get("owner")  # before it may be taken down
    if owner is None:
        return "not usable (it is being raised, or taken down)"
    try:
        cluster = Cluster.attach(layout)
        states = ", ".join(f"{name} {state}" for name, state in cluster.node_states().items())
    except ClusterError as error:
        return f"not usable ({str(error).splitlines()[0]})"
    whose = "until taken down" if owner["detached"] else f"owned by process {owner['pid']}"
    return f"SLURM_CONF={layout.slurm_conf} ({whose}): {states}"


def _prepare(args: argparse.Namespace) -> int:
    ensure_template(Layout(0, "localhost"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
