"""`make test-gpu`: all checks on this machine's GPUs, and a table of them in a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest


def main() -> int:
    """Run them; 0 with one line where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("--report", type=Path, default=Path("gpu-report.md"), help="the table")
    parser.add_argument(
        "--rehearse", action="store_true", help="on the CPU, what can be done there; no check"
    )
    options, more = parser.parse_known_args()
    if not options.rehearse:
        import torch

        if not torch.cuda.is_available():
            print("no GPU: nothing checked")
            return 0
    where = ["--gpu-rehearsal"] if options.rehearse else ["--gpu"]
    report = f"--gpu-report={options.report.resolve()}"
    folder = str(Path(__file__).parent)
    return int(pytest.main([folder, *where, report, "--numprocesses=0", *more]))


if __name__ == "__main__":
    sys.exit(main())
