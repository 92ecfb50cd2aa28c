"""MPI's starters in front of a training: what is left of them where hpc-train starts the ranks.

Sources: mpirun(1) of Open MPI, mpiexec of MPICH (Hydra) and of Intel MPI.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hpc_train.config.meant_words.near_files import SCRIPTS
from hpc_train.plan.translation import Translation

STARTERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prun")
_ALL = ("n", "np", "c")
_A_NODE = ("N", "npernode", "ppn", "perhost", "ntasks-per-node")
_HOSTS = ("H", "host", "hosts")
_FILES = ("hostfile", "machinefile", "machine-file", "default-hostfile", "f", "rankfile")
_TWO = ("mca", "gmca", "prtemca", "pmixmca", "env", "genv")  # take a name and a value
_BINDS = ("bind-to", "map-by", "rank-by", "npersocket", "cpus-per-proc", "cpus-per-rank")
_ONE = (
    *("wdir", "wd", "prefix", "output", "output-filename", "timeout", "launcher", "bootstrap"),
    *("iface", "stdin", "x", "genvlist", "envlist", "outfile-pattern", "errfile-pattern"),
)
_OF_MPI = "left out: it is of MPI, which starts nothing here"
_READS = (
    "hpc-train starts the ranks, without MPI: a script that asks MPI for its rank reads RANK,"
    " WORLD_SIZE and LOCAL_RANK in the place of MPI.COMM_WORLD, OMPI_COMM_WORLD_RANK or PMI_RANK,"
    " and leaves MASTER_ADDR and MASTER_PORT as they are set"
)


def without_mpi(
    program: str, words: list[str], made: Translation, variable: Callable[[str, str], None]
) -> list[str]:
    """The command behind `mpirun -np 8`.

    Args:
        program: The starter.
        words: What follows it.
        made: Gets the number of ranks, and what became of each option.
        variable: Takes the name and the value of a variable for the ranks.
    """
    if not any("python" in it or it.endswith((".py", *SCRIPTS)) for it in words):
        made.refuse(program, "starts no training that is known: put it into env.setup")
        return []
    made.say(program, _READS)
    while words and words[0].startswith("-"):
        typed, has_value, value = words[0].partition("=")
        name, words = typed.lstrip("-"), words[1:]
        if name in _TWO and len(words) > 1:
            pair, words = words[:2], words[2:]
            if name.endswith("env"):
                variable(*pair)
            else:
                made.say(" ".join([typed, *pair]), _OF_MPI)
            continue
        if not has_value and name in (*_ALL, *_A_NODE, *_HOSTS, *_FILES, *_BINDS, *_ONE):
            value, words = (words[0], words[1:]) if words else ("", [])
        _option(typed, name, value, made, variable)
    _count_nodes(made)
    if not made.numbers:
        made.say(program, "it starts as many ranks as it has slots: write --nodes and --gpus")
    return words


def _count_nodes(made: Translation) -> None:
    """How many nodes have so many ranks, where both are said and the nodes are not."""
    total, a_node = made.numbers.get("all_ranks", 0), made.numbers.get("ranks", 0)
    if not (total and a_node) or "nodes" in made.numbers:
        return
    if total < a_node:
        del made.numbers["ranks"]
    elif total % a_node:
        why = "each node has as many ranks: choose numbers that divide"
        made.refuse(f"{total} ranks, {a_node} a node", why)
    else:
        made.numbers["nodes"] = total // a_node


def _option(
    typed: str, name: str, value: str, made: Translation, variable: Callable[[str, str], None]
) -> None:
    word = f"{typed} {value}".strip()
    if name in _ALL:
        made.number(word, "all_ranks", value)
    elif name in _A_NODE:
        made.number(word, "ranks", value)
    elif name == "pernode":
        made.number(word, "ranks", "1")
    elif name in _HOSTS and "$" not in value:
        hosts = dict.fromkeys(re.sub(r":\d+\Z", "", it) for it in value.split(","))
        made.number(word, "nodes", str(len(hosts)))
        by_ssh = f"by ssh: hpc-train launch --hosts {','.join(hosts)}"
        if hosts.keys() - {"localhost"}:
            made.say(word, f"left out: Slurm chooses the nodes; {by_ssh}")
    elif name in (*_HOSTS, *_FILES):
        made.say(word, "left out: Slurm chooses the nodes; write their number as --nodes")
    elif name == "x" and "=" in value:
        variable(*value.split("=", 1))
    elif name == "x" and value == "PATH":
        made.say(word, "left out: env.venv, env.conda or env.modules bring the programs")
    elif name == "x" and value.isidentifier():
        _pass_on(word, value, made)
    else:
        made.say(word, "left out: Slurm binds the ranks" if name in _BINDS else _OF_MPI)


def _pass_on(word: str, name: str, made: Translation) -> None:
    """A variable of the shell that submits."""
    listed = made.config.get("env.passthrough", [])
    made.config["env.passthrough"] = [*listed, *([name] if name not in listed else [])]
    made.say(word, "env.passthrough: its value is that of the shell that submits")
