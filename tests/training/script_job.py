"""One rank that runs a script, forked off a server that has imported Lightning already."""

from __future__ import annotations

import os
import sys
from typing import Any

from hpc_train.plan import env_names
from hpc_train.training import rank
from hpc_train.training.script_rank import ScriptRank


def main(spec: dict[str, Any]) -> None:
    os.environ[env_names.RUN_DIR] = spec["run_dir"]
    os.environ[env_names.ATTEMPT] = str(spec["attempt"])
    os.environ[env_names.MASTER_PORT] = str(spec["port"])
    os.environ.update(spec.get("environment", {}))
    sys.path.insert(0, "")  # as `python -m` does
    sys.path += spec.get("folders", [])
    sys.exit(rank.main(ScriptRank))
