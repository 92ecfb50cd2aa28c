"""Files that are not there in words of the program's own, and settings that do not divide."""

from __future__ import annotations

import pytest

from tests.diagnose.test_causes import findings

TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n'

ABSENT = {
    "AssertionError: File data/a/b.json not found.": "data/a/b.json",
    "ValueError: /data/x/y.bin does not exist": "/data/x/y.bin",
    "RuntimeError: Tokenizer path tok/x does not exist.": "tok/x",
    'OSError: Not found: "m.model": No such file or directory Error #2': "m.model",
    "RuntimeError: No such file: conf/train.yaml": "conf/train.yaml",
    "OSError: Unable to open /x/y.h5: No such file or directory": "/x/y.h5",
    'Exception: "/w/conf.yaml" does not exist;': "/w/conf.yaml",
    "Exception: '/w/conf' does not exist.": "/w/conf",
}


@pytest.mark.parametrize("error", ABSENT)
def test_a_file_that_the_program_misses_is_named(error):
    (found,) = findings(TRACE + error)
    assert found.name == "told_file_missing"
    assert found.cause.endswith(f": {ABSENT[error]}")
    assert ("the folder that the job starts in" in found.fix) is not ABSENT[error].startswith("/")


OTHERS = {
    "ValueError: column x does not exist": "raised",
    "ValueError: model a/b does not exist": "raised",
    "ValueError: attribute torch.nn does not exist": "raised",
    "AssertionError: Config file not found": "raised",
    "KeyError: 'File a.json not found'": "raised",
    "RuntimeError: Parent directory /x/y does not exist.": "no_folder",
}


@pytest.mark.parametrize("error", OTHERS)
def test_what_is_no_file_to_be_read_is_not_told_as_one(error):
    assert [item.name for item in findings(TRACE + error)] == [OTHERS[error]]


def test_a_file_beside_the_batch_script_is_not_where_slurm_copies_it():
    for text in (
        f"{TRACE}FileNotFoundError: [Errno 2] No such file or directory: '{{}}'",
        "python: can't open file '{}': [Errno 2] No such file or directory",
        "/var/spool/slurmd/job71/slurm_script: line 9: {}: No such file or directory",
        f"{TRACE}AssertionError: File {{}} not found",
    ):
        (found,) = findings(text.format("/var/spool/slurmd/job71/train.py"))
        assert "SLURM_SUBMIT_DIR" in found.fix
        (found,) = findings(text.format("/w/train.py"))
        assert "SLURM_SUBMIT_DIR" not in found.fix


UNEVEN = {
    "AssertionError: num_layers should be divisible by pipeline_model_parallel_size.": (
        "num_layers is no multiple of pipeline_model_parallel_size"
    ),
    "ValueError: Total number of attention heads (32) must be divisible by tensor parallel size"
    " (3).": "attention heads (32) is no multiple of tensor parallel size (3)",
    "AssertionError: world_size (6) is not divisible by 4": "world_size (6) is no multiple of 4",
}


@pytest.mark.parametrize("error", UNEVEN)
def test_settings_that_do_not_divide_are_both_told(error):
    (found,) = findings(TRACE + error)
    assert found.name == "not_divisible"
    assert found.cause.endswith(UNEVEN[error])


def test_what_does_not_divide_and_is_no_setting_of_a_run_is_left():
    (found,) = findings(f"{TRACE}ValueError: 7 is not divisible by 2")
    assert found.name == "raised"


SIZES = (
    "RuntimeError: The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton"
    " dimension {}"
)


def test_large_flat_tensors_are_shards_and_no_batches():
    (found,) = findings(TRACE + SIZES.format(8388608, 1048999, 0))
    assert (found.name, "8 times" in found.fix, "batch" in found.fix) == (
        "flat_shards",
        True,
        False,
    )
    (odd,) = findings(TRACE + SIZES.format(9000001, 7100000, 0))
    assert "shard" not in odd.cause + odd.fix
    assert "batch" not in odd.fix
    for sizes in ((8388608, 1048999, 1), (64, 8, 0)):
        assert findings(TRACE + SIZES.format(*sizes))[0].name == "shapes"
