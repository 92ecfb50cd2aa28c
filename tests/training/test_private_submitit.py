"""What hpc-train overrides in submitit, held against the installed version without any Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.backends.job_entry import train_in_job
from hpc_train.backends.script_executor import ScriptExecutor

SBATCH = """#!/bin/sh
printf '%s\\n' "$@" > "$OUT/arguments"
for last; do :; done
cat "$last" > "$OUT/script"
echo "Submitted batch job 7"
"""


def test_submitit_submits_the_script_it_is_given_with_our_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("sbatch", SBATCH), ("srun", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("OUT", str(tmp_path))
    script = "#!/bin/bash\n#SBATCH --nodes=2\necho 'one text'\n"
    executor = ScriptExecutor(tmp_path / "submitit", script, ["--chdir=/w", "--exclude=n1"])
    assert executor.submit(train_in_job, "/runs/x", None).job_id == "7"
    assert (tmp_path / "script").read_text() == script
    assert (tmp_path / "arguments").read_text().splitlines()[:2] == ["--chdir=/w", "--exclude=n1"]
