"""Who wrote a line and when: only what the lines are certain of."""

from __future__ import annotations

import os
from datetime import datetime

import pytest

from hpc_train.diagnose.around import look_around
from hpc_train.diagnose.diagnosis import Culprit
from hpc_train.diagnose.read_logs import ReadLogs
from hpc_train.diagnose.rules import Evidence
from hpc_train.diagnose.who import rank_of

WARN = "n1:1:2 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has checked in"
# The lines of a log; the rank that wrote the last one.
LINES = {
    "srun -l": (["0: a", " 1: b", " 0: c", " 1: RuntimeError: x"], 1),
    "srun -l of one task": (["7: a", "7: RuntimeError: x"], None),
    "ctest": (["91: a", "91: b", "91: RuntimeError: x"], None),
    "numbers of lines": (["11: a", "12: b", "13: RuntimeError: x"], None),
    "torch": (["step 1", "[rank3]: RuntimeError: x"], 3),
    "torchrun's local rank": (["[default3]:RuntimeError: x"], None),
    "torchrun's local rank before torch's": (["[default0]:[rank12]: RuntimeError: x"], 12),
    "mpirun": (["[1,5]<stderr>:RuntimeError: x"], 5),
    "mpirun behind a clock": (["2019-06-02T16:13:44Z: [1,5]<stdout>:n1:1:2 [0] x"], 5),
    "a program's own words": (["rank 4 failed"], 4),
    "a sentence about others": (["ValueError: TP rank 1 is ready, others are not"], None),
    "on a rank": (["RuntimeError: the communicator was aborted on rank 6"], 6),
    "another rank's": (["timeout waiting for a message from rank 4"], None),
    "NCCL's words of another rank": ([WARN], None),
    "srun -l of launchers": (["0: a", "3: [rank24]: b", "0: c", f"0: {WARN}"], None),
    "srun -l before NCCL's": (["0: a", "2: b", "0: c", f"2: {WARN}"], 2),
}


@pytest.mark.parametrize("name", LINES)
def test_a_rank_is_told_only_where_it_is_certain(tmp_path, name):
    lines, rank = LINES[name]
    path = tmp_path / "job.log"
    path.write_text("\n".join(lines))
    place = Evidence(file=str(path), line=len(lines), text=lines[-1])
    assert rank_of(place, is_labelled=look_around(place).is_labelled) == rank


# The lines before `NameError`; the step.
STEPS = {
    "step 5/100\nstep 6/100": 6,
    "step 6/100": None,
    "step 9 of an earlier run\nstep 2": None,
    "Step 6/6 : CMD python ./demo.py": None,
    "# nThread 1 step: 2(factor)": None,
    "global_step=11\nglobal_step=12": 12,
}


@pytest.mark.parametrize("before", STEPS)
def test_a_step_is_one_of_a_training(tmp_path, before):
    path = tmp_path / "job.log"
    path.write_text(f"{before}\nNameError: x\n")
    assert (
        look_around(Evidence(file=str(path), line=before.count("\n") + 2, text="NameError: x")).step
        == STEPS[before]
    )


def test_the_time_of_an_earlier_line_is_told_as_that(tmp_path):
    path = tmp_path / "job.log"
    own = "ERROR 08-03 21:49:23 [core.py:1231] ValueError: x"
    path.write_text(f"[rank0]:W0803 21:48:43.773000 6890 torch/utils.py:1] y\n{own}\nKeyError: z\n")
    said = []
    for line, text in ((2, own), (3, "KeyError: z")):
        around = look_around(Evidence(file=str(path), line=line, text=text))
        clock = {name: getattr(around, name) for name in ("time", "is_later", "is_dated")}
        item = Culprit(name="a", cause="b", fix="c", **clock)
        said.append(item.who)
    assert said == ["08-03 21:49:23", "after 08-03 21:49:23"]


# What the log tells; the day that is told of it, where the file ended on 2026-01-01.
DAYS = {
    "2025-12-31 23:59:58 x": "2025-12-31",
    "E1231 23:59:58.000000 1 a.py:1] x": "12-31",
    "Dec 31 23:59:58 n1 kernel: x": "12-31",
}
# torch's own logger writes month * 100 + day, without a nought before it.
MONTHS = {
    "[rank1]:[W104 02:07:08.123456789 a.cpp:1] x": "01-04 02:07:08",
    "[E1112 02:07:08.1 a] x": "11-12 02:07:08",
}


@pytest.mark.parametrize("line", MONTHS)
def test_the_month_of_torchs_own_logger_may_have_one_digit(line):
    around = look_around(Evidence(file="", line=1, text=line))
    item = Culprit(name="a", cause="b", fix="c", time=around.time, is_dated=around.is_dated)
    assert item.who == MONTHS[line]


@pytest.mark.parametrize("line", DAYS)
def test_a_year_is_told_where_the_log_tells_it(tmp_path, line):
    path = tmp_path / "job.log"
    path.write_text(f"{line}\n")
    end = datetime(2026, 1, 1, 0, 0, 1).timestamp()
    os.utime(path, (end, end))
    around = look_around(Evidence(file=str(path), line=1, text=line))
    item = Culprit(name="a", cause="b", fix="c", time=around.time, is_dated=around.is_dated)
    assert item.who == f"{DAYS[line]} 23:59:58"
    assert around.time == end - 3


FRAMES = ['  File "a.py", line 3, in f', "    g()", '  File "b.py", line 7, in g', "    h(]"]
# What stands before the lines of one process, and a line of another one between them.
PREFIXES = {
    "nothing": ("", ""),
    "torch": ("[rank1]: ", "[rank0]:   File 'c.py', line 1, in x"),
    "Ray": ("(pid=71) ", "(pid=72) loading"),
    "Ray's actors": ("(Worker pid=71, ip=10.0.0.3) ", "(Worker pid=72, ip=10.0.0.4)   File 'c.py'"),
    "a clock": ("2026-01-02T03:04:05.678Z [a] ", "2026-01-02T03:04:09.000Z [b] step 3"),
    "blanks": ("      ", ""),
}


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.parametrize("end", ["", "KeyError: 'x'"])
def test_a_traceback_is_read_to_its_end_whatever_stands_before_its_lines(tmp_path, name, end):
    before, other = PREFIXES[name]
    ours = ["Traceback (most recent call last):", *FRAMES, *([end] if end else [])]
    lines = [f"{before}{line}" for line in ours]
    if other:
        lines.insert(3, other)
    path = tmp_path / "job.log"
    path.write_text("\n".join(["step 1", *lines, ""]))
    around = look_around(Evidence(file=str(path), line=2, text=lines[0].strip()))
    assert list(around.traceback()) == ours


@pytest.mark.parametrize("count", [5, 900])
def test_a_traceback_that_goes_on_is_not_called_cut_and_its_last_frame_has_its_own_line(
    tmp_path, count
):
    frames = [f'[rank2]:   File "a.py", line {n}, in f' for n in range(count)]
    path = tmp_path / "job.log"
    path.write_text("\n".join(["step 1", "Traceback (most recent call last):", *frames, ""]))
    logs = ReadLogs()
    logs.read(str(path))
    found = logs.diagnosis("a").findings[0]
    (place,) = found.evidence
    assert place.text in path.read_text().splitlines()[place.line - 1]
    assert found.rank == 2
    assert found.cause.startswith("a traceback is cut off at") is (count == 5)


def test_a_traceback_of_standard_input_is_not_called_cut():
    logs = ReadLogs()
    logs.feed("Traceback (most recent call last):", "-", 4)
    assert logs.diagnosis("-").findings[0].cause == (
        "there is a traceback, of which no more is known"
    )


def test_the_time_in_torchruns_report_is_that_of_the_failure(tmp_path):
    path = tmp_path / "job.log"
    report = [
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-01-02_03:04:05",
        "  host      : n1",
        "  rank      : 3 (local_rank: 3)",
        "  exitcode  : -9 (pid: 5)",
        "  error_file: <N/A>",
        "  traceback : Signal 9 (SIGKILL) received by PID 5",
    ]
    path.write_text("\n".join(report))
    logs = ReadLogs()
    logs.read(str(path))
    (found,) = logs.findings()
    assert (found.who, found.times) == ("on n1, 2026-01-02 03:04:05", 1)
    assert found.alike == ""
