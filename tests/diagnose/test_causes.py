"""What each line means: made from the format strings of its source."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from hpc_train.diagnose.diagnosis import told
from hpc_train.diagnose.line_words import as_grep, may_tell
from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines
from hpc_train.diagnose.nccl.nccl_text import explain
from hpc_train.diagnose.read_logs import ReadLogs, diagnose_logs
from hpc_train.diagnose.rules import FILES, Evidence, Hits, read_rules
from tests.diagnose.test_nccl_causes import plain

HERE = Path(__file__).parent
OWN = [rule for name in FILES if name != "nccl.txt" for rule in read_rules(name)]
IN_LOGS = [rule for rule in OWN if rule.level != "RUN" and rule.kind not in ("note", "last")]


def examples() -> list[tuple[str, str, str]]:
    found = []
    for block in (HERE / "failures.txt").read_text().split("\n== ")[1:]:
        head, _, lines = block.partition("\n")
        name, _, said = head.partition(":")
        found.append((name, said.strip(), lines.strip()))
    return found


def findings(text: str):
    logs = ReadLogs()
    for number, line in enumerate(text.splitlines(), 1):
        logs.feed(line, "", number)
    return logs.findings()


@pytest.mark.parametrize(("name", "said", "text"), examples())
def test_a_cause_is_told_by_its_line(name, said, text, tmp_path):
    log = tmp_path / "a.log"
    log.write_text(f"step 1 loss 2\n{text}\n")
    logs = ReadLogs()
    logs.read(str(log))
    first, *others = logs.findings()
    assert (first.name, others) == (name, [])
    assert said in first.cause
    assert first.is_known
    assert not re.search(r"[{}]|\[\[|\bNone\b|\?$", first.cause)
    assert first.evidence[0].line == len(text.splitlines()) + 1


def test_a_batch_without_a_loss_is_a_note_and_no_failure():
    logs = ReadLogs()
    warned = "automatic.py:134: `training_step` returned `None`. If this was on purpose, ignore"
    for number, line in enumerate(("step 1 loss 2", f"{warned} this warning..."), 1):
        logs.feed(line, "", number)
    told = logs.diagnosis("a.log")
    assert told.findings == ()
    (note,) = told.notes
    assert "returned no loss" in note
    assert "write `return loss`" in note


def test_every_rule_has_an_example_and_a_source():
    assert {rule.name for rule in IN_LOGS} == {name for name, *_ in examples()}
    assert [rule.name for rule in OWN if not (rule.source and rule.fix and rule.cause)] == []


LOOK_ALIKES = {
    "stty": "stty: 'standard input': Inappropriate ioctl for device\ngoing on with 80 columns",
    "toolkit": "Installed CUDA version 12.2 does not match the version torch was compiled with 12.1"
    " but since the APIs are compatible, accepting this combination",
    "toolkit skipped": "[WARNING] DeepSpeed Op Builder: Installed CUDA version 11.7 does not match"
    " the version torch was compiled with 12.1.Detected `DS_SKIP_CUDA_CHECK=1`: Allowing this",
    "weights": "size mismatch for fc.weight: copying a param with shape torch.Size([9, 4]) from"
    " checkpoint, the shape in current model is torch.Size([2, 4]).",
    "driver": "NVRM: loading NVIDIA UNIX x86_64 Kernel Module; driver/library versions match",
    "gpus": "your machine has 4 GPUs, machine only has: [0] was another one",
    "symbol": "undefined symbol: _ZN2at6Tensor was looked for in 3 libraries: optional, going on",
    "fd": "write(): fd 3 failed with Input/output error once, written again",
    "module": "optional: No module named 'apex' (ModuleNotFoundError handled), going on without",
    "glibc": "INFO built with GLIBC 2.34, version checked",
    "nan": "step 5 Loss is nan-safe now, loss 0.3",
    "nan column": "metrics: val_loss nan at step 0 (not validated yet)",
    "file": "WARNING: FileNotFoundError: [Errno 2] No such file or directory: '/x' was handled",
    "permission": "INFO: Permission denied on the first try, second was fine",
    "arguments": "unrecognized arguments are passed on to the model: --a",
    "xid": "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54",
    "folder": "slurmstepd: error: couldn't chdir to `/w': Permission denied: going to /tmp instead",
    "ranks": "missing ranks: {}",
    "message": "error msg: none",
    "munge": "Munge socket is /run/munge/munge.socket.2",
    "memory": "MemoryError is raised by the guard if the cache is full (see docs)",
    "container": "log level FATAL: 4",
    "oom": "tip: set PYTORCH_CUDA_ALLOC_CONF if you see CUDA being out of free memory",
    "library": "found libcudart.so.12: it can be opened as shared object",
    "state_dict": "loading state_dict for Net: all keys matched",
    "internet": "Max retries is 5",
    "shapes": "note: The size of tensor a (3) must match the size of tensor b (3), and does",
    "assertion": "kernel.cu:3: f: Assertion `n > 0` was checked",
    "hydra": "Could not find 'apex', going on without",
    "conda": "conda init was run, conda activate works",
    "hub": "200 OK for url: https://huggingface.co/x",
    "numpy": "numpy.dtype size is 96",
    "json": "JSONDecodeError handled: retried, 3 rows dropped",
    "assert": "all checks passed: no Assertion 'x' failed here",
    "module name": "No module named apex, the slow path is used",
    "image": "cannot identify image: skipped 3 of 9",
    "terminated": "Terminated 3 idle workers",
    "shell": "bash: line 3: cat: No such file or directory is expected here",
    "docker": "docker was started",
    "swapped": "slurmstepd: error: Exceeded step memory limit at some point. Step may have been",
    "compile": "compiled with BackendCompilerFailed suppressed",
    "pyxis": "slurmstepd: pyxis: imported docker image: nvcr.io/x",
    "optional library": "W Could not load dynamic library 'libnvinfer.so.7'; dlerror:"
    " libnvinfer.so.7: cannot open shared object file: No such file or directory",
    "ignored component": "mca_base_component_repository_open: unable to open mca_btl_openib:"
    " librdmacm.so.1: cannot open shared object file: No such file or directory (ignored)",
    "database": "FATAL:  role app does not exist",
    "controller": "Unable to contact ... retried, fine",
    "key": "KeyError: 'state_dict' is what an old file raises; this one is new",
    "nan iteration": "watching whether Loss became infinite or NaN: no",
    "a name of CUDA": "Search for `cudaErrorIllegalAddress' in the runtime's documentation; cuInit"
    " took 802 ms",
    "a word of CUDA": "0 Cuda failures so far; Cuda failure rate 0.1 'low'",
    "numbers": "   524288    131072    float    sum    -1   663.1   0.79   0.79     0   569.4",
    "old numbers": "    128      32   float   sum  38.55   0.00   0.01  2e-07   38.87  1e-07",
}

STEPS_AND_LIKES = {
    "# nThread 1 nGpus 8 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5": None,
    "step: 2 loss 3": 2,
    "{'global_step': 7, 'loss': 1}": 7,
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_only_looks_like_a_cause_is_none(name):
    text = f"step 1 loss 2\n{LOOK_ALIKES[name]}\n" + "step 2 loss 1\n" * 9
    assert findings(text) == ()


@pytest.mark.parametrize("line", STEPS_AND_LIKES)
def test_a_step_is_a_number_of_its_own(line, tmp_path):
    log = tmp_path / "a.log"
    log.write_text(
        f"step 1\n{line}\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    logs = ReadLogs()
    logs.read(str(log))
    assert logs.findings()[0].step == STEPS_AND_LIKES[line]


@pytest.mark.parametrize("rest", ["", "    dist.b\n", "    raise RuntimeError\n"])
def test_a_traceback_that_is_cut_says_so(rest, tmp_path):
    log = tmp_path / "a.log"
    log.write_text(f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n{rest}')
    logs = ReadLogs()
    logs.read(str(log))
    cause = logs.diagnosis("a").findings[0].cause
    assert cause == 'a traceback is cut off at File "a.py", line 3, in f'


def test_the_words_let_each_example_through():
    for _, _, text in examples():
        assert any(may_tell(line) for line in text.splitlines()), text


def test_the_pattern_for_grep_has_nothing_that_only_python_knows():
    assert not re.search(r"\(\?|\\d", as_grep())


@pytest.mark.parametrize("name", [rule.name for rule in OWN])
def test_no_line_makes_a_rule_slow(name):
    rules = [rule for rule in OWN if rule.name == name]
    began = time.process_time()
    for line in (
        "a" * 20_000,
        "Error: " * 3_000,
        "user_error: rank 1 " * 1_000,
        "raised X: " * 2000,
    ):
        for rule in rules:
            rule.expression.search(f" {line}")
    assert time.process_time() - began < 2  # milliseconds, where quantifiers are bounded


def shown(text: str) -> str:
    """A brace that is no group stands twice in a rule."""
    return text.replace("{{", "{").replace("}}", "}")


def test_the_page_has_every_rule():
    page = (HERE.parents[1] / "docs" / "diagnose.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert [(name, *map(plain, rest)) for name, *rest in rows] == [
        (rule.name, plain(rule.cause), shown(plain(rule.fix)), plain(rule.source)) for rule in OWN
    ]


def test_what_a_pattern_did_not_catch_is_left_out_of_the_sentence():
    rule = next(rule for rule in read_rules("nccl.txt") if rule.name == "torch_oom")
    said = {}
    for text in ("CUDA out of memory. Tried to allocate 2.00 GiB.", "CUDA out of memory"):
        hits = Hits([rule])
        hits.take("JOB", text, "", "", Evidence(file="", line=1, text=text), is_warning=False)
        said[text] = hits.of("cause")[0].failure().cause
    with_amount, without = said.values()
    assert with_amount.endswith(". 2.00 GiB were asked for")
    assert without.endswith("ran out of memory")


OOM = {
    "2.x": "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB"
    " of which 1.94 GiB is free. Process 17 has 5.00 GiB memory in use. Process 18 has 1.00 GiB"
    " memory in use. Including non-PyTorch memory, this process has 72.20 GiB memory in use.",
    "1.x": "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.15 GiB total capacity; 9.60"
    " GiB already allocated; 1.94 GiB free; 9.65 GiB reserved in total by PyTorch)",
}


def test_without_its_own_line_a_process_that_fills_a_gpu_may_be_the_one_that_failed():
    text = OOM["2.x"].partition(" Including")[0] + " Of the allocated memory 4.00 GiB is allocated"
    none = f"{OOM['2.x'].partition('72.20')[0]}0 bytes memory in use."
    for said in (text, none):
        (found,) = findings(f"[rank5]: RuntimeError: {said}")
        assert found.cause.endswith("were free on GPU 3")


@pytest.mark.parametrize("version", OOM)
@pytest.mark.parametrize("error", ["torch.OutOfMemoryError", "RuntimeError"])
def test_of_a_full_gpu_it_is_told_how_much_was_asked_what_was_free_and_who_else_is_there(
    version, error
):
    (found,) = findings(f"[rank5]: {error}: {OOM[version]}")
    assert "2.00 GiB were asked for, 1.94 GiB of 79.15 GiB were free on GPU 3" in found.cause
    assert ("Process 18 has 1.00 GiB" in found.cause) is (version == "2.x")
    assert found.rank == 5


GPUS = [f"NVRM: Xid (PCI:0000:3d:00): 43, pid={pid}, Ch 8" for pid in (11, 12)] + [
    "NVRM: Xid (PCI:0000:db:00): 13, pid=13, Graphics SM Warp Exception"
]


def test_lines_that_name_another_gpu_are_not_counted_with_the_first_one(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("\n".join(GPUS))
    logs = ReadLogs()
    logs.read(str(log))
    said = [line.strip() for line in told(logs.diagnosis("a"))]
    assert "3 lines say so" not in said
    assert [line.partition(": ")[0] for line in said if "of this kind" in line] == [
        "1 more line of this kind, such as"
    ]
    assert "PCI:0000:db:00" in logs.findings()[0].alike
    assert "1 more line of this kind" in "\n".join(explain(read_nccl_lines(GPUS)))


SM_EXCEPTION = (
    "NVRM: Xid (PCI:0000:3d:00): 13, pid={}, Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0):"
    " Illegal Instruction Parameter"
)


def test_a_process_is_named_where_the_line_of_the_driver_names_it():
    (known,) = findings(SM_EXCEPTION.format("4711, name=python"))
    assert known.fix.startswith("the traceback of process 4711 there; ")
    (unknown,) = findings(SM_EXCEPTION.format("'<unknown>', name=<unknown>"))
    assert unknown.fix.startswith("the line names no process (<unknown>): ")
    (old,) = findings(SM_EXCEPTION.replace(" pid={},", ""))
    assert old.fix.startswith("CUDA_LAUNCH_BLOCKING=1")


def test_the_numbers_that_are_told_are_of_the_rank_that_is_told(tmp_path):
    for rank, clock, size in ((0, "10:00:09", "2.00"), (3, "10:00:01", "7.00")):
        error = f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB."
        (tmp_path / f"rank-{rank}.log").write_text(f"2026-01-02 {clock} {error}\n")
    found = diagnose_logs([str(tmp_path)]).findings[0]
    assert (found.rank, "7.00 GiB were asked for" in found.cause) == (3, True)
    assert (found.times, "2.00 GiB" in found.alike) == (1, True)


def test_many_lines_that_say_each_its_own_are_bounded_and_none_is_lost():
    hits = Hits(read_rules("node.txt"))
    for n in range(200):
        text = GPUS[0].replace("3d", f"{n:02x}")
        hits.take("JOB", text, "", "", Evidence(file="", line=n, text=text), is_warning=False)
    failure = hits.of("cause")[0].failure()
    assert (failure.times, failure.alike, len(failure.others)) == (1, 199, 63)


def test_a_macro_may_stand_within_what_another_one_is_given():
    assert not [rule.name for rule in read_rules() if re.search("@[A-Z_]{3,}", rule.pattern)]


def test_an_environment_that_was_not_activated_comes_before_the_module_that_was_missing():
    first, second = findings(
        "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'."
        "\nTraceback (most recent call last):\n"
        '  File "train.py", line 1, in <module>\n    import pytorch_lightning\n'
        "ModuleNotFoundError: No module named 'pytorch_lightning'\n"
    )
    assert (first.name, second.name) == ("conda", "missing_module")
