"""The command `module` in lines of env.setup, which a batch shell may not know."""

from __future__ import annotations

import pytest

from hpc_train.config.schema import EnvConfig
from hpc_train.plan.shell import shell_plan

BRINGS = "type module >/dev/null 2>&1 || . /etc/profile"


@pytest.mark.parametrize(
    ("setup", "brings"),
    [
        (["module load cuda"], True),
        (["module purge", "module load cuda/12.9"], True),
        (["export A=1", "  ml cuda"], True),
        (["source /opt/lmod/init/bash", "module load cuda"], False),
        ([". /opt/lmod/init/bash", "module load cuda"], False),
        (["module use /opt/m", "source x.sh", "module load a"], True),
        (["echo module load"], False),
        (["modules=1"], False),
        ([], False),
    ],
)
def test_the_command_is_brought_where_no_line_before_makes_it(
    setup: list[str], brings: bool
) -> None:
    plan = shell_plan(EnvConfig(setup=setup), workdir=".", python="python")
    assert (BRINGS in plan.setup) == brings
    assert plan.setup[:1] == [BRINGS] or not brings


def test_it_is_brought_once_beside_modules() -> None:
    env = EnvConfig(modules=["cuda"], setup=["module load b"])
    assert shell_plan(env, workdir=".", python="python").setup.count(BRINGS) == 1
