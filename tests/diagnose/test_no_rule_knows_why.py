"""Where no rule knows why a log gives no advice; what lines before one tell is told with it."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.diagnosis import told
from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines
from hpc_train.diagnose.nccl.nccl_text import explain
from hpc_train.diagnose.read_logs import diagnose_logs

TRACEBACK = "Traceback (most recent call last):"
PACKAGES = "/env/lib/python3.11/site-packages"
AGENT = [
    TRACEBACK,
    f'  File "{PACKAGES}/torch/distributed/launcher/api.py", line 264, in launch_agent',
    "    result = agent.run()",
    f'  File "{PACKAGES}/torch/distributed/elastic/agent/server/api.py", line 711, in run',
]
REPORT = [
    "Root Cause (first observed failure):",
    "[0]:",
    "  time      : 2026-11-21_08:04:51",
    "  host      : n1",
    "  rank      : 2 (local_rank: 2)",
    "  exitcode  : 1 (pid: 4100)",
    "  error_file: <N/A>",
]


def diagnosis(tmp_path, *lines: str):
    (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
    return diagnose_logs([str(tmp_path / "a.log")])


def first(tmp_path, *lines: str):
    return diagnosis(tmp_path, *lines).findings[0]


NOBODY_KNOWS = {
    "a shell": ["Aborted (core dumped)"],
    "an agent's traceback that is cut": AGENT,
    "an exception": [TRACEBACK, '  File "a.py", line 1, in f', "KeyError: 'x'"],
    "an exception alone": ["ValueError: no such axis"],
    "packages alone": [TRACEBACK, f'  File "{PACKAGES}/a/b.py", line 3, in f', "Odd: 3"],
    "a report below the rank's own": [TRACEBACK, '  File "a.py", line 1, in f', *REPORT],
}


@pytest.mark.parametrize("name", NOBODY_KNOWS)
def test_where_no_rule_knows_why_there_is_no_advice(name, tmp_path):
    found = diagnosis(tmp_path, *NOBODY_KNOWS[name])
    assert found.findings[0].fix == ""
    assert not any(line.startswith("  fix:") for line in told(found))
    assert found.to_json()["fix"] is None


def test_a_report_without_the_ranks_error_says_where_it_is(tmp_path):
    found = first(tmp_path, *REPORT)
    assert "rank 2 ended with exit code 1; torchrun's report has no error" in found.cause
    assert found.fix.startswith("that rank's own output")
    raised = [*AGENT[:2], "    raise ChildFailedError("]
    assert "--redirects 3" in first(tmp_path, *raised).fix


TAKEN = [
    (
        "[W socket.cpp:401] [c10d] The server socket has failed to bind to [::]:{}"
        " (errno: 98 - Address already in use)."
    ),
    (
        "[E socket.cpp:435] [c10d] The server socket has failed to listen on any local network"
        " address."
    ),
]


def test_a_port_that_was_taken_is_told_before_a_traceback_that_is_cut(tmp_path):
    lines = [*(line.format(22) for line in TAKEN), *AGENT, *AGENT[1:] * 9]
    found = first(tmp_path, *lines)
    assert (found.name, found.is_known) == ("port_of_system", True)
    assert "another MASTER_PORT" in found.fix
    assert "end it" not in found.fix
    assert explain(read_nccl_lines(lines))[0].startswith("failed: port 22 is in use")
    found = first(tmp_path, *(line.format(29500) for line in TAKEN), *AGENT)
    assert (found.name, "29500" in found.cause) == ("port_in_use", True)


def test_a_port_that_was_taken_is_no_failure_where_the_program_goes_on(tmp_path):
    lines = [line.format(29500) for line in TAKEN]
    assert diagnosis(tmp_path, *lines, *["training goes on"] * 30).findings == ()


SYMBOL = "_ZN3c104cuda9SetDeviceEi"
LAZY = "Failed to import {} because of the following error (look up to see its traceback):"


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_of_imports_that_failed_one_in_the_other_the_innermost_is_told(prefix, tmp_path):
    said = [
        f"RuntimeError: {LAZY.format('trl.trainer.sft_trainer')}",
        LAZY.format("transformers.trainer"),
        f"/env/fast_attn.so: undefined symbol: {SYMBOL}",
    ]
    lines = [TRACEBACK, '  File "a.py", line 1, in f', *said]
    found = first(tmp_path, *(f"{prefix}{line}" for line in lines))
    assert found.name == "torch_extension"
    assert "/env/fast_attn.so was built for another torch" in found.cause


MEMBER = "GLOBAL_RANK: 0, MEMBER: 1/96"
CANCELLED = "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-11-21T08:04:51 ***"


def test_a_start_that_was_cancelled_names_the_options_of_its_own_launcher(tmp_path):
    found = first(tmp_path, MEMBER, CANCELLED)
    assert found.cause.startswith("the job was cancelled while ranks waited")
    assert "torchrun" not in found.fix
    assert "Lightning starts no processes under Slurm: srun has to stand in front" in found.fix
    found = first(tmp_path, "+ torchrun --nnodes 12 train.py", MEMBER, CANCELLED)
    assert "--rdzv-endpoint" in found.fix
    assert "Lightning" not in found.fix


LOOKUP = [
    "nslookup: can't resolve '(null)': Name does not resolve",
    "",
    "nslookup: can't resolve 'bert-master-0': Name does not resolve",
    "waiting for master",
]


def test_a_name_that_is_not_resolved_is_told_where_the_log_ends_so(tmp_path):
    assert first(tmp_path, *LOOKUP * 3).cause.endswith("until the log ends: bert-master-0")
    assert "bert-master-0" in explain(read_nccl_lines(LOOKUP * 3))[0]
    assert first(tmp_path, *["waiting for master"] * 3).name == "master_awaited"
    came = ["Name:      bert-master-0", "Address 1: 10.0.0.7", "done"]
    assert diagnosis(tmp_path, *LOOKUP * 3, *came).findings == ()


def test_open_mpis_box_without_its_hosts_is_told_as_well():
    box = "A process or daemon was unable to complete a TCP connection"
    assert "TCP connection: as a rule a firewall" in explain(read_nccl_lines([box]))[0]


def test_frames_are_named_where_none_were_told(tmp_path):
    found = first(tmp_path, "Segmentation fault (core dumped)")
    assert "write its Python frames" in found.fix
