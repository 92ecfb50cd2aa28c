"""A run whose data worker was killed: its rank names the worker, and its exception does not."""

from __future__ import annotations

import json

from tests.diagnose.test_read_run import ended, first, left, made  # noqa: F401


def test_a_lost_connection_of_the_loader_is_told_by_what_the_rank_says_of_its_worker(made):  # noqa: F811
    said = "DataLoader worker (pid 7) is killed by signal: Killed"
    ended(made, "user_error", f"rank 0 on n1 failed: {said}", rank=0, node="n1", failed_step=3)
    left(made, 0, "ConnectionResetError: [Errno 104] Connection reset by peer", "worker_killed")
    path = made.run.attempt(0).exit_record(0)
    path.write_text(json.dumps({**json.loads(path.read_text()), "error": said}))
    found = first(made)
    assert found.name == "worker_killed"
    assert "ended: Killed, as a rule since the host's memory was full" in found.cause
    assert "slurm.mem" in found.fix
