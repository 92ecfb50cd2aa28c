"""A supervisor whose run directory cannot be written says where, and what to type."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from hpc_train.supervisor import __main__ as supervisor


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("file", ["/scratch/events.jsonl", None])
def test_a_full_disk_is_told_with_its_place_and_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    code: int, file: str | None,
) -> None:  # fmt: skip
    def supervise(*_given: object, **_named: object) -> int:
        raise OSError(code, os.strerror(code), file)  # of a close or an fsync: without a file

    monkeypatch.setattr(supervisor, "supervise", supervise)
    run = RunDir(tmp_path / "x" / "20260101-000000-aaaa")
    assert supervisor.run_to_exit_code(lambda: run) != 0
    assert capsys.readouterr().err == (
        f"hpc-train: error: the run directory cannot be written: {os.strerror(code)}"
        f" ({file or run.path})\n"
        "  fix: make room there, and then hpc-train resume 20260101-000000-aaaa\n"
    )


def test_where_no_run_could_be_made_the_config_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def find() -> RunDir:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert supervisor.run_to_exit_code(find) != 0
    said = capsys.readouterr().err
    assert "No space left on device (runs_dir of the config)" in said
    assert said.endswith("hpc-train resume RUN\n")
