"""A typed size of memory beside a profile's, and without its unit: both are told in one."""

from __future__ import annotations

import pytest

from hpc_train.config.origins import Origins
from hpc_train.config.schema import SlurmConfig
from hpc_train.errors import ConfigError
from hpc_train.plan.from_config import _beside


@pytest.mark.parametrize(
    ("size", "said", "fix"),
    [
        (
            "64",
            "slurm.mem is 64, without a unit, and stands beside slurm.mem_per_cpu (s.yaml:1)",
            "64G",
        ),
        ("64G", "slurm.mem stands beside slurm.mem_per_cpu (s.yaml:1)", "64G"),
    ],
)
def test_the_fix_has_the_unit(size: str, said: str, fix: str) -> None:
    """Without it the fix was refused in its turn."""
    origins = Origins({"slurm.mem": "command line", "slurm.mem_per_cpu": "s.yaml:1"})
    slurm = SlurmConfig(mem=size, mem_per_cpu="1G")
    error = _beside(["mem", "mem_per_cpu"], slurm, origins)
    assert isinstance(error, ConfigError)
    assert error.message == f"command line: {said}"
    assert error.hint == f"write slurm.mem={fix} slurm.mem_per_cpu=null"
