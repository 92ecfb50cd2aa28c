"""What is told for a word that a sweep lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.runs.status import RunStatus
from hpc_train.runs.sweep_dir import SweepDir
from hpc_train.runs.sweep_status import PointStatus, SweepStatus
from hpc_train.sweeps import Sweep

POINTS = "sweep.status().points"
AT_END = f"[sweep.run(it.number).wait() for it in {POINTS}]; each waits for the end of its point"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((name, f": write {AT_END}") for name in ("wait", "results", "metrics")),
        *((name, f": write {POINTS}") for name in ("points", "trials")),
        ("runs", f": write [sweep.run(it.number) for it in {POINTS}]"),
        ("logs", f": write for point in {POINTS}: sweep.run(point.number)"),
        ("state", ": write sweep.status().state"),
        ("summary", ": write sweep.status().summary"),
        ("name", ": write sweep.status().name"),
        ("path", ": write sweep.directory.path"),
        ("sweep_id", ": write sweep.directory.sweep_id"),
        ("stop", ": write sweep.cancel()"),
        ("nothing", ""),
    ],
)
def test_a_word_is_told_with_where_it_is(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(Sweep(SweepDir(tmp_path)), name)
    assert str(caught.value) == f"Sweep has no {name!r}{said}"


def test_what_is_told_is_there() -> None:
    for name in ("points", "state", "summary"):
        assert name in SweepStatus.__dataclass_fields__ or hasattr(SweepStatus, name)
    for name in ("run", "status", "cancel", "resume"):
        assert hasattr(Sweep, name)
    assert {"number", "run"} <= {*PointStatus.__dataclass_fields__}
    assert "metrics" in RunStatus.__dataclass_fields__
    assert hasattr(api.Run, "wait")
