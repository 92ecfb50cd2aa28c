"""A log that was cut begins within a traceback: frames that end in an error are its first one."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.diagnosis import told
from hpc_train.diagnose.read_logs import diagnose_logs

FRAMES = """{0}  File "/w/train.py", line 7, in main
{0}    run()
{0}  File "/w/loop.py", line 3, in run
{0}    step()
{0}OddError: seven
"""
LATER = """{0}Traceback (most recent call last): (RANK 1)
{0}  File "/w/other.py", line 9, in other
{0}    go()
{0}OddError: eight
"""


def diagnosed(tmp_path, text: str):
    (tmp_path / "a.log").write_text(text)
    return diagnose_logs([str(tmp_path / "a.log")])


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_frames_without_a_head_are_the_first_traceback(tmp_path, prefix):
    found = diagnosed(tmp_path, (FRAMES + LATER).format(prefix))
    assert found.traceback[0].strip() == 'File "/w/train.py", line 7, in main'
    assert found.traceback[-1] == "OddError: seven"
    assert found.traceback_at.line == 1
    assert "other.py" not in "\n".join(told(found))


def test_frames_of_an_ignored_traceback_are_not_taken_for_it(tmp_path):
    ignored = "Exception ignored in: <function f at 0x7f>\nTraceback (most recent call last):\n"
    found = diagnosed(tmp_path, ignored + FRAMES.format("") + LATER.format(""))
    assert found.traceback[0] == "Traceback (most recent call last): (RANK 1)"


def test_frames_that_end_in_no_error_are_none(tmp_path):
    found = diagnosed(
        tmp_path, '  File "/w/train.py", line 7, in main\nstep 1\n' + LATER.format("")
    )
    assert found.traceback[0] == "Traceback (most recent call last): (RANK 1)"


CUT = """step 1
{0}  File "/w/train.py", line 7, in main
{0}    run()
{0}  File "/w/loop.py", line 3, in run
"""


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
@pytest.mark.parametrize("rest", ["", "{0}    step()\n", "\n"])
def test_frames_that_a_log_ends_with_are_a_traceback_that_was_cut(tmp_path, prefix, rest):
    found = diagnosed(tmp_path, (CUT + rest).format(prefix))
    (one,) = found.findings
    assert one.cause == 'a traceback is cut off at File "/w/loop.py", line 3, in run'
    assert one.fix == ""


def test_frames_that_lines_follow_are_no_end(tmp_path):
    assert diagnosed(tmp_path, f"{CUT.format('')}step 2\n").findings == ()
