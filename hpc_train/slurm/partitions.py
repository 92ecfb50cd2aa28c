"""What a partition allows, asked before a submission that Slurm would accept and never start."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.errors import SlurmError
from hpc_train.plan.hostlist import expand
from hpc_train.plan.plan import Plan
from hpc_train.plan.units import slurm_time, stop_lead_s, time_s
from hpc_train.slurm.command import NO_ANSWER, run
from hpc_train.slurm.refusals import no_controller
from hpc_train.slurm.site import controller_down
from hpc_train.slurm.too_many_nodes import too_many_nodes
from hpc_train.slurm.too_much_memory import too_much_memory
from hpc_train.slurm.what_there_is import unknown_names, unknown_partition

SINFO = ("sinfo", "--federation", "--noheader")  # the job may start in any cluster of it
_MOST_IN_A_CHAIN = 30  # jobs that anybody would wait for, one after another
SINFO_S = 5.0  # a person waits
_GPUS = re.compile(r"\bgpu:(?:([^:,(]+):)?(\d+)")  # sinfo(1): gpu:4, or gpu:a100:4(S:0-1)


@dataclass(frozen=True)
class Partition:
    """A partition: its name, longest time, nodes in any state, and the most a job may have.

    Attributes:
        cpus: Of each kind of its nodes.
        gpus: The same, as sinfo writes them (`%G`).
        names: The same, as hostlists.
        memory_mib: Of each kind of its nodes.
        features: Of all of them; None where sinfo does not tell.
    """

    name: str
    limit: str
    nodes: int
    most: str
    cpus: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    memory_mib: tuple[int, ...] = ()
    is_default: bool = False
    is_up: bool = True
    features: frozenset[str] | None = None

    def limit_s(self) -> float:
        """The longest time of a job in seconds; infinite where there is no limit."""
        limit_s = None if self.limit in ("infinite", "n/a") else time_s(self.limit)
        return math.inf if limit_s is None else limit_s

    def fits_time(self, wanted_s: int | None) -> bool:
        """Whether a job of so many seconds (None: without a limit) may run here."""
        return (math.inf if wanted_s is None else wanted_s) <= self.limit_s()

    def nodes_of_a_job(self, *, is_lifted: bool) -> int:
        """The most nodes a job may have; where `is_lifted`, MaxNodes does not count."""
        return int(self.most) if self.most.isdigit() and not is_lifted else self.nodes

    def gpus_of_a_node(self, kind: str) -> int:
        """The most GPUs of a type (empty: of any) that one of its nodes has."""
        each = [_GPUS.findall(text) for text in self.gpus]
        return max(
            (sum(int(n) for of, n in found if kind in ("", of)) for found in each), default=0
        )


def check_partition(
    options: Mapping[str, str | None], origins: Origins = NOWHERE, plan: Plan | None = None
) -> str:
    """Refuse a time limit above the partition's, and more nodes, CPUs, GPUs or memory than it has.

    Without EnforcePartLimits (slurm.conf(5)) sbatch takes such a job, and it pends for ever with
    the reason PartitionTimeLimit, PartitionNodeLimit or PartitionConfig. A QOS may lift the limits,
    though not what there is. Where no partition is named, a job_submit plugin may choose another
    than the default one: what nodes have is then asked of all.

    Args:
        options: sbatch's long options by name.
        origins: Of the config's values, for the file and line of a refusal.
        plan: Of a training, for the shapes that its batch can be split over.

    Returns:
        Why it was not looked at, where a busy controller gave no answer: sbatch waits longer, and
        `status` tells of a job that would pend for ever. Empty where all is well.

    Raises:
        SlurmError: naming the key and what the partition has, or that no controller is up.
    """
    if options.get("clusters"):
        return ""  # another cluster's partitions
    try:
        known = _partitions()
    except SlurmError as error:
        if NO_ANSWER not in error.message:
            raise
        if down := controller_down(SINFO_S):
            raise no_controller(down) from error
        return f"{error.message}: not checked against the partition's limits"
    try:
        _check(options, known, plan)
    except SlurmError as error:
        key = re.match(r"slurm\.\w+", error.message)
        place = origins.prefix(key[0]) if key else ""
        raise SlurmError(f"{place}{error.message}", error.hint) from error
    return ""


def ask_what_is_given() -> Callable[[Mapping[str, str | None]], str]:
    """Ask Slurm once; the answer says of a job with such options why it would never start.

    Raises:
        SlurmError: Slurm does not answer.
    """
    known = _partitions()

    def why_not(options: Mapping[str, str | None]) -> str:
        try:
            if not options.get("clusters"):
                _check(options, known)
        except SlurmError as error:
            return error.message
        return ""

    return why_not


def foreseen_refusal(options: Mapping[str, str | None], plan: Plan | None = None) -> str:
    """What `submit` would say of a job with such options, before it is typed.

    Slurm is asked once; a second time where it shows no partition, feature or node of that name.

    Returns:
        Empty where nothing is wrong with it, and where Slurm does not tell.
    """
    if options.get("clusters"):
        return ""  # another cluster's partitions
    try:
        known = _partitions()
    except SlurmError:
        return ""
    if strange := unknown_partition(options.get("partition") or "", [it.name for it in known]):
        return strange
    try:
        _check(options, known, plan)
    except SlurmError as error:
        return f"{error.message}: {error.hint}"
    features = [it.features for it in known]
    if not known or None in features:
        return ""
    nodes = _expanded(",".join(name for it in known for name in it.names))
    return unknown_names(options, nodes, {*chain.from_iterable(filter(None, features))})


def _check(
    options: Mapping[str, str | None], known: Sequence[Partition], plan: Plan | None = None
) -> None:
    names = (options.get("partition") or "").split(",")
    named = [partition for partition in known if partition.name in names]
    asked = named or [partition for partition in known if partition.is_default]
    if not asked or (not named and names != [""]):
        return  # sbatch refuses a name that is none
    if not options.get("qos"):
        _check_time(options, asked, known)
    _check_nodes(options, asked, plan)
    _check_what_is_there(options, named or known, known)


def _check_what_is_there(
    options: Mapping[str, str | None], may_be: Sequence[Partition], known: Sequence[Partition]
) -> None:
    _check_names(options, may_be)
    _check_gpus(options, may_be, known)
    _check_cpus(options, may_be)
    _check_memory(options, may_be)


def _check_time(
    options: Mapping[str, str | None], asked: Sequence[Partition], known: Sequence[Partition]
) -> None:
    time = options.get("time")
    if not time:
        return
    wanted_s = time_s(time) if time != "UNLIMITED" else None
    if not any(partition.fits_time(wanted_s) for partition in asked):
        shown = ", ".join(dict.fromkeys(f"{it.name} {it.limit}" for it in asked))
        raise SlurmError(
            f"slurm.time {time} is longer than the partition allows ({shown}), so the job would"
            " never start",
            _how_to_get_the_time(options, asked, known, wanted_s),
        )


def _how_to_get_the_time(
    options: Mapping[str, str | None],
    asked: Sequence[Partition],
    known: Sequence[Partition],
    wanted_s: int | None,
) -> str:
    """The partition that allows it, and the chain of jobs that a shorter limit takes."""
    longest = max(asked, key=Partition.limit_s)
    lead = re.search(r"@(\d+)", options.get("signal") or "")
    job_s = longest.limit_s() - stop_lead_s(int(lead[1]) if lead else 0, int(longest.limit_s()))
    jobs = None if wanted_s is None else math.ceil(wanted_s / job_s)
    other = _that_allows(options, known, wanted_s)
    if other and (jobs is None or jobs > _MOST_IN_A_CHAIN):
        return f"write slurm.partition={other}, which allows it"
    chain = _chain(longest, jobs, may_go_on="requeue" in options)
    return f"write slurm.partition={other}, which allows it; or {chain}" if other else chain


def _that_allows(
    options: Mapping[str, str | None], known: Sequence[Partition], wanted_s: int | None
) -> str:
    """A partition that is up and gives such a job what it asks for; the default one before others.

    Whether the user may submit to it is not known here: sbatch tells that at once.
    """
    for partition in sorted(known, key=lambda it: not it.is_default):
        if not (partition.is_up and partition.fits_time(wanted_s)):
            continue
        try:
            _check_nodes(options, [partition])
            _check_what_is_there(options, [partition], known)
        except SlurmError:
            continue  # it lacks something else
        return partition.name
    return ""


def _check_nodes(
    options: Mapping[str, str | None], asked: Sequence[Partition], plan: Plan | None = None
) -> None:
    nodes = int(options.get("nodes") or 1)
    lifted = bool(options.get("qos"))
    most = _most(asked, lambda partition: partition.nodes_of_a_job(is_lifted=lifted))
    if nodes > max(most.values()):
        raise too_many_nodes(nodes, most, _shown(most), plan)


def _check_names(options: Mapping[str, str | None], asked: Sequence[Partition]) -> None:
    """Refuse nodes that the partition has not, and to leave out so many that too few are left."""
    wanted, left_out = (options.get(it) or "" for it in ("nodelist", "exclude"))
    if not (wanted or left_out) or "/" in wanted + left_out:  # a file of names
        return
    there = {node for partition in asked for node in _expanded(",".join(partition.names))}
    shown = _shown({partition.name: ",".join(partition.names) for partition in asked})
    if strange := [node for node in _expanded(wanted) if node not in there]:
        raise SlurmError(
            f"slurm.nodelist names {', '.join(strange)}, and the partition has no such node"
            f" ({shown})",
            "correct it, or write another slurm.partition",
        )
    nodes, rest = int(options.get("nodes") or 1), there - set(_expanded(left_out))
    if left_out and len(rest) < nodes:
        raise SlurmError(
            f"slurm.exclude leaves {len(rest)} of the partition's {len(there)} nodes ({shown}), and"
            f" {nodes} are asked for",
            "leave fewer out, or ask for fewer nodes",
        )


def _expanded(hosts: str) -> list[str]:
    return expand(hosts) if hosts else []


def _check_cpus(options: Mapping[str, str | None], asked: Sequence[Partition]) -> None:
    ranks, each = (int(options.get(it) or 1) for it in ("ntasks-per-node", "cpus-per-task"))
    cpus = _most(asked, lambda partition: max(partition.cpus, default=0))
    most = max(cpus.values())
    if not most or ranks * each <= most or "overcommit" in options:
        return
    what = f"slurm.gpus_per_node is {ranks}, and each rank needs a CPU"
    if each > 1:
        what = f"slurm.cpus_per_gpu is {each}, for {ranks} ranks a node {ranks * each} CPUs"
    fix = f"write slurm.cpus_per_gpu={most // ranks} or less" if ranks <= most else ""
    raise SlurmError(
        f"{what}; no node of the partition has so many ({_shown(cpus)}), so the job would never"
        " start",
        fix or f"write --gpus {most} or fewer, and more --nodes",
    )


def memory_refusal(option: str, size: str) -> tuple[str, str]:
    """Why no node has so much, and what to write; empty where one has, or Slurm does not tell.

    Args:
        option: sbatch's, such as `mem`.
        size: With its unit.
    """
    try:
        _, why, fix = too_much_memory({option: size}, _memory(_partitions()))
    except SlurmError:
        return "", ""
    return why, fix


def _check_memory(options: Mapping[str, str | None], asked: Sequence[Partition]) -> None:
    gpus = _GPUS.search(options.get("gres") or "")
    what, why, fix = too_much_memory(options, _memory(asked), int(gpus[2]) if gpus else 1)
    if what:
        raise SlurmError(f"{what}; {why}", fix)


def _memory(asked: Sequence[Partition]) -> dict[str, int]:
    return _most(asked, lambda partition: max(partition.memory_mib, default=0))


def _check_gpus(
    options: Mapping[str, str | None], asked: Sequence[Partition], known: Iterable[Partition]
) -> None:
    found = _GPUS.search(options.get("gres") or "")
    if found is None:
        return
    kind, number = found[1] or "", int(found[2])
    most = max(partition.gpus_of_a_node(kind) for partition in asked)
    if number <= most:
        return
    there = {it.name: "+".join(sorted(set(it.gpus))).replace("(null)", "none") for it in asked}
    others = [it.name for it in known if it.gpus_of_a_node(kind) >= number]
    # Each rank has a GPU, and CPUs of its own.
    cpus = max(max(partition.cpus, default=0) for partition in asked)
    fit = min(most, cpus // int(options.get("cpus-per-task") or 1) or most) if cpus else most
    fixes = [f"--gpus {fit} or fewer, and more --nodes"] if most else []
    fixes += [f"--partition {others[0]}"] if others else []
    if kind and not most:
        types = {of for it in known for text in it.gpus for of, _ in _GPUS.findall(text) if of}
        fixes += [f"slurm.gpu_type={of}" for of in sorted(types)] or ["slurm.gpu_type=null"]
    what = f"slurm.gpu_type is {kind}" if kind and not most else f"slurm.gpus_per_node is {number}"
    raise SlurmError(
        f"{what}, and no node of the partition has that ({_shown(there)}), so the job would never"
        " start",
        f"write {' or '.join(fixes)}"
        if fixes
        else "no partition here has GPUs: train on CPUs with trainer.accelerator=cpu",
    )


def _most(asked: Sequence[Partition], number: Callable[[Partition], int]) -> dict[str, int]:
    """The largest number by name: clusters of a federation have partitions of one name."""
    most: dict[str, int] = {}
    for partition in asked:
        most[partition.name] = max(number(partition), most.get(partition.name, 0))
    return most


def _shown(of: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {what}" for name, what in of.items())


def _chain(longest: Partition, jobs: int | None, *, may_go_on: bool) -> str:
    """How the run gets its time all the same: in one job after another."""
    number = "several" if jobs is None else str(jobs)
    way = f"a chain of {number} jobs does it: write --partition {longest.name}"
    way = f"{way} --time {slurm_time(int(longest.limit_s()))}"
    if not may_go_on:
        return f"{way} and requeue.enabled=true, so that the run goes on at each limit"
    return f"{way}; the run saves before each limit and goes on"


def any_gpus() -> bool:
    """Whether Slurm knows of GPUs here at all: not every site tells it of them."""
    return any(partition.gpus_of_a_node("") for partition in _partitions())


def _partitions() -> list[Partition]:
    """All, of each cluster of a federation; none where sinfo fails."""
    said = run([*SINFO, "--exact", "--format=%P|%l|%D|%s|%c|%G|%N|%V|%m|%a|%f"], timeout_s=SINFO_S)
    kinds: dict[tuple[str, str], list[list[str]]] = {}
    for row in (line.split("|") for line in said.stdout.splitlines()):
        if len(row) >= 8:  # one a kind of node; the star behind a name is the default's
            kinds.setdefault((row[0].strip(), row[7].strip()), []).append(row)
    return [
        Partition(
            name=name.rstrip("*"),
            limit=rows[0][1],
            nodes=sum(int(row[2]) for row in rows),
            most=rows[0][3].rpartition("-")[2],
            cpus=tuple(int(row[4]) for row in rows if row[4].isdigit()),
            gpus=tuple(row[5].strip() for row in rows),
            names=tuple(row[6].strip() for row in rows),
            memory_mib=tuple(int(it) for row in rows for it in row[8:9] if it.isdigit()),
            is_default=name.endswith("*"),
            is_up=all(it.strip() == "up" for row in rows for it in row[9:10]),
            features=_features(rows),
        )
        for (name, _), rows in kinds.items()
    ]


def _features(rows: Sequence[Sequence[str]]) -> frozenset[str] | None:
    told = [row[10].strip() for row in rows if len(row) > 10]
    names = (it for text in told if text != "(null)" for it in text.split(","))
    return frozenset(filter(None, names)) if told else None
