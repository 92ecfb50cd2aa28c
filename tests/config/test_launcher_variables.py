"""Slurm's and MPI's variables in a script's text, where nothing sets them."""

from __future__ import annotations

import ast

import pytest

from hpc_train.config.meant_words.launcher_variables import notes_on_array, notes_on_variables

RANK = 'write os.environ["RANK"], which hpc-train sets everywhere'
LOCAL = RANK.replace("RANK", "LOCAL_RANK")
NODES = 'write int(os.environ["WORLD_SIZE"]) // int(os.environ["LOCAL_WORLD_SIZE"])'
JOB = 'write os.environ.get("SLURM_JOB_ID", VALUE), with what is to hold without Slurm'
EACH_0 = "so that each of the 2 ranks takes 0"


def notes(text: str, *environ: str, ranks: int = 2) -> list[str]:
    return [*notes_on_variables("t.py", ast.parse(text), environ, ranks=ranks)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('import os\nr = int(os.environ["SLURM_PROCID"])', [f"2: SLURM_PROCID is not set: {RANK}"]),
        (
            "from os import environ\ndef main():\n    return environ['SLURM_LOCALID']\nmain()",
            [f"3: SLURM_LOCALID is not set: {LOCAL}"],
        ),
        (
            'import os\na = int(os.environ["SLURM_PROCID"])\nb = int(os.getenv("SLURM_LOCALID"))',
            [f"2: SLURM_PROCID is not set: {RANK}", f"3: SLURM_LOCALID is not set: {LOCAL}"],
        ),
        (
            'import os\nsize = int(os.environ.get("SLURM_NTASKS"))',
            [f"2: SLURM_NTASKS is not set: {RANK.replace('RANK', 'WORLD_SIZE')}"],
        ),
        (
            'import os\nn = int(os.environ["SLURM_NNODES"])',
            [f"2: SLURM_NNODES is not set: {NODES}"],
        ),
        (
            'import os\nn = os.environ["SLURM_JOB_ID"]',
            [f"2: SLURM_JOB_ID is not set: {JOB}"],
        ),
        (
            'import os\nr = int(os.environ["OMPI_COMM_WORLD_RANK"])',
            [f"2: OMPI_COMM_WORLD_RANK is not set: {RANK}"],
        ),
        (
            'import os\nr = int(os.environ["OMPI_COMM_WORLD_NODE_RANK"])',
            [f"2: OMPI_COMM_WORLD_NODE_RANK is not set: {LOCAL}"],
        ),
        (
            'import os\nr = int(os.environ.get("SLURM_PROCID", 0))',
            [f"2: SLURM_PROCID is not set, {EACH_0}: {RANK}"],
        ),
        (
            'import os\nr = int(os.getenv("SLURM_PROCID", "0"))',
            [f"2: SLURM_PROCID is not set, {EACH_0}: {RANK}"],
        ),
    ],
)
def test_what_is_surely_read_and_not_set_is_told(text: str, said: list[str]) -> None:
    assert notes(text) == [f"t.py:{it}".replace("is not set", "is not set here") for it in said]


@pytest.mark.parametrize(
    "text",
    [
        'r = int(os.environ["RANK"])',
        'r = int(os.environ["HOME"])',
        'r = os.environ.get("SLURM_PROCID")',
        'r = os.environ.get("SLURM_JOB_ID", "local")',
        'r = int(os.environ.get("SLURM_PROCID", -1))',
        'r = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0)))',
        'r = int(os.environ.get("SLURM_PROCID", os.environ.get("RANK", 0)))',
        'r = int(os.environ.get("SLURM_PROCID", 0)) or int(os.environ["RANK"])',
        'r = int(os.environ["SLURM_PROCID"]) if "SLURM_PROCID" in os.environ else 0',
        'if "SLURM_PROCID" in os.environ:\n    r = os.environ["SLURM_PROCID"]',
        'if "SLURM_PROCID" not in os.environ:\n    exit()\nr = os.environ["SLURM_PROCID"]',
        'if on_slurm:\n    r = os.environ["SLURM_PROCID"]',
        'try:\n    r = os.environ["SLURM_PROCID"]\nexcept KeyError:\n    r = 0',
        'def never():\n    return os.environ["SLURM_PROCID"]',
        'os.environ["SLURM_PROCID"] = "0"\nr = os.environ["SLURM_PROCID"]',
        'os.environ.setdefault("SLURM_PROCID", "0")\nr = os.environ["SLURM_PROCID"]',
        'os.environ.update(mine)\nr = os.environ["SLURM_PROCID"]',
        'r = {"SLURM_PROCID": 1}["SLURM_PROCID"]',
        'print("SLURM_PROCID")',
    ],
)
def test_what_may_be_right_is_not_told(text: str) -> None:
    assert notes(f"import os\n{text}") == []


def test_what_is_set_or_reads_alike_on_one_rank_is_not_told() -> None:
    assert notes('import os\nos.environ["SLURM_PROCID"]', "SLURM_PROCID") == []
    assert notes('import os\nr = int(os.environ.get("SLURM_PROCID", 0))', ranks=1) == []


TASK = (
    "the job is no array: take the value as an argument of the script, and give all of them with"
    " --sweep lr=0.1,0.01 -- --lr {lr}"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'import os\nlr = [1, 2][int(os.environ["SLURM_ARRAY_TASK_ID"])]',
            [f"t.py:2: SLURM_ARRAY_TASK_ID is not set here: {TASK}"],
        ),
        (
            'import os\nn = int(os.getenv("SLURM_ARRAY_TASK_COUNT"))\nos.environ["SLURM_PROCID"]',
            [f"t.py:2: SLURM_ARRAY_TASK_COUNT is not set here: {TASK}"],
        ),
        ('import os\nlr = int(os.environ.get("SLURM_ARRAY_TASK_ID", 0))', []),
        ('import os\nif ready():\n    lr = int(os.environ["SLURM_ARRAY_TASK_ID"])', []),
        ('import os\nos.environ.update(x)\nlr = int(os.environ["SLURM_ARRAY_TASK_ID"])', []),
        ('import os\nr = os.environ["SLURM_PROCID"], os.environ["SLURM_JOB_ID"]', []),
    ],
)
def test_a_number_of_an_array_is_no_jobs_own(text: str, said: list[str]) -> None:
    """On Slurm, too, where its other variables are set."""
    assert [*notes_on_array("t.py", ast.parse(text))] == said
    local = [it for it in notes(text) if "SLURM_ARRAY" in it]
    assert local == said
