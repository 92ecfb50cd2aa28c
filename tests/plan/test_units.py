from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.plan.units import memory_mib, slurm_time, time_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30 * 60),
        ("1:30", 90),
        ("1:30:00", 5400),
        ("2-0", 2 * 86400),
        ("1-12", 36 * 3600),
        ("1-02:30", 86400 + 2 * 3600 + 30 * 60),
        ("1-02:30:05", 86400 + 2 * 3600 + 30 * 60 + 5),
        (" 0:00:30 ", 30),
    ],
)
def test_every_form_of_a_slurm_time_is_read_as_sbatch_reads_it(text: str, seconds: int) -> None:
    assert time_s(text) == seconds


@pytest.mark.parametrize("text", ["UNLIMITED", "infinite"])
def test_an_unlimited_time_has_no_seconds(text: str) -> None:
    assert time_s(text) is None


@pytest.mark.parametrize("text", ["1h", "", "1:2:3:4", "-1", "1-", "1-2:3:4:5", "1.5", "12h30"])
def test_what_is_no_slurm_time_is_refused_with_the_accepted_forms(text: str) -> None:
    with pytest.raises(ValueError, match="D-H:M:S"):
        time_s(text)


@given(st.integers(0, 400 * 86400))
def test_a_written_time_is_read_back_to_the_second(seconds: int) -> None:
    assert time_s(slurm_time(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("64G", 65536),
        ("512M", 512),
        ("1T", 1024 * 1024),
        ("1024K", 1),
        ("1K", 1),
        ("8gb", 8192),
        ("0", 0),
    ],
)
def test_memory_is_read_with_its_unit_and_rounded_up(text: str, mib: int) -> None:
    assert memory_mib(text) == mib


@pytest.mark.parametrize("text", ["64", "G", "64X", "1.5G", ""])
def test_memory_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="64G"):
        memory_mib(text)
