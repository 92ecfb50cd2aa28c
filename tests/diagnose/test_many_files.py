"""Errors of many files below one folder are told once; a long quote keeps its rank."""

from __future__ import annotations

from hpc_train.diagnose.shorten import shortened
from tests.diagnose.test_causes import findings

FRAME = 'Traceback (most recent call last):\n  File "/w/train.py", line 7, in main\n    run()\n'
ERROR = "OSError: [Errno 5] Input/output error: '{}'\n"


def test_files_that_cannot_be_read_are_told_with_their_folder():
    names = ["/mnt/data/a/1.bin", "/mnt/data/b/2.bin", "/mnt/data/b/3.bin"]
    (found,) = findings("".join(FRAME + ERROR.format(name) for name in names))
    assert found.cause.endswith("its disk: 3 files under /mnt/data")
    assert (found.times, found.alike, found.evidence[0].line) == (3, "", 4)


def test_one_file_and_files_without_a_folder_of_their_own_are_told_as_they_are():
    (found,) = findings(2 * (FRAME + ERROR.format("/mnt/data/a/1.bin")))
    assert found.cause.endswith(": /mnt/data/a/1.bin")
    (found,) = findings("".join(FRAME + ERROR.format(name) for name in ("/a/1", "/b/1")))
    assert found.cause.endswith(": /a/1")


def test_a_rank_in_the_middle_of_a_long_line_is_kept():
    text = f"{'one word ' * 30}[Rank 13] {'another word ' * 30}ends so"
    for width in (120, 200, 300):
        said = shortened(text, width)
        assert " ... [Rank 13] ... " in said
        assert len(said) <= width
        assert said.endswith("ends so")
