"""Submitting a run through submitit: to Slurm, or to this machine's local executor."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from hpc_train.backends.job_entry import train_in_job
from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.errors import SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.script import demanded_nodes, job_options
from hpc_train.runs.bad_nodes import clusters, read_bad_nodes
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import unwritable
from hpc_train.slurm.command import NO_ANSWER, is_available
from hpc_train.slurm.command import run as run_slurm
from hpc_train.slurm.control import StartEstimate, is_answer_lost, test_only
from hpc_train.slurm.inherit import for_new_job
from hpc_train.slurm.jobs import jobs_of_scripts
from hpc_train.slurm.nodes import why_it_waits
from hpc_train.slurm.partitions import check_partition
from hpc_train.slurm.refusals import UNAVAILABLE, refusal_error
from hpc_train.slurm.site import check_one_cluster

USUAL_CONFIGS = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf")
# What a shell lacks in which Slurm's commands find no cluster.
NAME_CLUSTER = "export SLURM_CONF=/path/to/slurm.conf, or load the site's slurm module"
FOREVER_MIN = 60 * 24 * 365
_ONE_AT_A_TIME = threading.Lock()  # the environment and standard error are the whole process's


def detect_cluster() -> str:
    """`slurm` where sbatch is on the PATH and knows its cluster, else `local`.

    Slurm's commands may be installed without any cluster behind them; a configless client
    (slurm.conf(5)) has no file, so then the controller itself is asked.
    """
    if not (is_available("sbatch") and is_available("srun")):
        return "local"
    if is_configured(os.environ):
        return "slurm"
    return "slurm" if run_slurm(["scontrol", "ping"], timeout_s=10).returncode == 0 else "local"


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether a file here names Slurm's cluster."""
    return "SLURM_CONF" in environ or any(Path(path).exists() for path in USUAL_CONFIGS)


def check_submission(plan: Plan, origins: Origins = NOWHERE) -> str:
    """What can be known before sbatch is asked.

    Args:
        plan: What is to be submitted.
        origins: Of the config's values, where there is a config.

    Returns:
        What a busy controller left unchecked.

    Raises:
        SlurmError: Slurm is not here, or the job would never start, or not where it is looked for.
    """
    if not is_available("sbatch"):
        raise SlurmError(
            "there is no sbatch on this machine's PATH",
            "log in to a node of the cluster or load its slurm module; or train here with"
            " --cluster local",
        )
    check_one_cluster(os.environ)
    return check_partition(dict(plan.slurm.options), origins, plan)


def submit_slurm(
    run: RunDir, plan: Plan, leave_out: Sequence[str] = (), options: Sequence[str] = ()
) -> str:
    """Submit the run's script as a Slurm job whose batch step is the supervisor.

    Args:
        leave_out: Nodes to exclude beside those of the plan.
        options: More of sbatch's.

    Returns:
        The job id.

    Raises:
        SlurmError: Slurm refused; its words, and the key to change.
    """
    from submitit.core.utils import FailedJobError

    from hpc_train.backends.script_executor import ScriptExecutor

    script = run.script.read_text(encoding="utf-8")
    executor = ScriptExecutor(run.submitit, script, [*job_options(plan, leave_out), *options])
    try:
        # submitit copies sbatch's words to stderr; they are in the error that it raises, too.
        with _ONE_AT_A_TIME, _clean_environment(plan), contextlib.redirect_stderr(io.StringIO()):
            job = executor.submit(train_in_job, str(run.path), None)
    except OSError as error:
        raise unwritable(error, run.path) from error
    except FailedJobError as error:
        words = _stderr_in(str(error))
        taken = _taken(run, words) if is_answer_lost(words) else ()
        if not taken:
            raise refusal_error(words, dict(plan.slurm.options)) from error
        return max(taken, key=int)  # Slurm took the job, and only its answer was lost
    return str(job.job_id)


def _taken(run: RunDir, words: str) -> Collection[str]:
    """The jobs of a run's script, where sbatch's answer was lost.

    Raises:
        SlurmError: nobody knows whether Slurm has taken one.
    """
    try:
        return jobs_of_scripts(f"{run.submitit}/")
    except SlurmError as error:
        raise SlurmError(
            f"Slurm does not answer, and may have taken the job all the same: {words}",
            f"once `scontrol ping` says UP: squeue --me --name={read_plan(run).name}; scancel what"
            " is there, and submit again",
        ) from error


def leave_out_bad_nodes(
    plan: Plan, submit: Callable[[Sequence[str]], str]
) -> tuple[str, tuple[str, ...]]:
    """Submit without the nodes that are remembered as bad, or with them where none else are.

    Args:
        plan: Of what is submitted: a node that it names itself is not left out.
        submit: Takes nodes to leave out and gives the job id.

    Returns:
        The job id, and the nodes that were left out.
    """
    remembered = remembered_nodes(os.environ, time.time())
    bad = tuple(node for node in remembered if node not in demanded_nodes(plan))
    if bad:
        try:
            return submit(bad), bad
        except SlurmError:
            # Too few nodes are left, or a name is no node any more: the preflight will tell.
            return submit(()), ()
    return submit(()), ()


def ask_for_start(plan: Plan, script: str, origins: Origins = NOWHERE) -> StartEstimate:
    """Slurm's own verdict on the job and its estimate of the start; nothing is submitted.

    Raises:
        SlurmError: with Slurm's words and the key to change.
    """
    import tempfile

    options = dict(plan.slurm.options)
    check_partition(options, origins, plan)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.sbatch"
        file.write_text(script, encoding="utf-8")
        try:
            return test_only(file, options)
        except SlurmError as error:
            waits = why_it_waits(options) if UNAVAILABLE in error.message else ""
            if not waits:
                raise
            return StartEstimate(waits, "", "", options.get("partition") or "")


def submit_local(run: RunDir, environ: Mapping[str, str]) -> str:
    """Start the run on this machine, in the background, beyond this shell's end.

    Returns:
        The id submitit gives it, which is a process id.
    """
    if threading.current_thread() is not threading.main_thread():
        return _submit_from_a_process(run)  # Python sets signal handlers in the main thread alone
    import submitit

    executor = submitit.LocalExecutor(folder=run.submitit)
    executor.update_parameters(timeout_min=FOREVER_MIN, stderr_to_stdout=True)
    log = run.submitit / "controller.log"
    with _ignored(signal.SIGINT, signal.SIGHUP), _detached_streams(log):
        job = executor.submit(
            train_in_job, str(run.path), environ.get("CUDA_VISIBLE_DEVICES", "unset")
        )
    return str(job.job_id)


def _submit_from_a_process(run: RunDir) -> str:
    code = f"import os, sys, pathlib; from {__name__} import RunDir, submit_local as submit; "
    code += "print(submit(RunDir(pathlib.Path(sys.argv[1])), os.environ))"
    argv = [sys.executable, "-c", code, str(run.path)]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def remembered_nodes(environ: Mapping[str, str], now: float) -> tuple[str, ...]:
    """Nodes of this cluster that earlier runs found bad; Slurm is asked only if there are any."""
    known = {name: read_bad_nodes(environ, name, now) for name in clusters(environ)}
    if not any(known.values()):
        return ()
    try:
        said = run_slurm(["scontrol", "show", "config"], timeout_s=5).stdout
    except SlurmError:
        return ()  # busy: the preflight will find them
    found = re.search(r"^ClusterName\s*=\s*(\S+)", said, re.MULTILINE)
    return tuple(bad.node for bad in known.get(found.group(1), ())) if found else ()


def _stderr_in(text: str) -> str:
    """Slurm's own lines in what submitit raises, which also holds a traceback."""
    lines = [line for line in text.splitlines() if re.match(r"\s*sbatch: ", line)]
    return "\n".join(line.strip() for line in lines) or f"sbatch: {NO_ANSWER}"


@contextlib.contextmanager
def _clean_environment(plan: Plan) -> Iterator[None]:
    before = dict(os.environ)
    kept = for_new_job(before, dict(plan.slurm.options))
    for name in before.keys() - kept.keys():
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)


@contextlib.contextmanager
def _detached_streams(log: Path) -> Iterator[None]:
    """Children started in this block write into `log`.

    submitit's controller inherits our streams, and a pipe that reads our output would wait for
    the training's end: `hpc-train submit --json | jq .run`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(stream) for stream in (0, 1, 2)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    to_log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(nothing, 0)
        os.dup2(to_log, 1)
        os.dup2(to_log, 2)
        yield
    finally:
        for stream, original in enumerate(kept):
            os.dup2(original, stream)
        for descriptor in (*kept, nothing, to_log):
            os.close(descriptor)


@contextlib.contextmanager
def _ignored(*numbers: signal.Signals) -> Iterator[None]:
    """Children started in this block ignore the signals: a Ctrl-C or a closed terminal."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
