"""The probes where srun fails in a way that a real one cannot be brought to."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from hpc_train.preflight.options import PreflightOptions, PreflightRequest
from hpc_train.preflight.run_preflight import run_on_nodes

NODES = ("node1", "node2", "node3")
# It hangs without a word as long as node2 is among the nodes, and has no probe to start otherwise.
SRUN = """#!/bin/sh
echo "$@" >> {folder}/asked
case "$*" in *node2*) exec sleep 600 ;; esac
echo "srun: error: nothing to start" >&2
exit 1
"""
SCONTROL = """#!/bin/sh
for name in node1 node2 node3; do
    port={alive}
    [ $name = node2 ] && port=1
    echo "NodeName=$name NodeAddr=127.0.0.1 Port=$port"
done
"""


@pytest.mark.slow
def test_an_srun_that_hangs_without_a_word_is_bounded_and_the_silent_node_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as slurmd:
        programs = {"srun": SRUN, "scontrol": SCONTROL}
        for name, text in programs.items():
            program = tmp_path / name
            program.write_text(text.format(folder=tmp_path, alive=slurmd.getsockname()[1]))
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        options = PreflightOptions(
            nodes=NODES, folder=str(tmp_path / "out"), timeout_s=0.2, rendezvous_s=0.2, pair_s=0.2
        )
        request = PreflightRequest(
            nodes=NODES,
            folder=tmp_path / "out",
            environ=dict(os.environ),
            python=sys.executable,
            cwd=str(tmp_path),
        )
        started = time.monotonic()
        verdict = run_on_nodes(options, request)
    assert time.monotonic() - started < 120
    assert (verdict.verdict, verdict.bad_nodes) == ("no-go", ("node2",))
    assert "its slurmd does not answer" in verdict.summary[1]
    first, second = (tmp_path / "asked").read_text().splitlines()
    assert "--nodelist=node1,node2,node3" in first
    assert "--nodelist=node1,node3" in second
