"""`sbatch --wrap "..."`, and `sbatch OPTIONS job.sh ARGUMENTS`, as hpc-train's."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hpc_train.cli.translate_command import command
from hpc_train.config.meant_words.near_files import MADE_BY_US
from hpc_train.errors import UsageError
from hpc_train.plan.translate import translate
from hpc_train.plan.translate_batch import batch_file_of, with_typed

JOB = """\
#!/bin/bash
#SBATCH --nodes=2 --gpus-per-node=4
#SBATCH --time=1:00:00  # an hour
srun python train.py --lr $1 --out ${2}
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "sbatch --gres=gpu:4 --wrap 'python train.py --lr 0.1'",
            "hpc-train submit --gpus 4 train.py -- --lr 0.1",
        ),
        (
            "sbatch -N2 --gpus-per-node=2 --wrap='srun python train.py'",
            "hpc-train submit --nodes 2 --gpus 2 train.py",
        ),
        (
            "sbatch -D sub --gres=gpu:2 --wrap 'cd x && torchrun --nproc_per_node 2 train.py'",
            "cd sub/x && hpc-train submit --gpus 2 train.py",
        ),
        (
            "sbatch --wrap 'python train.py' --chdir /data/p --gres=gpu:1",
            "cd /data/p && hpc-train submit --gpus 1 train.py",
        ),
        (
            'for lr in 0.1 0.2; do\nsbatch -D sub -G1 --wrap "python train.py --lr $lr"\ndone',
            "cd sub && hpc-train submit --gpus 1 train.py --sweep lr=0.1,0.2 -- --lr '{lr}'",
        ),
    ],
)
def test_a_wrapped_command_is_read_where_the_job_starts(text: str, line: str) -> None:
    made = translate(text, [])
    assert made.refused == []
    assert made.submit_line() == line


def test_what_is_wrapped_and_starts_no_training_is_told() -> None:
    ((word, why),) = translate("sbatch --gres=gpu:1 --wrap 'make data'", []).refused
    assert (word, why) == ("make", "starts no training that is known: put it into env.setup")


def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, job: str = JOB) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text(job)
    return str(CliRunner().invoke(command, [text]).output)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "sbatch -D sub -t 2:00 job.sh 0.3 out",
            "# cd sub && hpc-train submit --nodes 2 --gpus 4 ../config.yaml",
        ),
        (
            "sbatch -N 4 --time=2:00 --gres=gpu:1 ./job.sh 0.3 out",
            "# hpc-train submit --nodes 4 --gpus 1 config.yaml",
        ),
        (
            "/usr/bin/sbatch --chdir=/data/p job.sh 0.3 out",
            "# cd /data/p && hpc-train submit --nodes 2 --gpus 4 ",
        ),
    ],
)
def test_a_file_is_read_with_what_is_typed_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    said = told(tmp_path, monkeypatch, text)
    assert line in said
    assert "- '0.3'\n  - --out\n  - out\n" in said
    assert "no equivalent" not in said
    assert ("time: 1:00:00" in said) == ("2:00 " not in text)


def test_options_that_are_typed_take_the_place_of_the_file_s() -> None:
    words = ["sbatch", "-t", "2:00", "--gres=gpu:1", "job.sh"]
    assert with_typed(JOB, words).splitlines()[:4] == [
        "#SBATCH -t=2:00",
        "#SBATCH --gres=gpu:1",
        "#!/bin/bash",
        "#SBATCH --nodes=2",
    ]


def test_arguments_with_blanks_are_left_to_the_shell() -> None:
    text = with_typed('python a.py "$@" $1\n', ["sbatch", "job.sh", "a b"])
    assert text == 'python a.py "$@" $1'
    text = with_typed('python a.py "$@" $1 ${2} $3 $10', ["sbatch", "job.sh", "a", "b"])
    assert text == "python a.py a b a b $3 $10"


@pytest.mark.parametrize("words", [["srun", "job.sh"], ["sbatch", "--wrap", "x"], ["sbatch"], []])
def test_other_commands_name_no_file(words: list[str]) -> None:
    assert batch_file_of(words) == ("", [])


def test_a_file_that_we_made_is_told_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text(f"#!/bin/bash\n# {MADE_BY_US}\n")
    error = CliRunner().invoke(command, ["sbatch -N2 job.sh"]).exception
    assert isinstance(error, UsageError)
    assert "job.sh was made by hpc-train" in error.message
    assert error.hint == "it is a rendered training: sbatch job.sh"
