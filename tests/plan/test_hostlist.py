from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.plan.hostlist import expand, fold, fold_numbers

_number = st.integers(0, 30)
_bracket = st.lists(st.tuples(_number, st.integers(0, 4)), min_size=1, max_size=3).map(
    lambda ranges: "[" + ",".join(f"{low:02d}-{low + more:02d}" for low, more in ranges) + "]"
)
_piece = st.one_of(
    st.from_regex(r"\A[a-z]{1,4}[0-9]{0,2}\Z"),
    st.tuples(st.sampled_from(["n", "rack", "gpu-"]), _bracket).map("".join),
    st.tuples(st.just("r"), _bracket, st.just("n"), _bracket).map("".join),
)


def test_a_list_of_two_dimensions_is_expanded_in_slurms_order() -> None:
    assert expand("rack[1-2]n[01-02],gpu7") == [
        *("rack1n01", "rack1n02", "rack2n01", "rack2n02"),
        "gpu7",
    ]


def test_the_first_name_is_the_first_written_not_the_first_sorted() -> None:
    assert expand("z1,a[3,1]") == ["z1", "a3", "a1"]


@pytest.mark.slow
@given(st.lists(_piece, min_size=1, max_size=4).map(",".join))
def test_expanding_names_the_same_hosts_as_clustershell(hostlist: str) -> None:
    assert set(expand(hostlist)) == set(NodeSet(hostlist, resolver=RESOLVER_NOGROUP))


@given(st.lists(_piece, min_size=1, max_size=4).map(",".join))
def test_what_is_folded_expands_to_the_same_hosts(hostlist: str) -> None:
    assert sorted(expand(fold(expand(hostlist)))) == sorted(set(expand(hostlist)))


def test_folding_is_short_and_folding_nothing_is_empty() -> None:
    assert fold(f"node{number}" for number in (3, 1, 2, 2)) == "node[1-3]"
    assert fold([]) == ""
    assert fold(["gpu7"]) == "gpu7"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n[",
        "n[1-2",
        "n1-2]",
        "n[2-1]",
        "n[a]",
        "n[]",
        "a,,b",
        ",a",
        "a b",
        "$(x)",
        "@group",
        "n[1;2]",
    ],
)
def test_what_is_no_hostlist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hostlist"):
        expand(text)


def test_a_list_of_a_million_hosts_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(ValueError, match="65536"):
        expand("a[0-999]b[0-999]c[0-999]")


@pytest.mark.parametrize("name", ["a;b", "a b", "", "-x", "a\nb", "a,b"])
def test_a_name_that_is_no_host_is_not_folded(name: str) -> None:
    with pytest.raises(ValueError, match="host name"):
        fold(["node1", name])


def test_numbers_are_folded_sorted_and_each_once() -> None:
    assert fold_numbers([]) == ""
    assert fold_numbers([4]) == "4"
    assert fold_numbers([5, 0, 1, 2, 1]) == "0-2,5"
