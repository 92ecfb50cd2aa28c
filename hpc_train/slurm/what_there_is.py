"""What Slurm has in the place of a name that it refused: partitions, features, reservations."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hpc_train.config.words import did_you_mean, near_words
from hpc_train.errors import SlurmError
from hpc_train.plan.hostlist import expand, folded
from hpc_train.slurm.command import PATIENCE_S, run

MOST_SHOWN = 8
LONGEST = 80  # characters of a hostlist


@dataclass(frozen=True)
class _KnownNames:
    """How the names of an option are asked for.

    Attributes:
        refused: A pattern in Slurm's words.
        argv: What lists them.
        listed: Finds them there.
        written: Finds them in the option's value; raises ValueError where it has another form.
        none: What to do where there are none; `{of}` is where it was looked.
    """

    refused: str
    argv: tuple[str, ...]
    listed: Callable[[str], list[str]]
    written: Callable[[str], list[str]]
    none: str


_OUT = "Required partition not available"  # slurm_strerror of ESLURM_PARTITION_NOT_AVAIL
_NAMES = {
    "partition": _KnownNames(
        "[Ii]nvalid partition",
        ("sinfo", "--noheader", "--format=%R"),
        str.split,
        re.compile(r"[^,\s]+").findall,
        "",
    ),
    "constraint": _KnownNames(
        "Invalid feature specification",
        ("sinfo", "--all", "--noheader", "--format=%f"),
        lambda said: [it for it in re.split(r"[,\s]+", said) if it not in ("", "(null)")],
        re.compile(r"(?<![\w.*-])[A-Za-z_][\w.-]*").findall,  # not the number of `ib*2`
        "no node{of} has features: leave slurm.constraint out",
    ),
    "reservation": _KnownNames(
        "Requested reservation|reservation is invalid|Invalid reservation",
        ("scontrol", "--oneliner", "show", "reservation"),
        lambda said: re.findall(r"ReservationName=(\S+)", said),
        re.compile(r"[^,\s]+").findall,
        "there is no reservation: leave slurm.reservation out",
    ),
    "licenses": _KnownNames(
        "Invalid license",
        ("scontrol", "--oneliner", "show", "licenses"),
        lambda said: re.findall(r"LicenseName=(\S+)", said),
        re.compile(r"(?:^|[,;|&])\s*([^,;|&:*\s]+)").findall,
        "this cluster has no licenses: leave slurm.licenses out",
    ),
    # Of slurm.nodelist `partitions` tells before.
    "exclude": _KnownNames(
        "Invalid node name",
        ("sinfo", "--all", "--noheader", "--Node", "--format=%N"),
        str.split,
        expand,
        "",
    ),
}


def name_for_refused(stderr: str, options: Mapping[str, str | None]) -> str:
    """The name that Slurm does not know, and those that it has; empty where that is not sure.

    Slurm is asked once, and only here, on the way to a refusal.

    Args:
        stderr: sbatch's words.
        options: sbatch's long options by name, as they were asked for.
    """
    if _OUT in stderr and not options.get("clusters"):
        return _partition_that_is_out(options)
    found = next((it for it in _NAMES.items() if re.search(it[1].refused, stderr)), None)
    if found is None or options.get("clusters"):
        return ""  # another cluster has names of its own
    return _name_for(found[0], options)


def _name_for(option: str, options: Mapping[str, str | None]) -> str:
    """The name in an option's value that Slurm does not know, and those that it has, or empty."""
    names = _NAMES[option]
    written = options.get(option) or os.environ.get(f"SBATCH_{option.upper()}") or ""
    of = options.get("partition") if option == "constraint" else None
    try:
        said = run([*names.argv, *([f"--partition={of}"] if of else [])], timeout_s=PATIENCE_S)
    except SlurmError:
        return ""
    if said.returncode != 0 or not written:
        return ""
    there = list(dict.fromkeys(names.listed(said.stdout)))
    try:
        strange = [it for it in names.written(written) if it not in there]
    except ValueError:
        return ""
    if not strange:
        return ""  # it is there, and something else is wrong with it
    if option == "exclude" and there:
        names_it = f"slurm.exclude names {_few(strange)}, and there is no such node"
        return f"{names_it}: there {'are' if there[1:] else 'is'} {_few(there)}"
    if not there:
        none = names.none.format(of=f" of {of}" if of else "")
        return f"slurm.{option} is {written}, and {none}" if none else ""
    meant = did_you_mean(strange[0], there)
    return f"slurm.{option} is {written}: {meant}{' ' if meant else ''}{_shown(strange[0], there)}"


def unknown_names(
    options: Mapping[str, str | None], nodes: Collection[str], features: Collection[str]
) -> str:
    """What Slurm will say of a feature or a node left out that there is not; else empty.

    Args:
        options: sbatch's long options by name.
        nodes: Those that sinfo shows; what is hidden from the user is there as well, so that Slurm
            is asked once more for a name that is not among them.
        features: The same of them.
    """
    for option, there in (("constraint", features), ("exclude", nodes)):
        written = options.get(option) or ""
        try:
            strange = {*_NAMES[option].written(written)} - {*there} if written else ()
        except ValueError:
            continue
        is_file = option == "exclude" and "/" in written
        if strange and not is_file and (said := _name_for(option, options)):
            return said
    return ""


def unknown_partition(named: str, shown: Sequence[str]) -> str:
    """The partition that there is not, with those that there are; empty where all are there.

    Args:
        named: As slurm.partition has them, by commas.
        shown: Those that sinfo shows; one that is hidden from the user takes jobs as well.
    """
    strange = [it for it in named.split(",") if it and it not in shown]
    if not strange or not shown:
        return ""
    try:
        said = run(
            ["sinfo", "--all", "--federation", "--noheader", "--format=%R"], timeout_s=PATIENCE_S
        )
    except SlurmError:
        return ""
    if said.returncode != 0 or {*strange} & {*said.stdout.split()}:
        return ""
    meant = did_you_mean(strange[0], shown)
    there = _shown(strange[0], [*dict.fromkeys(shown)])
    return f"slurm.partition is {named}: {meant}{' ' if meant else ''}{there}"


def _partition_that_is_out(options: Mapping[str, str | None]) -> str:
    """Which partition takes no jobs, and those that do; empty where Slurm does not tell."""
    try:
        said = run(["sinfo", "--noheader", "--format=%P|%a"], timeout_s=PATIENCE_S)
    except SlurmError:
        return ""
    rows = [line.strip().partition("|") for line in said.stdout.splitlines() if "|" in line]
    named = options.get("partition") or os.environ.get("SBATCH_PARTITION") or ""
    wanted = named.split(",") if named else [it[:-1] for it, _, _ in rows if it.endswith("*")]
    states = {name.rstrip("*"): state for name, _, state in rows}
    out = [f"{it} ({states[it]})" for it in wanted if states.get(it, "up") != "up"]
    if not out:
        return ""
    up = [name for name, state in states.items() if state == "up"]
    shown = f"up {'are' if up[1:] else 'is'} {', '.join(up[:MOST_SHOWN])}" if up else "none is up"
    key = "slurm.partition (--partition) is" if named else "the default partition is"
    return f"{key} {' and '.join(out)}, which takes no jobs now: {shown}"


def _few(nodes: list[str]) -> str:
    """Nodes as a hostlist, or the first of them where even that is long."""
    shown = folded(nodes)
    few = f"{', '.join(nodes[:MOST_SHOWN])} and {len(nodes) - MOST_SHOWN} more"
    return shown if len(shown) <= LONGEST else few


def _shown(word: str, there: list[str]) -> str:
    if len(there) <= MOST_SHOWN:
        return f"there {'is' if len(there) == 1 else 'are'} {', '.join(there)}"
    near = near_words(word, there)
    shown = [*near, *(it for it in there if it not in near)][:MOST_SHOWN]
    return f"there are {len(there)}, among them {', '.join(shown)}"
