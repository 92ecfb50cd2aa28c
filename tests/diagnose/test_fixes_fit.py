"""A fix that presumes something is told only where the line shows it."""

from __future__ import annotations

import pytest

from hpc_train.diagnose.rules import FILES, read_rules
from tests.diagnose.test_causes import findings

TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n'
# The line, a word of its own fix, and one of a fix for other lines of its rule.
FITS = {
    "a label": ("IndexError: Target 7 is out of bounds.", "number of classes", "embedding"),
    "an id": ("IndexError: index out of range in self", "embedding", "classes"),
    "a loss without gradients": (
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        "requires_grad",
        "static_graph",
    ),
    "a parameter that is ready twice": (
        "RuntimeError: Expected to mark a variable ready only once.",
        "static_graph",
        "requires_grad",
    ),
    "an option of a launcher": (
        "train.py: error: unrecognized arguments: --local-rank=0",
        "torchrun does not pass it",
        "\0",
    ),
    "another option": ("train.py: error: unrecognized arguments: --lr", "--help", "torchrun"),
    "a checkpoint of another GPU": (
        (
            "RuntimeError: Attempting to deserialize object on CUDA device 3 but"
            " torch.cuda.device_count() is 1."
        ),
        "map_location",
        "ranks a node",
    ),
    "two GPUs": (
        (
            "RuntimeError: Expected all tensors to be on the same device, but found at least two"
            " devices, cuda:0 and cuda:1!"
        ),
        "device_map",
        "\0",
    ),
    "a GPU and the CPU": (
        (
            "RuntimeError: Expected all tensors to be on the same device, but found at least two"
            " devices, cuda:0 and cpu!"
        ),
        "register_buffer",
        "device_map",
    ),
    "an empty data set": (
        "ValueError: num_samples should be a positive integer value, but got num_samples=0",
        "pattern of the data",
        "that list",
    ),
    "a library of the system": (
        "ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by /e/a.so)",
        "container",
        "libstdc++",
    ),
    "a library of C++": (
        "ImportError: /conda/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found",
        "libstdc++",
        "container",
    ),
    "a parameter that is frozen": (
        "ValueError: Must flatten tensors with uniform `requires_grad` here",
        "use_orig_params",
        "same one",
    ),
    "a script of Windows": (
        "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
        "dos2unix",
        "SLURM_MEM",
    ),
    "a scale that is gone": (
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore.",
        "bf16",
        "has that batch",
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_of_several_fixes_the_one_that_fits_the_line_is_told(name):
    line, fits, other = FITS[name]
    fix = findings(f"{TRACE}{line}\n")[0].fix
    assert fits in fix
    assert other not in fix
    assert "?" not in fix.replace("? ", "").removesuffix("?")  # a word that the line lacks


def test_a_module_that_is_not_found_is_not_told_to_be_a_package():
    fix = findings(f"{TRACE}ModuleNotFoundError: No module named 'mymodel'\n")[0].fix
    assert fix.startswith("where it is of the program itself: ")
    assert "pip install" not in fix


def test_two_number_formats_on_a_gpu_are_not_two_devices():
    line = (
        "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.{}) should"
    )
    for kind, name in (("HalfTensor", "dtypes"), ("FloatTensor", "dtypes")):
        assert findings(f"{TRACE}{line.format(kind)} be the same\n")[0].name == name


def test_a_pickle_that_the_parent_did_not_send_is_told_after_the_parents_error():
    text = f"{TRACE}AttributeError: Can't pickle local object 'f.<locals>.g'\n"
    (found,) = findings(f"{text}{TRACE}EOFError: Ran out of input\n")
    assert found.name == "pickling"


@pytest.mark.parametrize(
    "line",
    [
        "pyarrow.lib.ArrowInvalid: JSON parse error: Column(/a) changed from object to array",
        "httpx.ReadError: [Errno 104] Connection reset by peer",
        "safetensors_rust.SafetensorError: device cuda:3 is invalid",
        "ValueError: cannot reshape array of size 7 into shape (2,4)",
        "KeyError: \"Unable to open object (object 'labels' doesn't exist)\"",
    ],
)
def test_what_is_no_damaged_file_is_not_told_as_one(line):
    names = [item.name for item in findings(f"{TRACE}{line}\n")]
    assert not {"damaged_data", "broken_file"} & {*names}


def test_no_fix_of_these_tables_asks_for_a_newer_library_without_its_version():
    rules = [rule for name in FILES if name != "nccl.txt" for rule in read_rules(name)]
    newer = ("newer transformers", "newer driver;", "a newer one,", "upgrade")
    assert [rule.name for rule in rules if any(word in rule.fix for word in newer)] == []
