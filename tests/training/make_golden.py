"""Makes the checkpoints that all later code has to read: `python -m tests.training.make_golden`.

Run it once for each schema version, by the code that first writes that version, and commit what it
leaves in `golden/schema-N`. A folder that is there stays as it is: it stands for runs that users
have on their disks.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.training.ranks import Run

GOLDEN = Path(__file__).parent / "golden"
STEP = 5
SPECS: dict[str, dict[str, Any]] = {
    "lightning": {"accumulate": 2},
    "raw_loop": {"module": "tests.training.session_job"},
}


def golden_checkpoint(version: int, kind: str) -> Path:
    """The checkpoint of one schema version and one kind of loop."""
    return GOLDEN / f"schema-{version}" / kind / f"step-{STEP:09d}"


def main(version: int) -> None:
    for kind, spec in SPECS.items():
        with tempfile.TemporaryDirectory() as folder:
            run = Run(Path(folder), **spec)
            assert run.run(2, f"stop@step={STEP}:rank=1") == [75, 75]
            target = golden_checkpoint(version, kind)
            shutil.copytree(run.dir.checkpoints / target.name, target)


if __name__ == "__main__":
    main(int(sys.argv[1]))
