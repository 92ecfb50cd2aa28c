"""A batch script that goes into a folder before its training: the command goes there as well."""

from __future__ import annotations

import pytest

from hpc_train.plan.translate import translate
from hpc_train.plan.translation import Translation

HERE, HOME = "/home/me/proj", "/home/me"


def made(text: str) -> Translation:
    return translate(text, (), here=HERE, home=HOME)


@pytest.mark.parametrize(
    ("lines", "folder"),
    [
        ("cd src", "src"),
        ("cd 'src'", "src"),
        ("cd ./src/", "src"),
        ("cd -- src || exit 1", "src"),
        ("cd $SLURM_SUBMIT_DIR/src", "src"),
        ('cd "$SLURM_SUBMIT_DIR/src"', "src"),
        ('cd "${SLURM_SUBMIT_DIR}"/src  # the code', "src"),
        ("cd ${SLURM_SUBMIT_DIR:-.}/src", "src"),
        ("pushd src", "src"),
        ("pushd src > /dev/null", "src"),
        ("cd src\ncd trainer", "src/trainer"),
        ("cd src\ncd $SLURM_SUBMIT_DIR/other", "other"),
        ("cd data\ncd -\ncd src", "src"),
        ("pushd data\npopd\ncd src", "src"),
        ("cd $SCRATCH\ncd $SLURM_SUBMIT_DIR/src", "src"),
        ("CODE=src\ncd $SLURM_SUBMIT_DIR/$CODE", "src"),
        (f"cd {HERE}/src", "src"),
        ("cd ~/proj/src", "src"),
        ("cd $HOME/proj/src", "src"),
        ("cd ..", ".."),
        ("cd ~/other", "~/other"),
        ("cd '/data/my code'", "'/data/my code'"),
        ("#SBATCH --chdir=src", "src"),
        ("#SBATCH -D /home/me/proj/src", "src"),
    ],
)
def test_the_command_goes_where_the_script_went(lines: str, folder: str) -> None:
    found = made(f"#!/bin/bash\n{lines}\nsrun python main.py --lr 1\ncd elsewhere\n")
    assert found.submit_line() == f"cd {folder} && hpc-train submit main.py -- --lr 1"
    assert found.refused == []
    assert f"from: submit it from {folder.strip(chr(39))}" in " ".join(it for _, it in found.said)


@pytest.mark.parametrize(
    "line",
    [
        "cd $SLURM_SUBMIT_DIR",
        'cd "$SLURM_SUBMIT_DIR"',
        "cd ${SLURM_SUBMIT_DIR}/",
        "cd .",
        "cd $PWD",
        f"cd {HERE}",
        "cd ~/proj",
        "cd ../proj",
        "cd src && cd ..",
        "pushd src; popd",
        "echo nothing",
    ],
)
def test_a_folder_that_is_the_one_it_is_submitted_from_is_no_other(line: str) -> None:
    found = made(f"{line}\nsrun python main.py\n")
    assert found.submit_line() == "hpc-train submit main.py"
    assert "submit it from" not in str(found.said)


@pytest.mark.parametrize(
    "line", ["cd $SCRATCH/code", "cd $(dirname $0)", 'cd "${ROOT}"', "cd $SCRATCH\ncd src", "popd"]
)
def test_a_folder_that_only_the_shell_knows_is_told(line: str) -> None:
    found = made(f"{line}\nsrun python main.py\n")
    assert found.submit_line() == "hpc-train submit main.py"
    assert found.said[-1][0] == line.splitlines()[-1]
    assert found.said[-1][1].endswith("submit it from that one")


@pytest.mark.parametrize(
    "command",
    [
        "cd src && srun python main.py",
        'cd "src" && srun python main.py',
        "cd 'src'; srun python main.py",
        "(cd src && srun python main.py)",
        'bash -c "cd src && python main.py"',
        "srun --chdir=src python main.py",
    ],
)
def test_a_line_that_goes_there_and_trains_is_both(command: str) -> None:
    assert made(command).submit_line() == "cd src && hpc-train submit main.py"


def test_signs_inside_of_quotes_end_no_command() -> None:
    found = made("echo 'a && b; c' && srun python main.py --note \"x; y && z\" 'q # r'  # last")
    assert found.script == ["main.py", "--note", "x; y && z", "q # r"]
    assert found.submit_line() == "hpc-train submit main.py -- --note 'x; y && z' 'q # r'"


@pytest.mark.parametrize(
    ("line", "word", "said"),
    [
        ("cd src", "$SLURM_SUBMIT_DIR/data", "../data"),
        ("cd src", "--data=${SLURM_SUBMIT_DIR}/data/a", "--data=../data/a"),
        ("cd src", "$SLURM_SUBMIT_DIR", ".."),
        ("cd src", "$SLURM_SUBMIT_DIR/src/x", "x"),
        ("cd .", '"$SLURM_SUBMIT_DIR"/data', "data"),
        ("cd $SCRATCH", "$SLURM_SUBMIT_DIR/data", "$SLURM_SUBMIT_DIR/data"),
        ("cd src", "a$SLURM_SUBMIT_DIRS", "a$SLURM_SUBMIT_DIRS"),
    ],
)
def test_the_folder_of_the_submission_in_an_argument_is_a_path(
    line: str, word: str, said: str
) -> None:
    assert made(f"{line}\nsrun python main.py {word}\n").script == ["main.py", said]


def test_a_script_by_the_folder_of_the_submission_is_named_from_where_the_job_starts() -> None:
    line = "srun python $SLURM_SUBMIT_DIR/src/main.py\n"
    assert made(line).script == ["src/main.py"]
    assert made(f"cd data\n{line}").script == ["../src/main.py"]


@pytest.mark.parametrize(
    ("lines", "env", "config"),
    [
        ("source .venv/bin/activate\ncd src", {"venv": "../.venv"}, "../config.yaml"),
        ("cd src\nsource ../.venv/bin/activate", {"venv": "../.venv"}, "../config.yaml"),
        ("source /sw/v/bin/activate\ncd src/a", {"venv": "/sw/v"}, "../../config.yaml"),
        ("source env.sh\ncd src", {"setup": ["source ../env.sh"]}, "../config.yaml"),
        ('source "env.sh"\ncd src', {"setup": ['source "../env.sh"']}, "../config.yaml"),
        (
            "source $SLURM_SUBMIT_DIR/env.sh\ncd src",
            {"setup": ["source ../env.sh"]},
            "../config.yaml",
        ),
        (
            "cd env\nsource $SLURM_SUBMIT_DIR/e.sh\ncd ..",
            {"setup": ["source $SLURM_SUBMIT_DIR/e.sh"]},
            "config.yaml",
        ),
        (
            "export PYTHONPATH=$SLURM_SUBMIT_DIR:$PYTHONPATH\ncd src",
            {"setup": ["export PYTHONPATH=$SLURM_SUBMIT_DIR/..:$PYTHONPATH"]},
            "../config.yaml",
        ),
        (". ~/env.sh\ncd src", {"setup": [". ~/env.sh"]}, "../config.yaml"),
        ("cd env\n. ./a.sh\ncd ../src", {"setup": [". ../env/a.sh"]}, "../config.yaml"),
        ("source a/bin/activate\ncd ..", {"venv": "proj/a"}, "proj/config.yaml"),
        ("source a/bin/activate\ncd /data", {"venv": f"{HERE}/a"}, f"{HERE}/config.yaml"),
        ("cd env\nsource a/bin/activate\ncd ..", {"venv": "env/a"}, "config.yaml"),
    ],
)
def test_the_config_and_what_was_sourced_are_named_as_seen_from_there(
    lines: str, env: dict[str, object], config: str
) -> None:
    found = made(f"{lines}\nsrun python main.py\n")
    assert found.nested()["env"] == env
    assert found.submit_line().endswith(f"hpc-train submit {config}")
