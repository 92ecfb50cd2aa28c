"""Values whose form sbatch(1) fixes: what is refused before Slurm reads it as something else."""

from __future__ import annotations

import pytest

from hpc_train.errors import ConfigError
from hpc_train.plan.sbatch_options import check_form
from hpc_train.slurm.refusals import refusal_error


@pytest.mark.parametrize(
    ("written", "what", "bare"),
    [
        ("12345", "12345, without its kind", "12345"),
        ("12_3", "12_3, without its kind", "12_3"),
        ("12:13", "12:13, without its kind", "12:13"),
        ("afterok:1,2", "afterok:1,2, and 2 is without its kind", "2"),
    ],
)
def test_a_dependency_without_its_kind_is_refused(written: str, what: str, bare: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_form("dependency", written)
    assert refused.value.message.endswith(f"slurm.dependency is {what}")
    fix = f"write afterok:{bare} (after it ended well) or afterany:{bare}"
    assert refused.value.hint == fix


@pytest.mark.parametrize(
    "written",
    [
        *("after:1", "after:1+5", "after:1+5:2+10", "afterany:1", "afterburstbuffer:1"),
        *("aftercorr:1", "afternotok:1:2", "afterok:1", "expand:1", "singleton"),
        *("afterok:1,afterany:2", "afterok:1?afternotok:2", "afterok:12_3", "afterok:12_*"),
        *("afterok:1,singleton", "AfterOK:1"),
    ],
)
def test_each_form_of_a_dependency_passes(written: str) -> None:
    check_form("dependency", written)


def test_a_begin_that_sbatch_refuses_is_told_its_form() -> None:
    error = refusal_error("sbatch: error: Invalid --begin specification\n")
    assert error.hint.startswith(
        "change slurm.begin: write it like now+1hour, 16:00 or 2026-11-26T08:00"
    )
