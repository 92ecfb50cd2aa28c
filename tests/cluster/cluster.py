"""A cluster: up, down, and the few things every test wants of it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.cluster import accounting, config, registry
from tests.cluster.layout import Layout
from tests.cluster.nodes import Node, entering, known_nodes, raise_nodes
from tests.cluster.processes import Processes, in_network_of, kill_all, name_of
from tests.cluster.requirements import slurm_version
from tests.cluster.shell import ClusterError, run, wait_until
from tests.cluster.spec import ClusterSpec

__all__ = ["Cluster"]

# States that a job does not leave by itself (sacct's manual page, JOB STATE CODES). PREEMPTED and
# NODE_FAIL are left out: with --requeue a job passes through them.
_ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"})
_FIELD = re.compile(r"(?:^| )([A-Za-z][\w:/]*)=(.*?)(?= [A-Za-z][\w:/]*=|$)")
_NEVER_KILLED = frozenset({"slurmd", "slurmstepd"})


class Cluster:
    """A real Slurm whose nodes are namespaces of this machine.

    Use it as a context manager, or call :meth:`up` and :meth:`down`. Needs root.

    Args:
        spec: What it looks like.
        detached: It outlives this process, until ``down``.
    """

    def __init__(self, spec: ClusterSpec | None = None, *, detached: bool = False) -> None:
        self.spec = spec or ClusterSpec()
        self.nodes: dict[str, Node] = {}
        # Whether anybody asked anything of it since the last reset.
        self.touched = False
        self._detached = detached
        self._layout: Layout | None = None
        self._processes: Processes | None = None
        self._undo: list[Callable[[], object]] = []

    @classmethod
    def attach(cls, layout: Layout) -> Cluster:
        """The handle of a cluster that another process raised.

        Raises:
            ClusterError: It does not stand.
        """
        state = registry.read_state(layout.root)
        if "spec" not in state:
            raise ClusterError(f"no cluster stands in {layout.root}")
        cluster = cls(ClusterSpec(**state["spec"]), detached=True)
        cluster._layout = layout
        cluster._processes = Processes(layout.process_file, layout.logs)
        cluster.nodes = known_nodes(cluster.spec, layout, cluster.processes)
        return cluster

    def __enter__(self) -> Cluster:
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    @property
    def layout(self) -> Layout:
        """Names of its files, ports and addresses."""
        if self._layout is None:
            raise ClusterError("the cluster is not up")
        return self._layout

    @property
    def processes(self) -> Processes:
        """Its daemons."""
        if self._processes is None:
            raise ClusterError("the cluster is not up")
        self.touched = True
        return self._processes

    # --- up and down

    def up(self) -> None:
        """Raise it and wait until every node is idle.

        Raises:
            ClusterError: A part did not come up; the message ends with the logs. Nothing is left.
        """
        controller = socket.gethostname().partition(".")[0]
        self._layout = registry.claim(self.spec, controller, detached=self._detached)
        self._processes = Processes(self._layout.process_file, self._layout.logs)
        try:
            self._raise()
        except BaseException as error:
            logs = self.log_tails()
            self.down()
            if isinstance(error, ClusterError):
                raise ClusterError(f"{error}\n{logs}") from error
            raise

    def _raise(self) -> None:
        layout = self.layout
        self._make_folders()
        own = self.spec.accounting and not self.spec.sibling_of
        if own:
            template = accounting.ensure_template(layout)
            accounting.start_database(layout, self.processes, template)
        if not self.spec.sibling_of:
            accounting.start_munge(layout, self.processes)
        self.nodes = raise_nodes(self.spec, layout, self.processes)
        if own:
            accounting.start_slurmdbd(layout, self.processes)
        if self.spec.accounting and self.spec.cluster_name != ClusterSpec().cluster_name:
            self.command(["sacctmgr", "-i", "add", "cluster", self.spec.cluster_name])
        self.start_controller()
        for name in self.nodes:
            self.start_slurmd(name)
        wait_until(self._all_idle, "all nodes to be idle", timeout_s=180, interval_s=0.1)

    def _all_idle(self) -> bool:
        for name in self.nodes:
            if self.processes.find(f"slurmd-{name}") is None:
                raise ClusterError(f"the slurmd of {name} ended")
        try:
            return set(self.node_states().values()) == {"idle"}
        except ClusterError as error:  # many nodes register at once
            if "timed out" not in str(error):
                raise
            return False

    def _make_folders(self) -> None:
        layout = self.layout
        etc = layout.slurm_conf.parent
        folders = [layout.logs, etc, layout.jobs, layout.disks, layout.devices]
        for folder in [*folders, layout.spool / "slurmctld"]:
            folder.mkdir(parents=True)
        # A mount below a shared folder spreads to the nodes, whose tables are slaves of the host's.
        run(["mount", "--bind", str(layout.disks), str(layout.disks)])
        run(["mount", "--make-shared", str(layout.disks)])
        for number in range(self.spec.gpus_per_node):
            os.mknod(layout.devices / f"nvidia{number}", 0o020666, os.makedev(1, 3))
        layout.slurm_conf.write_text(config.slurm_conf(self.spec, layout))
        if self.spec.submit_lua:
            (etc / "job_submit.lua").write_text(self.spec.submit_lua)
        (etc / "gres.conf").write_text(config.gres_conf(self.spec, layout))
        (etc / "cgroup.conf").write_text(config.cgroup_conf(slurm_version()))

    def start_controller(self) -> None:
        """Start slurmctld on the state it left, if any, and wait until it answers."""
        self.processes.start("slurmctld", ["slurmctld", "-D", "-f", str(self.layout.slurm_conf)])
        wait_until(self._controller_answers, "slurmctld", timeout_s=180, interval_s=0.1)

    def _controller_answers(self) -> bool:
        if self.processes.find("slurmctld") is None:
            raise ClusterError("slurmctld ended")
        return self.command(["scontrol", "ping"], check=False).returncode == 0

    def start_slurmd(self, node: str) -> None:
        """Start the slurmd of a node that has none."""
        slurmd = ["slurmd", "-D", "-N", node, "-f", str(self.layout.slurm_conf)]
        # As in Debian's unit of slurmd (LimitMEMLOCK=infinity), where this machine allows it.
        limits = ["sh", "-c", 'ulimit -l unlimited 2>/dev/null || true; exec "$@"', "sh"]
        argv = [*entering(self.nodes[node].anchor_pid), *limits, *slurmd]
        self.processes.start(f"slurmd-{node}", argv)

    def down(self) -> None:
        """Take everything away; nothing happens when it is not up."""
        if self._layout is None:
            return
        registry.remove(self._layout)
        if self._processes is not None:
            self._processes.reap()
        self._layout, self._processes, self.nodes = None, None, {}

    def log_tails(self, lines: int = 8) -> str:
        """The last lines of each daemon's log, for a message."""
        tails = []
        for log in sorted(self.layout.logs.glob("*")):
            text = log.read_text(errors="replace").splitlines()[-lines:]
            tails += [f"--- {log.name}", *text] if text else []
        return "\n".join(tails)

    # --- commands

    def env(self) -> dict[str, str]:
        """The variables that point Slurm's commands, run on the host, to this cluster."""
        self.touched = True
        return {"SLURM_CONF": str(self.layout.slurm_conf)}

    def command(
        self, argv: Sequence[str], *, stdin: str = "", check: bool = True, timeout_s: float = 90
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the host with this cluster's environment.

        A question that a busy controller has not answered is asked again: 24.11's waits for a node
        that was killed.

        Raises:
            ClusterError: It failed and ``check`` is set.
        """
        ends = time.monotonic() + timeout_s
        asks = argv[0] in ("squeue", "sinfo") or "show" in argv
        while True:
            try:
                return run(argv, env=self.env(), stdin=stdin, check=check, timeout_s=timeout_s)
            except ClusterError as error:
                late = time.monotonic() > ends
                if late or not asks or "Socket timed out" not in str(error):
                    raise

    def scontrol(self, *args: str) -> str:
        """Output of ``scontrol ARGS``."""
        return self.command(["scontrol", *args]).stdout

    def node_exec(
        self,
        node: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout_s: float = 90,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside a node, in the current folder.

        Raises:
            ClusterError: It failed and ``check`` is set.
        """
        inside = [*self.node_argv(node), *argv]
        return run(inside, env={**self.env(), **(env or {})}, check=check, timeout_s=timeout_s)

    def node_argv(self, node: str) -> list[str]:
        """The words that, put before a command, run it inside a node; for an own Popen."""
        return [*entering(self.nodes[node].anchor_pid), "env", f"--chdir={Path.cwd()}"]

    def pids(self, node: str) -> list[int]:
        """Every process of a node: slurmd, steps, ranks."""
        return in_network_of(self.nodes[node].anchor_pid)

    def address(self, node: str) -> str:
        """Address of eth0 on a node."""
        return self.nodes[node].address

    # --- jobs

    def sbatch(self, args: Sequence[str], script: str) -> str:
        """Submit a script; its output goes to :meth:`output` unless ``args`` say otherwise.

        Returns:
            The job id.
        """
        jobs = self.layout.jobs
        argv = ["sbatch", "--parsable", f"--chdir={jobs}", f"--output={jobs}/%j.out", *args]
        return self.command(argv, stdin=script).stdout.strip().partition(";")[0]

    def output(self, job_id: str) -> str:
        """What a job submitted with :meth:`sbatch` has written so far."""
        file = self.layout.jobs / f"{job_id}.out"
        return file.read_text() if file.exists() else ""

    def job(self, job_id: str) -> dict[str, str]:
        """Every field of ``scontrol show job``, by its name there."""
        text = self.scontrol("--oneliner", "show", "job", job_id)
        return dict(
            re.findall(r"(?:^| )([A-Za-z][\w:/]*)=(.*?)(?= [A-Za-z][\w:/]*=|$)", text.strip())
        )

    def state(self, job_id: str) -> str:
        """State of a job, in Slurm's long words."""
        return self.job(job_id)["JobState"]

    def wait(self, job_id: str, states: str | Collection[str], timeout_s: float = 180) -> str:
        """Wait until a job is in one of the states.

        Returns:
            The state.

        Raises:
            ClusterError: Too late, or the job has ended in another state.
        """
        wanted = {states} if isinstance(states, str) else set(states)
        deadline_s = time.monotonic() + timeout_s
        while (state := self.state(job_id)) not in wanted:
            if state in _ENDED or time.monotonic() > deadline_s:
                told = f"job {job_id} is {state}, not {'/'.join(sorted(wanted))}"
                raise ClusterError(
                    f"{told}\n{self.scontrol('show', 'job', job_id)}\n{self.output(job_id)}"
                )
            time.sleep(0.1)
        return state

    def preempt(self, nodes: Collection[str] = (), *, hold_s: int = 600) -> str:
        """Submit an urgent job that needs these nodes (default: all) whole.

        Returns:
            Its id; cancel it to give the nodes back.
        """
        names = list(nodes) or list(self.nodes)
        where = [f"--nodelist={','.join(names)}", f"--nodes={len(names)}", "--exclusive"]
        args = ["--partition=urgent", "--job-name=urgent", *where]
        return self.sbatch(args, f"#!/bin/sh\nexec sleep {hold_s}\n")

    def cancel(self, *job_ids: str) -> None:
        """``scancel`` these jobs."""
        self.command(["scancel", *job_ids])

    # --- nodes

    def node_states(self) -> dict[str, str]:
        """State of each node as sinfo prints it, such as ``idle``, ``mixed``, ``down*``."""
        argv = ["sinfo", "--local", "--Node", "--noheader", "-o", "%N %T"]
        rows = self.command(argv).stdout.splitlines()
        return dict(row.split(maxsplit=1) for row in rows)

    def wait_nodes(self, state: str, nodes: Collection[str] = (), timeout_s: float = 180) -> None:
        """Wait until these nodes (default: all) are in a state, answering or not (``*``).

        Raises:
            ClusterError: Too late.
        """
        names = list(nodes) or list(self.nodes)
        wait_until(
            lambda: {self.node_states()[n].rstrip("*~#!%$@^-") for n in names} == {state},
            f"{','.join(names)} to be {state}",
            timeout_s=timeout_s,
            interval_s=0.1,
        )

    def on_reset(self, undo: Callable[[], object]) -> None:
        """Have this called by the next :meth:`reset`; the last one given comes first."""
        self.touched = True
        self._undo.append(undo)

    def reset(self, *, timeout_s: float = 180) -> None:
        """Cancel all jobs, undo all faults and bring all nodes back to idle."""
        if not self.touched:
            return
        while self._undo:
            self._undo.pop()()
        if self.processes.find("slurmctld") is None:
            self.start_controller()
        jobs = self.command(["squeue", "--noheader", "--array", "-o", "%A"]).stdout.split()
        if jobs:
            self.command(["scancel", "--quiet", *sorted(set(jobs))], check=False)
        for name in self.nodes:
            self._kill_jobs(name)
            if self.processes.find(f"slurmd-{name}") is None:
                self.start_slurmd(name)
        wait_until(self._emptied, "an idle cluster", timeout_s=timeout_s, interval_s=0.1)
        self.touched = False

    def _emptied(self) -> bool:
        # What was just being started when the jobs were cancelled has come up since.
        for name, state in self.node_states().items():
            if state.startswith("completing"):
                self._kill_jobs(name)
        return self._resumed(list(self.nodes))

    def bring_back(self, nodes: Collection[str] = (), *, timeout_s: float = 180) -> None:
        """Resume these nodes (default: all) until they are idle.

        Raises:
            ClusterError: Too late.
        """
        names = list(nodes) or list(self.nodes)
        wait_until(
            lambda: self._resumed(names),
            f"{','.join(names)} to be idle again",
            timeout_s=timeout_s,
            interval_s=0.1,
        )

    def _resumed(self, names: Collection[str]) -> bool:
        states = {name: state for name, state in self.node_states().items() if name in names}
        for name, state in states.items():
            if re.match("down|drain|fail", state):
                # May be refused: the node has registered since, which brings it back as well.
                self.command(
                    ["scontrol", "update", f"NodeName={name}", "State=RESUME"], check=False
                )
        return set(states.values()) == {"idle"}

    def _kill_jobs(self, node: str) -> None:
        # A job that ignores SIGTERM would otherwise keep its node for KillWait.
        kill_all([p for p in self.pids(node) if name_of(p) not in _NEVER_KILLED])
