"""NCCL's failures among other programs' lines: launchers, tracebacks, wrapped and dressed lines."""

from __future__ import annotations

import json
import time

import pytest

from hpc_train.diagnose.nccl.nccl_lines import records_of
from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines, read_nccl_logs
from hpc_train.diagnose.nccl.nccl_text import explain
from hpc_train.errors import HpcTrainError
from tests.diagnose.nccl_lines_made import (
    CASES,
    COMPLETE,
    HEAD,
    WORK,
    ib,
    read,
    warn,
)


def test_a_loss_scale_that_goes_down_and_a_run_that_goes_on_is_no_failure():
    said = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}"
    report = read(f"{HEAD}NCCL INFO x", *(said.format(scale) for scale in ("2.0", "1.0", "0.5")))
    assert (report.failures, [note.name for note in report.notes]) == ((), ["loss_scale"])


@pytest.mark.parametrize(
    "line",
    [
        "w" * 65_536,
        "w" * 65_000 + " NCCL WARN " + "x" * 400,
        "a:1:" * 16_384,
        " NCCL INFO " * 6_000,
        "NCCL WARN Got completion from peer " + "p" * 65_000,
        "NCCL WARN Cuda failure " + "'" * 65_000,
        "Last error: Connect to " + "1" * 65_000,
    ],
)
def test_no_line_of_64_kb_takes_long(line):
    start = time.process_time()
    records_of(line)
    read_nccl_lines([line, "NCCL version 2.21.5"])
    assert time.process_time() - start < 1  # milliseconds; 14 s were seen


# Lines beside NCCL's, in other contexts than a failure's: each looks like what a rule knows.
LOOK_ALIKES = {
    "store_timeout": "[W socket.cpp:697] [c10d] The client socket has failed to connect to"
    " [node1]:29500 (errno: 97 - Address family not supported by protocol).",
    "host_name": "[W socket.cpp:663] [c10d] The IPv6 network addresses of (node1, 29500) cannot be"
    " retrieved (gai error: -2 - Name or service not known).",
    "host_oom": "Killed time: 3 s, oom_kill_events=0, Out of memory check passed",
    "worker_killed": "This DataLoader will create 8 worker processes: DataLoader worker (pid 3) ok",
    "xid": "user xid (PCI): 79 sold",
    "segfault": "loss of the Segmentation fault-detection head 0.3",
    "bus_error": "Bus error rate 0.1: 3 of 30 buses late",
    "no_gpu": "CUDA devices found: 8",
    "port_in_use": "Address already known, no need to bind",
    "port_denied": "The server socket is listening on port 80",
    "store_waits": "Timed out after 3 seconds waiting for the dashboard",
    "store_key": "Socket Timeouts: 0",
    "store_barrier": "Waiting in store based barrier to initialize process group for rank: 0, key:"
    " store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)",
    "rendezvous": "Rendezvous complete: RendezvousErrors 0",
    "gloo_connect": "using connectFullMesh: True",
    "barrier": "Ranks 1, 2 passed the barrier in 3 ms",
    "gloo_timeout": "Timed out waiting 3ms for the prompt",
    "ras_dead": "DEADLINE 3 considered",
    "time_limit": "time limit: 3600, CANCELLED orders 3 DUE TO weather",
    "signalled": "Process 3 got signal boost",
    "raised": "ValueError: 3 (caught, goes on)",
    "raised in a bar": " 45%|####5     | 9/20 [00:12<00:15, loss=0.3, Error: 0.1]",
    "killed": "failed (exitcode: none) local_rank: 0",
    "rank_exit": "srun: error: node1: task 3: Exited with a smile",
    "slurm_cancelled": "*** JOB 4711 ON node1 CANCELLED by hand ***",
    "store_lost": "tests/pair.cc: Connection closed by peer review",
    "address_family": "Socket creation took 3 ms",
    "ofi_test": "NET/OFI OFI NCCL ok",
    "nccl_library": "warning: undefined symbol: cublasLtCreate (weak)",
    "mlx5_completion": "mlx5: gpu07: got completion",
    "collective_mismatch": "Detected mismatch between the two configs",
    "heartbeat": "the old watchdog got stuck in the fence",
    "gpu_driver": "amdgpu 0000:1c:00.0: ring gfx initialised; nobody fell off the bus 12",
    "gpu_fault": "Memory access faults of the model: 0",
    "library": "UserWarning: Failed to load image Python extension: undefined symbol: jpeg_x",
    "not_started": "execve: torchrun train.py",
    "not_launched": "Task launch for StepId=7.0 on node3 took 3 s",
    "slurm_account": "sbatch: Invalid account names are listed by sacctmgr",
    "slurm_time": "Requested time limit is 2 h; srun: the time limit is invalid from then on",
    "slurm_gres": "sbatch: Invalid generic resources are listed by sinfo",
    "slurm_limits": "sbatch: error: QOS is normal",
    "slurm_many_jobs": "sbatch: error: AssocMaxSubmitJobLimit is 10 for you, of which 3 are used",
    "an association": "srun: error: Association of ranks and devices: 8",
    "slurm_memory": "srun: Memory specification of the node: 256G",
    "memory_limit": "slurmstepd: error: Exceeded job memory limit at some point. Job may have been"
    " partially swapped out to disk.",
    "slurm_nodes": "Requested node configuration is available",
    "step_waited": "srun: Job/step already completing or completed",
    "slurm_tasks": "srun: More processors than permitted",
    "slurm_refused": "srun: Unable to say how long",
    "ssh": "Permission denied twice, then granted; ssh ended with exit code 0",
    "slots": "there are enough slots available in the system",
    "disk_full": "Space left on device: 3 TiB, no quota",
    "ray_worker": "A worker died-in-the-wool",
    "horovod_stall": "One or more tensors were moved to the GPU",
    "wrong_results": "# Out of bounds values : 0 OK",
    "ucx_said": "UCX ERRORS: 0",
    "mpi_abort": "MPI_ABORT was never invoked",
    "mpi_daemon": "ORTE was able to start",
    "command_missing": "mesh: 3 vertices not found; sh: ok",
    "ends_with": "RuntimeError: retrying 3 of 5",
    "cuda_kernel": "TORCH_USE_CUDA_DSA enables device-side assertions; an illegal move",
    "a death signal": "Received 3 death signals in the game",
    "Python logger": "2026-11-21 08:04:51 WARN trainer.py:3 connection to wandb failed",
    "rendezvous at the end": "The node 'n1_1_0' has failed to shutdown the rendezvous '77' due to"
    " an error of type RendezvousConnectionError.",
    "CPU worker": "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "nccl_dump": "<systems version='1'>",
    "ofi_query": "libfabric:85:1747438790::core:core:fi_getinfo_():1392<info> fi_getinfo: x",
    "mpi_unreachable": "At least one pair of MPI processes was started",
    "NVIDIA's words in prose": "if you see CUDA out of luck, see the FAQ of NCCL",
}

STEPS = [f"step {number} loss 0.3" for number in range(6)]


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_only_looks_like_a_failure_is_none(name):
    started = f"{HEAD}NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"
    report = read(started, LOOK_ALIKES[name], *STEPS)
    assert (report.failures, report.notes, report.warnings) == ((), (), ())


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_log_without_a_failure_or_a_line_of_nccls_is_refused(name):
    with pytest.raises(HpcTrainError, match="no line of NCCL's"):
        read(LOOK_ALIKES[name], *STEPS)


@pytest.mark.parametrize("name", ["store_timeout", "port_in_use", "raised", "worker_killed"])
def test_what_was_overcome_is_no_failure_beside_nccls_lines_either(name):
    lines = next(line for case, _, line in CASES if case == name)
    assert [item.name for item in read(*lines.splitlines()).failures] == [name]
    report = read(*lines.splitlines(), COMPLETE)
    assert report.failures == ()
    assert read(*lines.splitlines(), "# Avg bus bandwidth    : 178.4").failures == ()


BESIDE = ("[RANK 1]", "(Actor", "torch/lib")


def test_a_failure_of_cuda_without_nccls_head_is_found_among_other_lines(tmp_path):
    lines = [*STEPS, "worker3: Cuda failure 802 'system not yet initialized'", *STEPS]
    (tmp_path / "a.log").write_text("\n".join(lines))
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert (failure.name, failure.evidence[0].line) == ("system_not_ready", len(STEPS) + 1)


@pytest.mark.parametrize("name", ["collective_kinds", "mlx5_completion", "nccl_library"])
def test_a_failure_is_found_in_a_file_of_other_lines_alone(tmp_path, name):
    line = next(line for case, _, line in CASES if case == name and line.startswith(BESIDE))
    (tmp_path / "a.log").write_text(f"(Actor pid=3) step 1\n{line}\n(Actor pid=3) ends\n")
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert (failure.name, failure.evidence[0].line) == (name, 2)


def test_a_failure_beside_a_warning_that_tells_nothing_is_still_told():
    harmless = warn("configure_nvls_option:287", "NET/OFI Could not find ncclGetVersion symbol")
    assert read(harmless).failures == ()
    fails = warn("x:1", "NET/OFI Could not find the memory's provider")
    assert [item.name for item in read(harmless, fails).failures] == ["ofi"]


ROOT = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_08:04:51
  host      : node1
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 4711)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_08:04:51
  host      : node2
  rank      : 3 (local_rank: 1)
  exitcode  : {} (pid: 4712)
  error_file: <N/A>
============================================================"""


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("-9", "killed", "rank 3 was killed"),
        ("-11", "segfault", "native code"),
        ("1", "rank_exit_report", "rank 3 ended with exit code 1; torchrun's report has no"),
        ("-6", "rank_exit", "with SIGABRT"),
        ("137", "killed", "rank 3 was killed"),
    ],
)
def test_torchruns_root_cause_names_rank_and_host(tmp_path, code, name, said):
    (tmp_path / "a.log").write_text("step 1\n" * 9 + ROOT.format(code))
    for report in (read(ROOT.format(code)), read_nccl_logs([str(tmp_path / "a.log")])):
        (failure,) = report.failures
        assert (failure.name, failure.hosts) == (name, ("node2",))
        assert said in failure.cause


def test_a_line_of_torchs_is_not_the_rest_of_a_warning():
    stuck = "[E1 ProcessGroupNCCL.cpp:1484] ProcessGroupNCCL's watchdog got stuck for 300 seconds"
    report = read(warn("transport/p2p.cc:944", "rank 0 did IPC register userbuff"), stuck)
    assert [item.evidence[0].line for item in report.failures] == [2]


def test_a_process_that_the_launcher_ended_is_not_the_first():
    others = ROOT.partition("Root Cause")[0]
    killed = "  traceback : Signal 9 (SIGKILL) received by PID 4711"
    cut = f"{others}{killed}\nRoot Cause (first observed failure):\n[0]:\n  rank      : 1"
    for report in (read(others, killed), read(cut)):
        assert [failure.name for failure in report.failures] == ["child_failed"]
    (failure,) = read(others, killed, ROOT.format("1")).failures
    assert failure.name == "rank_exit_report"


RAISED = ["[rank3]: Traceback (most recent call last):", "[rank3]: KeyError: 'labels'"]


def test_a_rank_that_raised_first_is_the_root_of_what_the_others_say():
    timeout = WORK.format(0, 7, "ALLREDUCE", 1)
    closed = warn("misc/socket.cc:57", "socketProgress: Connection closed by remote peer n1<5>")
    names = [item.name for item in read(*RAISED, timeout).failures]
    assert names == ["raised", "collective_timeout"]
    assert [item.name for item in read(*RAISED, closed).failures] == ["raised"]
    assert [item.name for item in read(closed, *RAISED).failures] == ["peer_closed"]
    # A cause that is known says more, and what the launcher says of the end less.
    assert [item.name for item in read(*RAISED, ib("12")).failures] == ["retry_exceeded"]
    assert [item.name for item in read(ROOT.format(1), *RAISED).failures] == ["raised"]


@pytest.mark.parametrize(
    "lines",
    [
        ["Exception ignored in: <function f>", *RAISED],
        [RAISED[0], "ConnectionResetError: [Errno 104] Connection reset by peer"],
        [RAISED[0], "  File 'a.py', line 1, in f", "    raise ValueError"],
    ],
)
def test_a_traceback_that_is_no_ones_own_failure_is_not_told(lines):
    with pytest.raises(HpcTrainError):
        read(*lines)


@pytest.mark.parametrize("between", ["failed :", "failed : No ro", "Connect to 10."])
def test_a_warning_that_a_terminal_wrapped_is_read_as_one(tmp_path, between):
    line = warn("misc/socket.cc:1", "socketPoll: Connect to 10.0.0.4<5> failed : No route to host")
    cut = line.index(between) + len(between)
    wrapped = [line[:cut], line[cut:].lstrip() if between == "failed :" else line[cut:]]
    (tmp_path / "a.log").write_text("\n".join(["x", *wrapped, "step 1 loss 2"]))
    for report in (read(*wrapped), read_nccl_logs([str(tmp_path / "a.log")])):
        assert [item.name for item in report.failures] == ["connect"]
        assert report.warnings == ()
    # What another one says is no rest.
    others = read(line[:cut], f"{HEAD}NCCL INFO {line[cut:]}").failures
    assert "connect" not in [item.name for item in others]


LINE = warn("misc/ibvwrap.cc:187", "Call to ibv_modify_qp failed with 110")

BUS = (
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared"
    " memory (shm)."
)

KILLED = (
    "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that"
    " dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
)

BEFORE = ("", "[1,3]<stderr>:", "12: ", "[rank3]: ", "[default3]:")


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("said", [BUS, KILLED])
@pytest.mark.parametrize("width", [60, 72, 80, 100, 120])
def test_words_of_shared_memory_are_read_whatever_width_wrapped_them(before, said, width, tmp_path):
    parts = [said[at : at + width] for at in range(0, len(said), width)]
    (tmp_path / "a.log").write_text("\n".join(["step 1", *(before + part for part in parts)]))
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert failure.name == "worker_shm"


@pytest.mark.parametrize("before", BEFORE)
def test_a_warning_that_was_wrapped_behind_a_launchers_prefix_is_read_as_one(before):
    said = warn("misc/socket.cc:1", "socketPoll: Connect to 10.0.0.4<5> failed :")
    (failure,) = read(before + said, f"{before}No route to host").failures
    assert failure.name == "connect"


DRESSED = {
    "docker's JSON": json.dumps({"log": LINE + "\n", "stream": "stderr", "time": "2026"}),
    "a logger's JSON": json.dumps({"level": "error", "message": f"x\n{LINE}"}),
    "colours": f"\x1b[31m{LINE[:20]}\x1b[0m{LINE[20:]}\x1b[0m",
    "docker compose": f"worker-1  | {LINE}",
    "mpirun": f"[1,0]<stderr>:{LINE}",
    "srun -l": f"12: {LINE}",
    "ray": f"(Worker pid=4711, ip=10.0.0.2) {LINE}",
    "kubectl": f"[pod/train-0/pytorch] 2026-11-21T08:04:51.123Z {LINE}",
}


@pytest.mark.parametrize("dress", DRESSED)
def test_a_line_is_read_in_whatever_a_container_or_launcher_puts_around_it(tmp_path, dress):
    (tmp_path / "a.log").write_text(DRESSED[dress] + "\n")
    report = read_nccl_logs([str(tmp_path / "a.log")])
    assert [item.name for item in report.failures] == ["gid_timeout"]
    assert report.speakers == ("gpu07",)


def test_a_metric_whose_name_has_the_word_hides_no_failure_and_costs_little(tmp_path):
    lines = [f"step {i} mean Error: 0.{i}" for i in range(100_000)]
    lines.insert(90_000, "RuntimeError: CUDA error: device-side assert triggered")
    (tmp_path / "a.log").write_text("\n".join(lines))
    start = time.process_time()
    (failure,) = read_nccl_logs([str(tmp_path / "a.log")]).failures
    assert time.process_time() - start < 1.5  # 0.2 s; 4 s where each line is looked at
    assert failure.evidence[0].line == 90_001


def test_nothing_is_said_of_nccl_where_the_log_has_nothing_of_it():
    told = "\n".join(explain(read(*RAISED)))
    assert "KeyError: 'labels'" in told
    assert "NCCL" not in told
