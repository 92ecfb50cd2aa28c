"""Where the commands that are measured lie."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import BenchError

__all__ = ["PEERS_VARIABLE", "REPOSITORY", "Places"]

REPOSITORY = Path(__file__).resolve().parent.parent
PEERS_VARIABLE = "HPC_TRAIN_BENCH_VENV"


@dataclass(frozen=True)
class Places:
    """The environment that runs this, and the one that holds the peers."""

    peers: Path

    @classmethod
    def find(cls, named: Path | None) -> Places:
        """As named by the caller, by the variable, or `VENV-bench` beside the venv that runs."""
        variable = os.environ.get(PEERS_VARIABLE)
        return cls(named or Path(variable or f"{sys.prefix}-bench"))

    @property
    def python(self) -> str:
        """The interpreter of hpc-train, which also runs submitit by itself."""
        return sys.executable

    @property
    def hpc_train(self) -> str:
        """The command as it was installed."""
        return str(_existing(Path(sys.executable).with_name("hpc-train"), "pip install -e ."))

    def peer(self, name: str) -> str:
        """A peer's command.

        Raises:
            BenchError: it is not installed; with the way to name another place.
        """
        advice = f"pip install {name} into it, or name another with --peers or {PEERS_VARIABLE}"
        return str(_existing(self.peers / "bin" / name, advice))


def _existing(path: Path, advice: str) -> Path:
    if not path.exists():
        raise BenchError(f"{path} is not there: {advice}")
    return path
