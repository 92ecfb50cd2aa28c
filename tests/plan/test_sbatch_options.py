"""Values whose form sbatch(1) fixes: what is refused before Slurm reads it as something else."""

from __future__ import annotations

import pytest

from hpc_train.config.origins import Origins
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
        "change slurm.begin: write it like now+1hour, tomorrow, 16:00, or a date: YYYY-MM-DDT16:00"
    )


@pytest.mark.parametrize(
    ("key", "written", "joined"),
    [
        ("exclude", "node2 node3", "node2,node3"),
        ("exclude", "node2, node3", "node2,node3"),
        ("nodelist", "node[1-3] node5", "node[1-3],node5"),
        ("nodelist", "node[1, 3], node5", "node[1,3],node5"),
        ("nodelist", "['node1', 'node2']", "node1,node2"),
        ("partition", "[a,b]", "a,b"),
        ("partition", "a and b", "a,b"),
        ("licenses", "matlab:2 ansys:1", "matlab:2,ansys:1"),
    ],
)
def test_several_names_are_told_joined(key: str, written: str, joined: str) -> None:
    """It said `a,b`, with which nothing can be typed."""
    for place, fix in (("command line", f"slurm.{key}={joined}"), ("c.yaml:3", f": {joined}")):
        with pytest.raises(ConfigError) as refused:
            check_form(key, written, Origins({f"slurm.{key}": place}))
        told = refused.value.hint.replace("'", "")
        assert told.startswith("write slurm.")
        assert told.endswith(fix)
        check_form(key, joined)


@pytest.mark.parametrize(
    ("key", "written"),
    [("exclude", "node 2"), ("exclude", "a - b"), ("nodelist", "a | b"), ("qos", "very high")],
)
def test_what_may_be_one_name_is_not_joined(key: str, written: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_form(key, written)
    assert refused.value.hint.startswith("write it without spaces")
    assert refused.value.hint.endswith(": a,b")
