"""The dumps of torch's flight recorder: real ones of gloo, and documents in the form of NCCL's."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpc_train.diagnose import flight_recorder
from hpc_train.diagnose.read_logs import diagnose_logs
from hpc_train.errors import HpcTrainError

RECORDED = Path(__file__).with_name("recorded.py")


def dumps_of(kind: str, folder: Path) -> list[str]:
    """What three ranks left, by rank."""
    prefix = folder / "comm_lib_trace_rank_"
    environ = {**os.environ, "FOLDER": str(folder), "TORCH_FR_DUMP_TEMP_FILE": str(prefix)}
    command = [sys.executable, str(RECORDED), kind]
    ranks = [
        subprocess.Popen(command, env={**environ, "RANK": str(rank)}, stderr=subprocess.DEVNULL)
        for rank in range(3)
    ]
    assert [rank.wait(120) for rank in ranks] == [3 if kind == "absent" else 0] * 3
    return [f"{prefix}{rank}" for rank in range(3)]


@pytest.mark.torch
def test_of_real_dumps_it_names_the_collective_the_line_and_the_rank_that_never_came(tmp_path):
    files = dumps_of("absent", tmp_path)
    line = (
        RECORDED.read_text()
        .splitlines()
        .index("    work = dist.all_reduce(numbers, async_op=True)")
        + 1
    )
    (found,) = diagnose_logs([*reversed(files)]).findings
    assert (found.name, found.rank) == ("collective_timeout", 2)
    assert found.cause == (
        "a collective of the process group default_pg did not end: gloo:all_reduce number 4"
        " (7 elements) on ranks 0-1; never joined it: rank 2"
    )
    at = f"in step ({RECORDED}:{line})"
    assert [(item.file, item.text) for item in found.evidence] == [
        (files[2], f"rank 2 has begun as its last gloo:all_reduce number 3 (400 elements) {at}"),
        (files[0], f"rank 0 waits in gloo:all_reduce number 4 (7 elements) {at}"),
    ]
    assert found.time == pytest.approx(Path(files[0]).stat().st_mtime, abs=60)
    assert diagnose_logs([str(tmp_path)]).findings[0].cause == found.cause


@pytest.mark.torch
def test_of_real_dumps_it_names_ranks_that_left_the_common_order(tmp_path):
    files = dumps_of("other", tmp_path)
    (found,) = diagnose_logs(files).findings
    assert "left their common order" in found.cause
    assert "gloo:all_reduce number 4 (7 elements) on ranks 0,2" in found.cause
    assert "gloo:broadcast number 4 (7 elements) on rank 1" in found.cause
    assert {item.file for item in found.evidence} == {files[0], files[1]}


@pytest.mark.torch
def test_real_dumps_of_ranks_that_are_well_are_no_failure(tmp_path):
    assert diagnose_logs(dumps_of("well", tmp_path)).findings == ()


def call(
    seq: int, done: bool = True, op: str = "all_reduce", group: str = "0", **more: Any
) -> dict[str, Any]:
    """An entry as NCCL's process group records it."""
    return {
        "process_group": (group, "default_pg" if group == "0" else f"tp{group}"),
        "collective_seq_id": seq,
        "is_p2p": False,
        "profiling_name": f"nccl:{op}",
        "input_sizes": [[4, 2]],
        "state": "completed" if done else "started",
        "retired": done,
        "time_created_ns": 1_795_358_200_000_000_000 + seq,
        "frames": [{"name": "step", "filename": "/home/u/train.py", "line": 7}],
        **more,
    }


def write(folder: Path, ranks: dict[int, list[dict[str, Any]]], members: str = "") -> list[str]:
    folder.mkdir(exist_ok=True)
    names = {entry["process_group"] for entries in ranks.values() for entry in entries}
    said = members or str(sorted(ranks))
    groups = {name: {"name": name, "desc": desc, "ranks": said} for name, desc in names}
    for rank, entries in ranks.items():
        document = {"version": "2.10", "pg_config": groups, "entries": entries}
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(document, 2))
    return [str(path) for path in sorted(folder.glob("nccl_trace_*"))]


OPEN = call(5, done=False)
COALESCED = [call(4, False, "all_gather"), call(4, True, "coalesced")]
STALLS = {
    "one never came": ({0: [call(4), OPEN], 1: [call(4), OPEN], 2: [call(4)]}, "", 2, "rank 2"),
    "two never came": ({0: [call(4), OPEN], 1: [call(4)], 2: [call(3)]}, "", None, "ranks 1-2"),
    "one never began any": ({0: [OPEN], 1: []}, "", 1, "never joined it: rank 1"),
    "all came": ({0: [OPEN, call(6, False)], 1: [OPEN]}, "", None, "left a dump have joined it"),
    "one left no dump": ({0: [OPEN], 1: [OPEN]}, "[0, 1, 2]", None, "rank 2 left no dump"),
    "other sizes": (
        {0: [OPEN], 1: [call(5, False, input_sizes=[[3]])]}, "", None,
        "nccl:all_reduce number 5 (8 elements) on rank 0; nccl:all_reduce number 5 (3 elements)",
    ),
    "far behind": ({0: [call(4000), call(4001, False)], 1: [call(7)]}, "", 1, "number 4001"),
}  # fmt: skip


@pytest.mark.parametrize("kind", STALLS)
def test_who_is_late_is_told_by_the_numbers(kind, tmp_path):
    ranks, members, who, said = STALLS[kind]
    (found,) = diagnose_logs(write(tmp_path / "d", ranks, members)).findings
    assert said in found.cause
    assert found.rank == who
    assert found.evidence


WELL = {
    "all done": {0: [call(4), call(5)], 1: [call(4), call(5)]},
    "one dump was written a moment before": {0: [call(4), call(5)], 1: [call(4)]},
    "uneven sizes that are allowed": {0: [call(4, op="all_gather")], 1: [
        call(4, op="all_gather", input_sizes=[[9]])]},
    "a coalesced group": {0: COALESCED, 1: COALESCED},
    "a message that waits": {0: [call(4), call(4, False, "send", is_p2p=True)], 1: [call(4)]},
    "nothing": {0: [], 1: []},
}  # fmt: skip


@pytest.mark.parametrize("kind", WELL)
def test_what_is_not_open_is_no_failure(kind, tmp_path):
    assert diagnose_logs(write(tmp_path / "d", WELL[kind])).findings == ()


def test_of_several_groups_the_one_is_told_that_others_wait_for(tmp_path):
    """Rank 1 waits for rank 2, and rank 0 for rank 1."""
    ranks = {
        0: [call(2, False, group="1")],
        1: [call(1, group="1"), call(9, False, group="2")],
        2: [call(8, group="2")],
    }
    files = write(tmp_path / "d", ranks)
    for rank, members in {0: "[0, 1]", 1: "", 2: "[1, 2]"}.items():
        document = pickle.loads(Path(files[rank]).read_bytes())
        for name, group in document["pg_config"].items():
            group["ranks"] = members or {"1": "[0, 1]", "2": "[1, 2]"}[name]
        Path(files[rank]).write_bytes(pickle.dumps(document, 2))
    (found,) = diagnose_logs(files).findings
    assert (found.rank, "tp2" in found.cause) == (2, True)


def test_with_the_ranks_logs_it_is_one_cause_with_the_line_and_its_time(tmp_path):
    files = write(tmp_path / "d", {0: [OPEN], 1: [OPEN], 2: [call(4)]})
    log = tmp_path / "rank-0.log"
    log.write_text(
        "[rank0]:[E1121 08:04:51.000000000 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=8,"
        " NumelOut=8, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )
    (found,) = diagnose_logs([str(log), *files]).findings
    assert (found.name, found.rank) == ("collective_timeout", 2)
    assert "process group default_pg" in found.cause
    assert [Path(item.file).name for item in found.evidence][:2] == [
        "rank-0.log",
        "nccl_trace_rank_2",
    ]


class Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch harmed",)


REFUSED = {
    "code": ("a_rank_0", pickle.dumps({"entries": [Harm()]}, 2), "it wants posix.system"),
    "a class of torch": ("a_rank_0", b"\x80\x02ctorch\nTensor\n.", "it wants torch.Tensor"),
    "cut": ("a_rank_0", pickle.dumps({"entries": [], "pg_config": {}}, 2)[:-4], "it is cut"),
    "another document": ("a_rank_0", pickle.dumps(["x"], 2), "of another kind"),
    "another pickle": ("model.pt", pickle.dumps({}, 2), "does not end with the number"),
    "a huge one": ("a_rank_0", pickle.dumps({"x": "y" * 2000}, 2), "more than 0 MiB"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_is_no_dump_is_refused_in_one_line(kind, tmp_path, monkeypatch):
    name, content, why = REFUSED[kind]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flight_recorder, "_MAX_BYTES", 1000)
    Path(name).write_bytes(content)
    with pytest.raises(HpcTrainError, match=why) as refused:
        diagnose_logs([name])
    assert refused.value.message.startswith(f"{name} is no dump of torch's flight recorder: ")
    assert not Path("harmed").exists()
    # Beside what can be read it is a note.
    Path("a.log").write_text("step 1\n")
    assert why in diagnose_logs(["a.log", name]).notes[0]


def test_a_second_dump_of_a_rank_is_passed_over_and_told(tmp_path):
    first = write(tmp_path / "1", {0: [OPEN], 1: [call(4)]})
    second = write(tmp_path / "2", {0: [call(1)], 1: [call(1)]})
    diagnosis = diagnose_logs([*first, *second])
    assert diagnosis.findings[0].rank == 1
    assert [note.partition(" is passed over")[0] for note in diagnosis.notes] == second
