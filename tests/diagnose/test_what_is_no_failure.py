"""What a log shows and is worth telling, though it is no failure."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.nccl.nccl_log import read_nccl_logs
from hpc_train.diagnose.read_logs import diagnose_logs

HEAD = """# nThread 1 nGpus 2 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20
#   Rank  0 Pid 871210 on node1 device  0 [0x01] NVIDIA GeForce RTX 4090
#       size         count      type   redop     time   algbw   busbw  error     time   algbw
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)
"""
ROW = (
    "           8             2     float     sum    10.53    0.00    0.00  0e+00    10.11   0.00\n"
)
COMM = "node1:213:213 [0] include/socket.h:"
OTHER = (
    f"{COMM}197 NCCL WARN Net : No interface found in the same subnet as remote address 10.9.0.1<7>"
)
UP = "node1:213:213 [0] NCCL INFO comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1 - Init COMPLETE"
RAS = """Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 16 on node node1
"""


def notes(tmp_path, text: str) -> tuple[str, ...]:
    (tmp_path / "a.log").write_text(text)
    found = diagnose_logs([str(tmp_path / "a.log")])
    assert found.findings == ()
    return found.notes


def test_a_table_of_nccl_tests_without_a_row_is_a_note(tmp_path):
    (note,) = notes(tmp_path, HEAD + "\n")
    assert "no size was measured by then, or the log was cut" in note
    assert notes(tmp_path, HEAD + ROW) == ()


def heads(*nodes: str) -> str:
    """What one GPU a program writes, on each node a program of its own."""
    first = HEAD.replace("nGpus 2", "nGpus 1").splitlines()
    ranks = [first[1].replace("node1", node) for node in nodes]
    return "\n".join([first[0]] * len(nodes) + ranks + first[2:]) + "\n"


def test_a_rank_that_is_alone_is_not_told_to_try_a_way_to_another(tmp_path):
    (note,) = notes(tmp_path, heads("node1"))
    assert "one rank with one GPU" in note
    assert "NCCL_P2P_DISABLE" not in note


def test_heads_of_nccl_tests_with_a_rank_0_each_are_a_build_without_mpi(tmp_path):
    (note,) = notes(tmp_path, heads("node1", "node2"))
    assert "2 programs are rank 0 each: it was built without MPI=1" in note
    assert "NCCL_P2P_DISABLE" not in note
    (later,) = notes(tmp_path, heads("node1") + ROW + heads("node1"))
    assert "MPI=1, so that" not in later


def test_the_counts_of_a_report_of_ncclras_are_a_note(tmp_path):
    (note,) = notes(tmp_path, RAS)
    assert "7 ranks at 64; 1 rank (7 on node1) at 60" in note


def test_beside_a_failure_only_the_failure_is_told(tmp_path):
    (tmp_path / "a.log").write_text(
        f"{RAS}RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    found = diagnose_logs([str(tmp_path / "a.log")])
    assert [item.name for item in found.findings] == ["torch_oom"]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (UP, []),
        (
            f"{COMM}333 NCCL WARN Call to bind failed : Cannot assign requested address",
            ["bind_address"],
        ),
        (
            f"{COMM}9 NCCL WARN NET/Socket : No usable listening interface found",
            ["comm_id_interface"],
        ),
    ],
)
def test_an_address_in_another_subnet_is_no_failure_by_itself(tmp_path, line, names):
    (tmp_path / "a.log").write_text(f"{OTHER}\n{line}\n")
    report = read_nccl_logs([str(tmp_path / "a.log")])
    assert [item.name for item in report.failures] == names
    assert [item.name for item in report.notes] == ["other_subnet"]
    assert "NCCL_SOCKET_IFNAME" not in "".join(item.fix for item in report.failures)


def test_a_driver_that_nccl_does_not_find_is_a_note(tmp_path):
    (note,) = notes(
        tmp_path,
        "node1:213:213 [0] misc/cudawrap.cc:179 NCCL WARN Failed to find CUDA library libcuda.so"
        " (NCCL_CUDA_PATH='') : libcuda.so: cannot open shared object file\n",
    )
    assert "/usr/lib/wsl/lib" in note


RESET = (
    "[W506 01:43:56.240378877 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=3,"
    " addr=[node1]:46466, remote=[node1]:29500): Connection reset by peer"
)


def test_one_line_that_is_a_warning_is_a_note_and_two_are_a_failure(tmp_path):
    (note,) = notes(tmp_path, f"{RESET}\n")
    assert note.startswith("only a warning says so, and a program may go on after it: a connection")
    (tmp_path / "a.log").write_text(f"{RESET}\n[rank3]: ValueError: seven\n")
    assert diagnose_logs([str(tmp_path / "a.log")]).findings


def test_an_optional_package_that_was_not_imported_is_a_note(tmp_path):
    said = (
        "/env/torch_geometric/typing.py:{}: UserWarning: An issue occurred while importing '{}'."
        " Disabling its usage. Stacktrace: /lib64/libm.so.6: version `GLIBC_2.29' not found"
        " (required by /env/libpyg.so)\n"
    )
    (note,) = notes(tmp_path, said.format(54, "pyg-lib") + said.format(110, "torch-sparse"))
    assert note.startswith("pyg-lib, a package that the program can do without")
    assert "GLIBC_2.29" in note


LISTEN = "[W socket.cpp:401] [c10d] The server socket has failed to listen on [::]:47531 (errno: 98"
WARNINGS = {
    "one address of several": f"{LISTEN} - Address already in use).",
    "a name that is asked for again": "[W socket.cpp:663] [c10d] The IPv4 network addresses of"
    " (node9, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
    "an extension that is not needed": "/env/torchvision/io/image.py:13: UserWarning: Failed to"
    " load image Python extension: libpng16.so.16: cannot open shared object file: No such file",
    "a graph that is run without a compiler": "[rank0]:W1024 01:17:10.936000 140404 torch/_dynamo/"
    "convert_frame.py:1009] torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
}
CUDA = (
    "torch/cuda/__init__.py:52: UserWarning: CUDA initialization: CUDA unknown error - this may be"
    " due to an incorrectly set up environment"
)
STEPS = "".join(f"step {n} loss 1\n" for n in range(40))


@pytest.mark.parametrize("name", WARNINGS)
def test_a_warning_alone_that_states_a_cause_is_a_note(tmp_path, name):
    (note,) = notes(tmp_path, f"step 1\n{WARNINGS[name]}\n{STEPS}")
    assert note.startswith("only a warning says so, and a program may go on after it: ")


def failed(tmp_path, text: str) -> list[str]:
    (tmp_path / "b.log").write_text(text)
    return [item.name for item in diagnose_logs([str(tmp_path / "b.log")]).findings]


def test_a_warning_beside_an_error_tells_its_cause(tmp_path):
    line = f"{WARNINGS['one address of several']}\n"
    error = "RuntimeError: The server socket has failed to listen on any local network address."
    assert failed(tmp_path, f"{line}{error}\n") == ["port_in_use"]


def test_a_warning_that_is_said_until_the_log_ends_is_a_failure(tmp_path):
    line = f"{WARNINGS['a name that is asked for again']}\n"
    assert failed(tmp_path, line * 2) == ["host_name"]
    assert failed(tmp_path, line * 2 + STEPS) == []


def test_a_warning_that_cuda_is_gone_is_a_failure_unless_the_program_goes_on(tmp_path):
    assert failed(tmp_path, f"{CUDA}\nstep 1\n") == ["cuda_start"]
    assert failed(tmp_path, f"{CUDA}\n{STEPS}") == []


REQUEUED = (
    "slurmstepd: error: *** JOB 6 ON node1 CANCELLED AT 2026-08-12T03:06:12 DUE TO JOB REQUEUE ***"
)


def test_a_requeue_is_told_where_nothing_else_is_and_no_failure_of_what_goes_on(tmp_path):
    assert failed(tmp_path, f"{STEPS}{REQUEUED}\n") == ["requeued"]
    (note,) = notes(tmp_path, f"{STEPS}{REQUEUED}\n{STEPS}")
    assert note.startswith("Slurm ended the job to start it again")
    assert failed(tmp_path, f"{REQUEUED}\n[rank3]: ValueError: seven\n")[0] != "requeued"
    killed = "/job/slurm_script: line 3: 4242 Killed                  python train.py"
    assert failed(tmp_path, f"{killed}\n{REQUEUED}\n") == ["killed"]


def test_a_traceback_of_logging_itself_is_no_failure(tmp_path):
    trace = 'Traceback (most recent call last):\n  File "/usr/lib/python3.11/logging/__init__.py",'
    text = f"--- Logging error ---\n{trace} line 1110, in emit\nTypeError: not all arguments\n"
    assert failed(tmp_path, f"{text}{STEPS}") == []


SCRIPT = "/var/spool/slurmd/job12/slurm_script: line 4:"


@pytest.mark.parametrize(
    ("said", "more"),
    [
        (f"{SCRIPT} module: command not found", 3),
        ("bash: line 2: conda: command not found", 3),
        (f"{SCRIPT} nvidia-smi: command not found", 3),
        (f"{SCRIPT} dates: command not found", 21),
        (f"{SCRIPT} cd: /scratch/me: No such file or directory", 21),
        ("/home/u/env.sh: line 2: $'\\r': command not found", 21),
    ],
)
def test_what_a_script_went_on_after_is_a_note_and_ends_a_job_that_did_not(tmp_path, said, more):
    steps = "".join(f"step {number} loss 0.3\n" for number in range(more))
    for text in (f"{said}\n{steps}", f"{said}\n{steps}" + "epoch 7\n" * 300_000):
        found = notes(tmp_path, text)
        assert len(found) == 1
        assert "this was overcome: " in found[0]
    (tmp_path / "a.log").write_text(f"step 0\n{said}\n")
    assert len(diagnose_logs([str(tmp_path / "a.log")]).findings) == 1


NO_FOLDER = f"{SCRIPT} cd: /scratch/me: No such file or directory"
NO_SCRIPT = "python: can't open file '/home/u/train.py': [Errno 2] No such file or directory"
NO_MODULE = f"{SCRIPT} module: command not found"
RAISED = """Traceback (most recent call last):
  File "train.py", line 1, in <module>
ModuleNotFoundError: No module named 'torch'"""


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([NO_FOLDER, NO_SCRIPT], "folder_missing"),
        ([NO_MODULE, f"{SCRIPT} torchrun: command not found"], "not_activated"),
        ([NO_MODULE, f"{SCRIPT} my-tool: command not found"], "command_missing"),
        ([NO_MODULE, RAISED], "not_activated"),
        ([f"{SCRIPT} nvidia-smi: command not found", RAISED], "missing_module"),
    ],
)
def test_of_a_script_that_went_wrong_the_first_thing_that_matters_is_told(tmp_path, lines, name):
    (tmp_path / "a.log").write_text("\n".join([*lines, ""]))
    assert diagnose_logs([str(tmp_path / "a.log")]).findings[0].name == name
