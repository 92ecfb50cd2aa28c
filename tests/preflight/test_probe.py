from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.preflight.probe_files import collect
from hpc_train.preflight.probes.wire import MAX_GREETING, Frames, WireError, dial, pack, receive

from .exported import exported
from .made_sysfs import bond_hca, ib_node, tcp_node
from .probes import FAST_CLOCK, LONG_TEST, LOSSY_LINK, MUTE, SLOW_LINK, SMALL_FRAMES, Probes

pytestmark = pytest.mark.slow

LIMIT_S = 60.0  # for what takes a moment, on a machine that does other things as well


def nodes(count=3, make=tcp_node):
    return [make(number) for number in range(1, count + 1)]


def named(verdict, *levels):
    return {f.node for f in verdict.findings if f.level in (levels or ("fail",))}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_healthy_nodes_go_and_every_probe_ends(tmp_path, count):
    with Probes(tmp_path, nodes(count, ib_node)) as probes:
        verdict, _ = probes.verdict()
        assert verdict.verdict == "go", verdict.summary
        assert probes.ended() == [0] * count
    assert named(verdict, "warn", "fail", "unknown") == set()
    assert verdict.transport == "InfiniBand"
    assert exported(verdict, "node1")["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    if count > 1:
        tested = {name for pair in verdict.pairs for name in (pair.a, pair.b)}
        assert tested == set(probes.nodes)
        assert all(pair.gbps > 0 and pair.frame_ok for pair in verdict.pairs)
    assert not list(probes.folder.glob("lost-*"))


@pytest.mark.parametrize(
    ("how", "check"),
    [
        (SLOW_LINK, "bandwidth"),
        (LOSSY_LINK, "loss"),
        (SMALL_FRAMES, "frame"),
        (FAST_CLOCK, "clock"),
    ],
    ids=["slow", "lossy", "small frames", "clock"],
)
def test_a_fault_that_only_shows_between_nodes_names_the_right_one(tmp_path, how, check):
    bad = random.Random(check).randrange(4)
    with Probes(tmp_path, nodes(4), {bad: how}) as probes:
        verdict, _ = probes.verdict()
    found = [(f.node, f.check) for f in verdict.findings if f.level in ("warn", "fail")]
    assert found == [(f"node{bad + 1}", check)], verdict.summary


def test_a_fault_of_one_node_among_two_is_told_without_naming_one(tmp_path):
    with Probes(tmp_path, nodes(2), {1: LOSSY_LINK}) as probes:
        verdict, _ = probes.verdict()
    (finding,) = [f for f in verdict.findings if f.level == "fail"]
    assert finding.node == "*"
    assert "nothing can be told apart" in finding.evidence


@pytest.mark.parametrize(
    ("number", "when"),
    [(signal.SIGSTOP, "at once"), (signal.SIGSTOP, "after its look"), (signal.SIGKILL, "at once")],
)
def test_a_probe_that_hangs_or_dies_is_named_once_its_time_is_over(tmp_path, number, when):
    times = {"rendezvous_s": 15.0, "silence_s": 10.0}
    how = dict.fromkeys(range(3), LONG_TEST)  # none is over before the signal comes
    with Probes(tmp_path, nodes(3), how, **times) as probes:
        if when == "after its look":
            probes.wait_for("look-node2.json")
        probes.signal("node2", number)
        verdict, seconds = probes.verdict()
    assert named(verdict) == {"node2"}, verdict.summary
    assert verdict.bad_nodes == ("node2",)
    assert verdict.verdict == "no-go"
    assert seconds < sum(times.values()) + LIMIT_S


def test_a_node_that_goes_silent_in_the_middle_of_a_test_is_named_and_its_partner_is_not(tmp_path):
    how = dict.fromkeys(range(4), LONG_TEST)
    with Probes(tmp_path, nodes(4), how, silence_s=10.0) as probes:
        probes.wait_for("pouring-node3")
        probes.signal("node3", signal.SIGSTOP)
        verdict, _ = probes.verdict()
    assert named(verdict) == {"node3"}, verdict.summary


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_when_the_first_nodes_own_probe_hangs_or_dies_the_files_name_it(tmp_path, number):
    how = dict.fromkeys(range(3), LONG_TEST)
    with Probes(tmp_path, nodes(3), how, rendezvous_s=15.0) as probes:
        for name in probes.nodes:
            probes.wait_for(f"look-{name}.json")
        assert probes.port()
        probes.signal("node1", number)
        for name in ("node2", "node3"):
            probes.wait_for(f"lost-{name}.json")
        verdict = collect(probes.options)
    assert verdict.verdict == "no-go"
    assert verdict.bad_nodes == ("node1",)
    assert any("lost the connection" in f.evidence for f in verdict.findings)


def test_a_spare_takes_the_place_of_a_bad_node(tmp_path):
    made = nodes(4, ib_node)
    made[1] = replace(made[1].without_hcas(), name="node2")
    with Probes(tmp_path, made, wanted=3) as probes:
        verdict, _ = probes.verdict()
    assert verdict.verdict == "go", verdict.summary
    assert verdict.use_nodes == ("node1", "node3", "node4")
    assert verdict.bad_nodes == ("node2",)
    assert verdict.transport == "InfiniBand"
    assert "NCCL_IB_DISABLE" not in exported(verdict, "node1")


def test_a_spare_is_preferred_to_a_slow_node(tmp_path):
    made = nodes(4, ib_node)
    made[0] = made[0].port("mlx5_0", rate=200)
    with Probes(tmp_path, made, wanted=3) as probes:
        verdict, _ = probes.verdict()
    assert verdict.verdict == "go"
    assert verdict.use_nodes == ("node2", "node3", "node4")
    assert verdict.degraded_nodes == ("node1",)


def test_node_local_faults_of_the_sysfs_are_named_through_the_probe(tmp_path):
    made = nodes(3, ib_node)
    made[1] = replace(made[1].port("mlx5_0", state="INIT"), memlock="65536").plus(*bond_hca(2))
    with Probes(tmp_path, made) as probes:
        verdict, _ = probes.verdict()
    checks = {(f.node, f.check) for f in verdict.findings if f.level in ("warn", "fail")}
    assert checks == {("node2", "port_state"), ("node2", "memlock")}


def stranger(port: int, data: bytes, hold: list[socket.socket]) -> None:
    sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
    hold.append(sock)  # first: it is closed then, also where it was dropped at once
    sock.sendall(data)


GARBAGE = {
    "silence": b"",
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": b"\x00" * 4096,
    "a huge message": struct.pack(">I", 1 << 31) + b"x" * 1000,
    "json without a proof": pack({"hello": "there"}),
    "a wrong proof": pack({"proof": "00" * 32, "nonce": "ab"}),
    "nested": struct.pack(">I", 400) + b"[" * 400,
    "random": random.Random(1).randbytes(3000),
}


def test_strangers_are_dropped_and_told_and_do_no_harm(tmp_path):
    hold: list[socket.socket] = []
    with Probes(tmp_path, nodes(3)) as probes:
        port = probes.port()
        for data in GARBAGE.values():
            try:
                stranger(port, data, hold)
            except OSError:  # it hung up on us already
                continue
        verdict, _ = probes.verdict()
    for sock in hold:
        sock.close()
    assert verdict.verdict == "go", verdict.summary
    assert any(f.check == "stranger" and f.level == "note" for f in verdict.findings)


def test_a_flood_of_strangers_does_not_keep_the_nodes_out(tmp_path):
    stop = threading.Event()
    opened = []

    def flood(port: int) -> None:
        held: list[socket.socket] = []
        while not stop.is_set():
            try:
                stranger(port, b"\xff" * 100, held)
                opened.append(1)
            except OSError:
                time.sleep(0.01)
            if len(held) > 100:
                held.pop(0).close()
        for sock in held:
            sock.close()

    with Probes(tmp_path, nodes(3)) as probes:
        thread = threading.Thread(target=flood, args=(probes.port(),))
        thread.start()
        try:
            verdict, _ = probes.verdict()
        finally:
            stop.set()
            thread.join()
    assert len(opened) > 20
    assert named(verdict) == set(), verdict.summary


def in_place_of(probes: Probes, node: str, rank: int, *messages: dict) -> socket.socket:
    """Say hello with the token as a node whose own probe is stopped, and then something else."""
    token = probes.token.encode()
    sock, _ = dial("127.0.0.1", probes.port(), token, time.monotonic() + LIMIT_S)
    for message in messages:
        sock.sendall(pack(message | {"node": node, "rank": rank}))
    return sock


@pytest.mark.parametrize(
    "message",
    [
        {"type": "hello"},
        {"type": "hello", "inventory": {"node": 3}},
        {"type": "hello", "inventory": [], "data_port": 1},
    ],
)
def test_a_node_that_answers_garbage_is_named(tmp_path, message):
    with Probes(tmp_path, nodes(3), {2: MUTE}) as probes:
        in_place_of(probes, "node3", 2, message).close()
        verdict, _ = probes.verdict()
    assert named(verdict) == {"node3"}, verdict.summary
    assert any("garbage" in f.evidence for f in verdict.findings)


def test_a_second_node_of_the_same_name_is_not_believed(tmp_path):
    with Probes(tmp_path, nodes(3), dict.fromkeys(range(3), LONG_TEST)) as probes:
        probes.wait_for("pouring-node2")
        hello = {"type": "hello", "data_port": 9}
        hello["inventory"] = json.loads((probes.folder / "look-node2.json").read_text())
        sock = in_place_of(probes, "node2", 1, hello)
        verdict, _ = probes.verdict()
        sock.close()
    assert named(verdict) == set(), verdict.summary


def test_who_does_not_hold_the_token_gets_nothing_from_either_side(tmp_path):
    with Probes(tmp_path, nodes(2)) as probes:
        port = probes.port()
        with pytest.raises(WireError):
            dial("127.0.0.1", port, b"not the token of this run", time.monotonic() + LIMIT_S)
        verdict, _ = probes.verdict()
    assert verdict.verdict == "go", verdict.summary
    with socket.create_server(("127.0.0.1", 0)) as server:

        def impostor() -> None:
            sock, _ = server.accept()
            with sock:
                sock.sendall(pack({"nonce": "ab"}))
                receive(sock, Frames(), time.monotonic() + LIMIT_S)
                sock.sendall(pack({"proof": "00" * 32}))

        thread = threading.Thread(target=impostor)
        thread.start()
        with pytest.raises(WireError, match="does not hold the run's token"):
            dial("127.0.0.1", server.getsockname()[1], b"t" * 32, time.monotonic() + LIMIT_S)
        thread.join()


def test_the_token_is_on_no_command_line_and_in_no_file(tmp_path):
    with Probes(tmp_path, nodes(2)) as probes:
        lines = [Path(f"/proc/{p.pid}/cmdline").read_text() for p in probes.processes.values()]
        probes.verdict()
        probes.ended()
    assert not any(probes.token in line for line in lines)
    for path in probes.folder.iterdir():
        assert probes.token not in path.read_text()


@pytest.mark.parametrize(
    ("env", "words"),
    [({}, "holds no token"), ({"HPC_TRAIN_PREFLIGHT_TOKEN": "short"}, "holds no token")],
)
def test_a_probe_without_a_token_says_so_in_one_line(tmp_path, env, words):
    options = tmp_path / "o.json"
    options.write_text('{"nodes": ["a"], "folder": "."}')
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train.preflight.probes.probe", "--options", str(options)],
        env={k: v for k, v in os.environ.items() if "TOKEN" not in k} | env,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"nodes": "a", "folder": 3}', "\x00"])
def test_options_that_cannot_be_read_are_refused_in_one_line(tmp_path, text):
    options = tmp_path / "o.json"
    options.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train.preflight.probes.probe", "--options", str(options)],
        env=os.environ | {"HPC_TRAIN_PREFLIGHT_TOKEN": "x" * 32},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1


def test_frames_never_hold_more_than_their_limit():
    frames = Frames()
    with pytest.raises(WireError, match="at most"):
        frames.feed(struct.pack(">I", MAX_GREETING + 1))
    frames = Frames()
    assert frames.feed(pack({"a": 1})[:3]) == []
    assert frames.feed(pack({"a": 1})[3:] + pack({"b": 2})) == [{"a": 1}, {"b": 2}]
