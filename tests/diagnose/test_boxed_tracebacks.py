"""Tracebacks in the frame that rich draws, as typer and Lightning's command line show them."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.read_logs import diagnose_logs

BOX = """step 1 loss 2
{0}╭───────────────── Traceback (most recent call last) ─────────────────╮
{0}│ /w/train.py:23 in main                                               │
{0}│                                                                      │
{0}│   20 │   try:                                                        │
{0}│   21 │   │   fit()                                                   │
{0}│ ❱ 23 │   except ValueError: fit()                                    │
{0}│                                                                      │
{0}│ /env/lib/python3.11/site-packages/torch/utils/data/dataloader.py     │
{0}│ :444 in __iter__                                                     │
{0}│                                                                      │
{0}│ ╭─ locals ─────────────────────────────╮                             │
{0}│ │ error = RuntimeError: another one    │                             │
{0}│ ╰──────────────────────────────────────╯                             │
{0}╰──────────────────────────────────────────────────────────────────────╯
{0}{1}
"""


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_a_traceback_in_a_frame_ends_with_the_line_below_it(tmp_path, prefix):
    (tmp_path / "a.log").write_text(BOX.format(prefix, "ValueError: seven"))
    found = diagnose_logs([str(tmp_path / "a.log")])
    (first,) = found.findings
    assert (first.name, first.cause) == ("raised", "a process raised ValueError: seven")
    assert found.traceback[1:] == (
        '  File "/w/train.py", line 23, in main',
        (
            '  File "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 444,'
            " in __iter__"
        ),
        "ValueError: seven",
    )


def test_a_cause_below_such_a_frame_is_told(tmp_path):
    error = "ModuleNotFoundError: No module named 'einops'"
    (tmp_path / "a.log").write_text(BOX.format("", error))
    assert diagnose_logs([str(tmp_path / "a.log")]).findings[0].name == "missing_module"
