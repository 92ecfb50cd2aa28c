"""Rank 1 dies with its half of a sum sent; gloo leaves rank 0 to wait for what it cannot send.

What rank 0 could not write is in no list that gloo tells of a lost peer, so `waitSend` ends with
the group's timeout, 30 min (gloo/transport/tcp/pair.cc, `Pair::signalException`). It takes two
writes behind the death: rank 0 is stopped while it waits, until rank 1 has sent and is dead.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import torch
import torch.distributed as dist

folder = Path(sys.argv[1])
waits, met = folder / "waits", folder / "met"
dist.init_process_group("gloo")
vector = torch.zeros(1000)
dist.all_reduce(vector)
if not met.exists():  # the next attempt goes through
    if dist.get_rank() == 0:
        waits.with_suffix(".part").write_text(str(os.getpid()))
        waits.with_suffix(".part").rename(waits)
    else:
        while not waits.exists():
            threading.Event().wait(0.1)
        threading.Event().wait(1.0)  # it is in the collective, and has announced what it sends
        met.touch()
        pid = int(waits.read_text())
        os.kill(pid, signal.SIGSTOP)
        subprocess.Popen(["sh", "-c", f"sleep 2; kill -CONT {pid}"], start_new_session=True)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    dist.all_reduce(vector)
print("all ranks met", flush=True)
dist.destroy_process_group()
