"""Logs of NCCL's in files: their encoding, their number, the numbers of their lines."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pytest

from hpc_train.diagnose import log_files
from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines, read_nccl_logs
from hpc_train.errors import HpcTrainError
from tests.diagnose.nccl_jobs import VERSIONS, check, log

# From files: packed, encoded, several, and with what a training writes between.


def write(path: Path, lines: list[str], encoding: str = "utf-8") -> str:
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))
    return str(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_of_any_encoding_is_read(tmp_path, encoding):
    lines = log("2.18")
    if encoding == "utf-16-be":
        lines[0] = "\ufeff" + lines[0]
    check(read_nccl_logs([write(tmp_path / "a.log", lines, encoding)]), "2.18")


def test_a_gzip_is_read_and_a_cut_one_as_far_as_it_goes(tmp_path):
    packed = gzip.compress("\n".join([*log("2.18"), *(f"{i * i}" for i in range(99_999))]).encode())
    (tmp_path / "a.log.gz").write_bytes(packed)
    check(read_nccl_logs([str(tmp_path / "a.log.gz")]), "2.18")
    (tmp_path / "b.log.gz").write_bytes(packed[: len(packed) - 1000])
    check(read_nccl_logs([str(tmp_path / "b.log.gz")]), "2.18")
    small = gzip.compress("\n".join(log("2.18")).encode())
    (tmp_path / "d.log.gz").write_bytes(small[:-9])
    check(read_nccl_logs([str(tmp_path / "d.log.gz")]), "2.18")
    (tmp_path / "c.gz").write_bytes(packed[:5])
    with pytest.raises(HpcTrainError, match="no line of NCCL's"):
        read_nccl_logs([str(tmp_path / "c.gz")])


def test_one_log_a_host_is_one_job(tmp_path):
    for node in ("node1", "node2"):
        write(
            tmp_path / f"nccl-{node}.log",
            [line for line in log("2.18") if line.startswith(("NCCL", node))],
        )
    (tmp_path / "model.bin").write_bytes(b"NCCL WARN Invalid rank requested : 1/1\n")
    check(read_nccl_logs([str(tmp_path)]), "2.18")
    check(read_nccl_logs([str(tmp_path / "*.log")]), "2.18")
    both = [str(tmp_path / f"nccl-node{i}.log") for i in (1, 2)]
    check(read_nccl_logs(both + both), "2.18")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_between_the_trainings_own_lines_tells_the_same(tmp_path, version, newline):
    noisy = []
    for number, line in enumerate(log(version)):
        noisy += [f"step {number} loss 0.1", f"\r 10%|#  |\r 20%|## |{line}", ""]
    path = tmp_path / "a.log"
    path.write_bytes(newline.join(noisy).encode())
    check(read_nccl_logs([str(path)]), version)


def test_a_file_tells_what_its_lines_tell(tmp_path):
    glued = log("2.18", nodes=4, per_node=4)
    glued = [glued[0]] + ["".join(glued[i : i + 3]) for i in range(1, len(glued), 3)]
    from_file = read_nccl_logs([write(tmp_path / "a.log", glued)])
    from_lines = read_nccl_lines(glued)
    assert {(p.a, p.b, p.host_a, p.host_b, p.transport) for p in from_file.pairs} == {
        (p.a, p.b, p.host_a, p.host_b, p.transport) for p in from_lines.pairs
    }
    assert from_file.world.places == from_lines.world.places
    assert from_file.rings_complete is True


def test_a_log_of_collectives_alone_is_nccls(tmp_path):
    lines = [
        f"n1:1:1 [0] NCCL INFO AllReduce: opCount {i:x} sendbuff 0x7f{i:x} count 1 comm 0x5"
        for i in range(3)
    ]
    report = read_nccl_logs([write(tmp_path / "a.log", lines)])
    assert report.speakers == ("n1",)
    assert report.failures == ()


def test_the_words_of_torch_are_found_between_any_lines(tmp_path):
    lines = ["step 1 loss 0.1"] * 50_000
    lines[40_000:40_000] = [
        "RuntimeError: NCCL error: x",
        "Last error:",
        "",
        "Connect to 10.0.0.4<5> failed : No route to host",
    ]
    lines[20_000:20_000] = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"]
    found = read_nccl_logs([write(tmp_path / "a.log", lines)]).failures
    assert [item.name for item in found] == ["torch_oom", "connect"]
    assert [item.evidence[0].line for item in found] == [20_001, 40_005]


def test_the_number_of_a_line_is_greps(tmp_path):
    lines = ["training"] * 70_000 + log("2.18") * 3
    warning = "node1:1:2 [0] init.cc:1 NCCL WARN Invalid rank requested : 8/8"
    numbers = [1, 4_000, 69_000, len(lines) - 20, len(lines) + 5]
    for number in numbers:
        lines.insert(number - 1, warning)
    path = write(tmp_path / "a.log", lines)
    (failure,) = read_nccl_logs([path]).failures
    assert failure.times == 5
    said = [number for number, line in enumerate(lines, 1) if line == warning]
    assert [item.line for item in failure.evidence] == said[:3]
    assert failure.evidence[0].file == path


@pytest.mark.parametrize("block", [200, 1000, 1 << 18])
def test_hops_that_repeat_do_not_shift_the_number_of_a_line(monkeypatch, block):
    monkeypatch.setattr(log_files, "_BLOCK", block)
    rng = random.Random(block)
    for _ in range(20):
        hops = [f"n{i % 2}:1:{i % 3} [0] NCCL INFO Channel 0{i % 3}/0 : {i % 2}[0] -> 1[0] via P2P"
                for i in rng.choices(range(12), k=200)]  # fmt: skip
        glued = [one + two for one, two in zip(hops[:20], hops[20:40], strict=True)]
        warned = [f"n0:1:1 [0] x.cc:1 NCCL WARN thing {i % 2}" for i in range(20)]
        lines = rng.sample([*hops, *glued, *warned, *["training"] * 30], k=270)
        text = "\n".join(lines).encode()
        found = list(log_files.log_lines(io.BufferedReader(io.BytesIO(text), 64)))
        assert all(line in lines[number - 1] for number, line in found)
        told = {number for number, line in found if "WARN" in line}
        assert told == {number for number, line in enumerate(lines, 1) if "WARN" in line}
