"""Lines as NCCL, its plugins and torch write them, by their format strings."""

from __future__ import annotations

from pathlib import Path

from hpc_train.diagnose.nccl.nccl_log import read_nccl_lines

HEAD = "gpu07:4100:4188 [3] "


def warn(place: str, text: str) -> str:
    return f"{HEAD}{place} NCCL WARN {text}"


def ib(status: str, place: str = "transport/net_ib.cc:1295") -> str:
    """A failed completion as 2.14 to 2.26 write it."""
    return warn(
        place,
        f"NET/IB : Got completion from peer 10.1.0.9<41234> with status={status} opcode=0 len=0"
        " vendor err 129 (Send) localGid fe80::1 remoteGids fe80::2 hca mlx5_3",
    )


WORK = (
    "[rank{0}]:[E ProcessGroupNCCL.cpp:629] [Rank {0}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran"
    " for 600021 milliseconds before timing out."
)


def examples() -> list[tuple[str, str, str]]:
    """(rule, words of its cause, lines of a log); see the file."""
    text = (Path(__file__).parent / "nccl_failures.txt").read_text()
    found = []
    for block in text.split("\n== ")[1:]:
        head, _, lines = block.partition("\n")
        name, _, said = head.partition(":")
        found.append((name, said.strip(), lines.strip()))
    return found


CASES = [case for case in examples() if case[1]]

NOTES = [(name, line) for name, said, line in examples() if not said]


def read(*lines: str):
    return read_nccl_lines("\n".join(lines).splitlines())


COMPLETE = f"{HEAD}NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0xa - Init COMPLETE"

REFUSED = warn("misc/ibvwrap.cc:171", "Call to ibv_create_qp failed with error x")
