"""Paths with variables of the shell among the arguments of a batch script."""

from __future__ import annotations

import pytest

from tests.plan.test_translate import made

SCRIPT = "python sub/fit.py --out {}"


@pytest.mark.parametrize(
    ("lines", "word", "given", "typed"),
    [
        ("OUT=$HOME/results\n", "$OUT/a", "${oc.env:HOME}/results/a", '"${HOME}/results/a"'),
        ("OUT=${HOME}/r\nA=1\n", "${OUT}_b", "${oc.env:HOME}/r_b", '"${HOME}/r_b"'),
        ("", "/scratch/$USER", "/scratch/${oc.env:USER}", '"/scratch/${USER}"'),
        ("", "$SCRATCH_DIR", "${oc.env:SCRATCH_DIR}", '"${SCRATCH_DIR}"'),
        ("O=/s/$USER/$SLURM_JOB_ID\n", "$O", "/s/${oc.env:USER}/fit", '"/s/${USER}/fit"'),
        ("O=/s/x_${SLURM_JOBID}\n", "$O", "/s/x_fit", "/s/x_fit"),
        ("", "/s/$SLURM_JOB_ID/a", "/s/fit/a", "/s/fit/a"),
    ],
)
def test_they_are_those_of_the_shell_that_submits_and_one_for_all_jobs(
    lines: str, word: str, given: str, typed: str
) -> None:
    """A folder called $OUT was made, and that of a job's number is another in each job."""
    found = made(lines + SCRIPT.format(word))
    assert found.script[1:] == ["--out", given]
    assert found.submit_line() == f"hpc-train submit sub/fit.py -- --out {typed}"
    assert found.refused == []


def test_the_name_of_the_run_stands_for_the_jobs_number_also_in_what_makes_the_folder() -> None:
    text = "#SBATCH -J exp7\nOUT=/s/$USER/$SLURM_JOB_ID\nmkdir -p $OUT\n" + SCRIPT.format("$OUT")
    found = made(text)
    assert found.config["env.setup"] == ["OUT=/s/$USER/exp7", "mkdir -p $OUT"]
    assert found.script[-1] == "/s/${oc.env:USER}/exp7"
    assert dict(found.said)["OUT=/s/$USER/$SLURM_JOB_ID"] == (
        "OUT=/s/$USER/exp7: a run has several jobs, each with another number, and one folder for"
        " all"
    )


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("OUT=$(mktemp -d)\n", "$OUT"),
        ("OUT=$TMPDIR/a\n", "$OUT"),
        ("", "$TMPDIR/a"),
        ("OUT=$OTHER/a\n", "$OUT"),
        ("OUT=$HOME/a\nOUT=$(pwd)\n", "$OUT"),
        ("", "$SLURM_JOB_NODELIST"),
    ],
)
def test_what_another_shell_may_have_otherwise_is_told_as_before(lines: str, word: str) -> None:
    found = made(lines + SCRIPT.format(word))
    assert found.script[-1] == word
    assert "no shell fills it in: write the value that it stands for" in dict(found.said)[word]
