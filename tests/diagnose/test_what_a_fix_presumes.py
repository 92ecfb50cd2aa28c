"""A fix holds for every log in which its line stands, or says what tells the cases apart."""

from __future__ import annotations

import re

import pytest

from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines, read_nccl_logs
from hpc_train.diagnose.read_logs import diagnose_logs
from hpc_train.diagnose.rules import read_rules

HEAD = "gpu07:4100:4188 [3] "
INIT = f"{HEAD}NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 3 busId 5f000 - Init COMPLETE"
RULES = read_rules("nccl.txt")
NEWER = re.compile(r"\b(?:newer|upgrade|update|downgrade|install)\b")
# These name the version, or what is compared.
HAS_VERSION = {"bootstrap_message", "driver"}


def read(*lines: str):
    return read_nccl_lines(lines)


def only(*lines: str):
    (failure,) = read(*lines).failures
    return failure


def test_no_fix_asks_for_another_version_without_naming_the_faulty_one():
    assert {rule.name for rule in RULES if NEWER.search(rule.fix)} <= HAS_VERSION


def test_a_fix_of_a_failure_is_not_a_list_of_all_that_may_help():
    parts = {rule.name: rule.fix.count("; ") + 1 for rule in RULES if rule.kind == "cause"}
    assert {name for name, count in parts.items() if count > 3} == set()


@pytest.mark.parametrize("name", ["cuda_init", "bind_address", "cuda_not_permitted", "writer"])
def test_a_cause_leaves_to_the_fix_what_the_line_does_not_show(name):
    (rule,) = (rule for rule in RULES if rule.name == name)
    assert not re.search(r"as a rule|most often", rule.cause)
    assert "?" in rule.fix


WRONG_MAGIC = f"{HEAD}misc/socket.cc:452 NCCL WARN socketFinalizeAccept: wrong magic 1a2b != 5e6f"


def test_a_connection_that_nccl_dropped_is_no_failure(tmp_path):
    (tmp_path / "a.log").write_text(f"{WRONG_MAGIC}\n{INIT}\n")
    assert read_nccl_logs([str(tmp_path / "a.log")]).failures == ()
    found = diagnose_logs([str(tmp_path / "a.log")])
    assert found.findings == ()
    assert "a port scanner" in found.notes[0]


MAY_GO_ON = [
    "[1665104310.2] [n1:39047:0]   UCX  ERROR mlx5_0: ibv_create_cq() failed: No memory",
    "A requested component was not found, or was unable to be opened.",
    "sh: 1: lspci: not found",
]


@pytest.mark.parametrize("line", MAY_GO_ON)
def test_what_a_program_lives_with_is_no_failure_if_it_came_further(line):
    report = read(line, INIT)
    assert report.failures == ()
    assert report.notes[0].cause.startswith("this was overcome: ")
    assert only(INIT, line).kind == "last"


def test_what_a_program_lives_with_is_told_beside_a_process_that_ended():
    ended = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    report = read(MAY_GO_ON[0], INIT, ended)
    assert [failure.name for failure in report.failures] == ["ucx_said"]
    assert report.notes == ()


def test_a_fix_does_not_ask_for_what_the_log_has_set():
    warn = f"{HEAD}transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"
    setting = f"{HEAD}NCCL INFO NCCL_NVLS_ENABLE set by environment to {{}}"
    assert "NCCL_NVLS_ENABLE=0" in only(warn, INIT.replace("COMPLETE", "START")).fix
    assert "NCCL_NVLS_ENABLE=0" in only(setting.format(1), warn).fix
    fix = only(setting.format(0), warn).fix
    assert "NCCL_NVLS_ENABLE=0" not in fix
    assert "fabric manager" in fix


def test_a_garbled_name_of_shared_memory_is_no_matter_of_the_containers():
    said = (
        f"{HEAD}misc/shmutils.cc:129 NCCL WARN Error while attaching to shared memory segment"
        " /dev/shm/{}, error: No such file or directory (2)"
    )
    other = only(said.format("nccl-\u040c (size 0)"))
    assert other.name == "shm_kinds"
    assert "NCCL_CUMEM_HOST_ENABLE=0" in other.fix
    own = only(said.format("nccl-ab12cd (size 9637888)"))
    assert own.name == "shm_attach"
    assert "CUMEM" not in own.fix


def test_a_program_by_its_path_is_not_to_be_looked_for_in_path():
    said = "slurmstepd: error: execve(): {}: No such file or directory"
    assert "PATH" not in only(said.format("/opt/env/bin/python")).fix
    assert "/opt/env/bin/python on that node" in only(said.format("/opt/env/bin/python")).fix
    assert "is torchrun in the PATH" in only(said.format("torchrun")).fix


SIGNALS = {1: "tmux", 2: "Ctrl-C", 15: "srun"}


@pytest.mark.parametrize("number", [*SIGNALS, 10])
def test_of_a_signal_only_its_own_senders_are_told(number):
    fix = only(f"torch.distributed.elastic.SignalException: Process 4 got signal: {number}").fix
    assert fix.startswith("who sent it?")
    assert [signal for signal, word in SIGNALS.items() if word in fix] == [number] * (number != 10)


def test_a_host_of_the_internet_is_not_looked_for_in_master_addr_alone():
    fix = only("socket.gaierror: [Errno -3] Temporary failure in name resolution").fix
    assert "the internet" in fix


def test_a_torch_without_cuda_is_not_told_to_look_for_gpus():
    fix = only("AssertionError: Torch not compiled with CUDA enabled").fix
    assert "nvidia-smi" not in fix
    assert "nvidia-smi" in only("RuntimeError: No CUDA GPUs are available").fix


def test_a_time_limit_is_not_to_be_raised_where_the_job_had_hung():
    said = (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-21T08:04:51 DUE TO TIME LIMIT ***"
    )
    assert only(said).fix.startswith("did it still write just before? If not, it had hung")


def test_a_lost_node_is_not_said_to_be_left_out():
    said = "srun: error: Node failure on node3"
    assert "goes on" not in only(said).fix
