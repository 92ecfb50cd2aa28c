"""Variables of a batch script whose values stand in the arguments of its training."""

from __future__ import annotations

import pytest

from hpc_train.plan.translate import translate

IN_PLACE = "left out: its value stands where it is used"
NOT_EXPORTED = "left out: it is not exported, so the training does not see it"


@pytest.mark.parametrize(
    ("lines", "arguments"),
    [
        ("N=3; python t.py --n $N", ["--n", "3"]),
        ("N=3; python t.py --n ${N}", ["--n", "3"]),
        ("N=3; python t.py --n ${N:-5}", ["--n", "3"]),
        ("N=3; python t.py --n ${N:=5}", ["--n", "3"]),
        ("N=3; python t.py --n ${N-5}", ["--n", "3"]),
        ("N=; python t.py --n ${N:-5}", ["--n", "5"]),
        ("python t.py --n ${N:-5}", ["--n", "5"]),
        ('python t.py --n="${N:=5}" m', ["--n=5", "m"]),
        ("python t.py ${A:-1}/${B:-2}", ["1/2"]),
        ("N=${N:-5}\npython t.py --n $N", ["--n", "5"]),
        ('N="${N:-5}"\npython t.py --n $N', ["--n", "5"]),
        (": ${N:=5}\npython t.py --n $N", ["--n", "5"]),
        ("N=3\nN=4\npython t.py --n $N", ["--n", "4"]),
        # what the job's environment may set, or the shell alone can tell
        ("python t.py ${SCRATCH:-/tmp}/a", ["${SCRATCH:-/tmp}/a"]),
        ("python t.py ${SLURM_NNODES:-1}", ["${SLURM_NNODES:-1}"]),
        ("N=$(cat n)\npython t.py ${N:-5}", ["${N:-5}"]),
        ("N=3\nN=$(cat n)\npython t.py $N", ["$N"]),
        ("python t.py ${N:-$M}", ["${N:-$M}"]),
        ("python t.py ${N:-}", ["${N:-}"]),
    ],
)
def test_a_value_above_or_the_default_stands_in_the_arguments(
    lines: str, arguments: list[str]
) -> None:
    assert translate(lines, ()).script[1:] == arguments


def test_a_default_is_told_to_be_one() -> None:
    found = translate("L=${L:-1}\npython train.py --n ${N:-5} --l $L", ())
    assert dict(found.said) == {
        "${N:-5}": "5: its default, as nothing above sets it",
        "L=${L:-1}": "L is 1: its default, as nothing above sets it",
    }


def test_what_became_of_a_variable_is_told_by_where_it_is_used() -> None:
    script = """
LR=0.01; EPOCHS=3
DIR=/data
UNUSED=4
TOLD=5
HEAD=$(scontrol show hostnames | head -1)
WD=$(cat wd.txt)
export OUT=$DIR/out
echo $TOLD
srun torchrun --rdzv_endpoint $HEAD:29500 train.py --lr $LR --epochs ${EPOCHS:-5} --wd $WD
"""
    said = dict(translate(script, ()).said)
    assert [said[it] for it in ("LR=0.01", "EPOCHS=3", "DIR=/data")] == [IN_PLACE] * 3
    assert said["UNUSED=4"] == said["TOLD=5"] == NOT_EXPORTED
    assert said["HEAD=$(scontrol show hostnames | head -1)"] == NOT_EXPORTED
    assert said["WD=$(cat wd.txt)"] == "left out: no shell computes an argument of the script"
    assert said["$WD"] == "no shell fills it in: write the value that it stands for"


def test_a_default_in_a_line_for_the_shell_stays_its_own() -> None:
    found = translate("export OUT=${OUT_DIR:-/tmp}\npython train.py", ())
    assert found.config == {"env.setup": ["export OUT=${OUT_DIR:-/tmp}"]}


@pytest.mark.parametrize("line", [": ${HF_TOKEN:=hush}", "HF_TOKEN=${HF_TOKEN:-hush}"])
def test_a_default_of_a_secret_is_not_written(line: str) -> None:
    assert "hush" not in str(translate(f"{line}\npython train.py --to $HF_TOKEN", ()))


@pytest.mark.parametrize(
    "value",
    ["$(cat lr.txt)", '$(sed -n "${I}p" a.txt)', "$(cat a | head -1; true)", "$((I + 1))"],
)
def test_what_stands_behind_a_computed_value_in_a_line_is_a_command_of_its_own(value: str) -> None:
    found = translate(f"LR={value}; python train.py --lr $LR  # as before", ())
    assert (found.script, found.refused) == (["train.py", "--lr", "$LR"], [])
    assert list(found.config) == []
    assert "left out: no shell computes an argument of the script" in dict(found.said).values()


def test_the_default_of_an_argument_of_the_batch_script_is_taken_and_told() -> None:
    line = "torchrun --nnodes=1 --nproc_per_node=${2:-4} ${1:-train.py} --lr ${3:-0.1}"
    made = translate(f'echo "${{1:-train.py}}"\n{line}\n', ())
    assert made.submit_line() == "hpc-train submit --nodes 1 --gpus 4 train.py -- --lr 0.1"
    assert [it for it in made.said if "${2" in it[0]] == [
        ("${2:-4}", "4: its default, as an argument of the batch script")
    ]
    assert made.refused == []


@pytest.mark.parametrize("word", ["$1", "${1}", "${1:?no file}", '"$@"'])
def test_an_argument_of_the_batch_script_without_a_default_is_refused(word: str) -> None:
    assert translate(f"#SBATCH -N 1\npython train.py --lr {word}", ()).refused
