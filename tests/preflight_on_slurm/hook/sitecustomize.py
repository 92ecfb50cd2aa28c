"""Read by every python of a test that puts this folder into PYTHONPATH: breaks a node's probe.

`PREFLIGHT_TEST_FAULT=NODE:FAULT` (NODE may be `*`). What cannot be done to a node from outside on
one machine that all nodes share (its clock), or not at the right moment.
"""

from __future__ import annotations

import os
import sys
import time

node, _, fault = os.environ.get("PREFLIGHT_TEST_FAULT", "").partition(":")
is_here = node in ("*", os.environ.get("SLURMD_NODENAME"))
if is_here and fault == "no collective" and "hpc_train.training.collective_step" in sys.orig_argv:
    sys.exit("this rank does not start")
if is_here and "hpc_train.preflight.probes.probe" in sys.orig_argv:
    real_time = time.time
    if fault == "clock":
        time.time = lambda: real_time() + 3600
    elif fault == "no start":
        sys.exit("this python does not start")
    elif fault == "broken check":
        from hpc_train.preflight.checks import node_checks as checks

        def broken(context):
            raise ZeroDivisionError("a check with a fault of its own")

        checks.CHECKS["shm"] = broken

usual = os.environ.get("PREFLIGHT_TEST_USUAL_MEMLOCK")
if usual and "hpc_train.preflight.probes.probe" in sys.orig_argv:
    # The machine of the tests may allow little: what it allows at most counts as no limit on a
    # made node, and what a test lowers stays low.
    from hpc_train.preflight.inventory import collect_inventory as look

    real_limit = look._limit

    def limit(text, name):
        value = real_limit(text, name)
        return -1 if name == "Max locked memory" and value == int(usual) else value

    look._limit = limit
