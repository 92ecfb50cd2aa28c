"""A variable of the config that the preflight refuses: what is typed next."""

from __future__ import annotations

import shutil

from tests.e2e.conftest import Shell
from tests.e2e.test_held_gil import SCRIPTS


def test_a_variable_of_the_configs_env_is_to_be_mended_there_and_not_in_the_shell(
    here: Shell,
) -> None:
    """`resume` keeps the env of the submission, so that nothing unset in the shell changes it."""
    shutil.copy(SCRIPTS / "left_behind.py", here.folder / "train.py")
    words = ("train.py", "--gpus", 2, "script.accelerator=cpu")
    typed = ("run", *words, "env.variables.GLOO_SOCKET_IFNAME=ib7", "--", 1)
    said = here.hpc(*typed, code=10).stdout
    (go_on,) = (line for line in said.splitlines() if line.startswith("go on"))
    assert " once env.variables.GLOO_SOCKET_IFNAME is mended: hpc-train run train.py" in go_on
    assert "; hpc-train resume " in go_on
    assert go_on.endswith(" keeps the env of its submission but for env.KEY=VALUE behind it")
    here.environment["GLOO_SOCKET_IFNAME"] = "ib7"  # of the shell: resume takes what is set now
    said = here.hpc("run", *words, "--name", "other", "--", 1, code=10).stdout
    assert "keeps the env" not in said
