"""A job array of sbatch is a sweep where the arguments of the script tell its values."""

from __future__ import annotations

import pytest

from hpc_train.plan.translate import translate
from hpc_train.plan.translate_array import array_numbers
from hpc_train.plan.translation import Translation

ID = "$SLURM_ARRAY_TASK_ID"
LRS = "LRS=(0.1 0.01 0.001)"


def made(array: str, *lines: str) -> Translation:
    return translate("\n".join(["#!/bin/bash", f"#SBATCH --array={array}", *lines]), ())


@pytest.mark.parametrize(
    ("array", "numbers"),
    [
        ("3", [3]),
        ("1-5", [1, 2, 3, 4, 5]),
        ("0-9:3", [0, 3, 6, 9]),
        ("1,3,7", [1, 3, 7]),
        ("7,1-3,2,10-14:2", [1, 2, 3, 7, 10, 12, 14]),
        ("01-03", [1, 2, 3]),
        ("5-1", []),
        ("0-9:0", []),
        ("$N", []),
        ("", []),
        ("0-9999", list(range(10_000))),
        ("0-10000", []),
        ("0-9998,20000,20001", []),
    ],
)
def test_the_numbers_of_an_array_are_those_of_sbatch(array: str, numbers: list[int]) -> None:
    assert array_numbers(array) == numbers


@pytest.mark.parametrize(
    ("array", "arguments", "filled", "options"),
    [
        ("1-5%2", f"--seed {ID} --epochs 2", "--seed {seed} --epochs 2", "seed=1,2,3,4,5 %2"),
        ("1-2", "--seed=${SLURM_ARRAY_TASK_ID} x", "--seed={seed} x", "seed=1,2"),
        ("1-2", f'x --seed "{ID}"', "x --seed {seed}", "seed=1,2"),
        ("0-9:3", f"--seed {ID}", "--seed {seed}", "seed=0,3,6,9"),
        ("1,3,7%10", f"--seed {ID}", "--seed {seed}", "seed=1,3,7 %10"),
        ("4", f"--seed {ID}", "--seed {seed}", "seed=4"),
        ("1-2%0", f"--seed {ID}", "--seed {seed}", "seed=1,2"),
        ("0-99", f"--seed {ID}", "--seed {seed}", "seed=range(0,100)"),
        ("0-99:3", f"--seed {ID}", "--seed {seed}", "seed=range(0,100,3)"),
        ("0-9,20-21", f"--n {ID}", "--n {n}", "n=0,1,2,3,4,5,6,7,8,9,20,21"),
        ("1-2", f"--data-fold {ID}", "--data-fold {data_fold}", "data_fold=1,2"),
        ("1-2", f"data.fold={ID}", "data.fold={fold}", "fold=1,2"),
        ("1-2", f"--data.fold={ID}", "--data.fold={fold}", "fold=1,2"),
        ("1-2", f"{ID}", "{task}", "task=1,2"),
        ("1-2", "--seed $((SLURM_ARRAY_TASK_ID + 10))", "--seed {seed}", "seed=11,12"),
        # the same value once more, within a word
        ("1-2", f"--seed {ID} --out runs/{ID}.d", "--seed {seed} --out runs/{seed}.d", "seed=1,2"),
        # braces that are the script's own
        ("1-2", f"--seed {ID} --to x{{seed}}", "--seed {seed_} --to x{seed}", "seed_=1,2"),
    ],
)
def test_a_tasks_number_is_the_value_of_a_sweep(
    array: str, arguments: str, filled: str, options: str
) -> None:
    found = made(array, f"srun python train.py {arguments}")
    sweep, _, at_most = options.partition(" %")
    wanted = ["--sweep", sweep, *(["--at-most", at_most] if at_most else [])]
    assert found.refused == []
    assert found.script == ["train.py", *filled.split()]
    assert found.array.options == wanted
    assert (f"--array={array}", " ".join(wanted)) in found.said
    assert not any("no shell fills it in" in what for _, what in found.said)


@pytest.mark.parametrize(
    "lines",
    [
        [LRS, f"python train.py --lr ${{LRS[{ID}]}}"],
        [f"{LRS}; python train.py --lr ${{LRS[{ID}]}}"],
        [LRS, "python train.py --lr ${LRS[SLURM_ARRAY_TASK_ID]}"],
        [LRS, "python train.py --lr ${LRS[${SLURM_ARRAY_TASK_ID}]}"],
        [LRS, f'python train.py --lr "${{LRS[{ID}]}}"'],
        [f"declare -a {LRS}", f"python train.py --lr ${{LRS[{ID}]}}"],
        ["LRS=(", "  0.1  # as before", "  0.01", "  0.001 )", f"python t.py --lr ${{LRS[{ID}]}}"],
        [LRS, f"LR=${{LRS[{ID}]}}", "python train.py --lr $LR"],
        [LRS, f"i={ID}", "LR=${LRS[$i]}", "python train.py --lr ${LR}"],
        ['LRS=("0.1" 0.01 0.001)', f"LR=${{LRS[{ID}]}}; python train.py --lr $LR"],
    ],
)
def test_a_list_that_the_tasks_number_chooses_from_gives_the_values(lines: list[str]) -> None:
    found = made("0-2", *lines)
    assert found.refused == []
    assert found.script[1:] == ["--lr", "{lr}"]
    assert found.array.options == ["--sweep", "lr=0.1,0.01,0.001"]
    assert not any("not exported" in what for _, what in found.said)


@pytest.mark.parametrize("index", [f"{ID}-1", f"{ID} - 1", "$((SLURM_ARRAY_TASK_ID - 1))"])
def test_a_list_may_be_counted_from_another_number(index: str) -> None:
    found = made("1-3:2", LRS, f"LR=${{LRS[{index}]}}", "python train.py --lr $LR")
    assert found.array.options == ["--sweep", "lr=0.1,0.001"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ('small "a b" large', "small,a b,large"),
        ("01 yes null", '"01","yes","null"'),
        ("1e-3 .5 -1", "1e-3,.5,-1"),
        ('"x,y" k=v "#c"', '"x,y",k=v,"#c"'),
    ],
)
def test_a_value_that_yaml_reads_as_another_one_is_quoted(values: str, text: str) -> None:
    found = made("0-2", f"A=({values})", f"python train.py --net ${{A[{ID}]}}")
    assert found.array.options == ["--sweep", f"net={text}"]


@pytest.mark.parametrize(
    ("array", "lines", "why"),
    [
        ("1-2", ["python train.py"], "write {KEY} among the script's arguments"),
        ("1-2", [f"python train.py data/{ID}.csv"], "write {KEY} among the script's arguments"),
        ("1-2", ["python train.py --n $((SLURM_ARRAY_TASK_ID*2))"], "{KEY}"),
        ("1-2", [f'A=$(sed -n "{ID}p" a.txt)', "python train.py --lr $A"], "{KEY}"),
        ("0-1", [LRS, "A=${LRS[$((SLURM_ARRAY_TASK_ID / 3))]}", "python t.py --lr $A"], "{KEY}"),
        ("0-1", [LRS, f"A=${{LRS[{ID} % 3]}}", "python t.py --lr $A"], "{KEY}"),
        ("0-3", [LRS, f"python t.py --lr ${{LRS[{ID}]}}"], "LRS has 3 values, from number 0 to 2"),
        ("0-2", [LRS, f"python t.py --lr ${{LRS[{ID}-1]}}"], "task 0 takes number -1"),
        ("0-1", ["A=(1 1.0)", f"python t.py --lr ${{A[{ID}]}}"], "A has 1.0 twice"),
        ("0-1", ["A=($(cat a))", f"python t.py --lr ${{A[{ID}]}}"], "values of A are not known"),
        ("0-1", ["A=(*.csv)", f"python t.py --lr ${{A[{ID}]}}"], "values of A are not known"),
        ("0-2", [LRS, f"python t.py --lr ${{LRS[{ID}]}} --seed {ID}"], "belong together"),
        ("0-2", [LRS, f"python t.py --lr ${{LRS[{ID}]}} --out a/{ID}"], "{lr} can stand in its"),
        ("$N", [f"python train.py --seed {ID}"], "has no numbers"),
        ("0-20000", [f"python train.py --seed {ID}"], "10,000 points"),
    ],
)
def test_an_array_that_is_no_sweep_is_refused_with_what_to_do(
    array: str, lines: list[str], why: str
) -> None:
    found = made(array, *lines)
    ((word, reason),) = found.refused
    assert (word, why in reason) == (f"--array={array}", True), reason
    assert "--sweep" not in found.submit_line()


def test_a_number_whose_array_stands_elsewhere_is_told_with_the_sweep() -> None:
    found = translate(f"python train.py --seed {ID}", ())
    by_hand = "write {KEY} in its place, and --sweep KEY=VALUES behind the command"
    assert (ID, f"no shell fills it in: {by_hand}") in found.said
    assert found.refused == []


def test_a_variable_of_the_environment_has_no_value_of_each_run() -> None:
    export, train = f"export SEED={ID}", "python train.py --seed"
    ((word, why),) = made("1-2", export, f"{train} {ID}").refused
    assert (word, "share their environment" in why) == (export, True)
    found = made("1-2", export, f"{train} $SEED")
    assert found.refused == []
    assert found.array.options == ["--sweep", "seed=1,2"]
    assert "its value stands where it is used" in dict(found.said)[export]
    ((word, why),) = made("1-2", f"SEED={ID} {train} {ID}").refused
    assert (word, "share their environment" in why) == (f"SEED={ID}", True)
    (refused, *_) = made("1-2", f"source env{ID}.sh", f"{train} {ID}").refused
    assert refused[0] == f"source env{ID}.sh"


def test_the_line_has_the_sweep_where_the_command_takes_it() -> None:
    train = f"python train.py --seed {ID}"
    line = made("1-2%1", train).submit_line()
    options = "--sweep seed=1,2 --at-most 1"
    assert line == f"hpc-train submit train.py {options} -- --seed '{{seed}}'"
    assert made("1-2%1", "#SBATCH -J a", train).submit_line().endswith(f"config.yaml {options}")
    there = made("1-2%1", "#SBATCH -J a", "cd src", train).submit_line()
    assert there == f"cd src && hpc-train submit ../config.yaml {options}"
    found = made("1-2", f"CUDA_VISIBLE_DEVICES=0 {train}")
    assert found.submit_line().startswith("hpc-train submit --gpus 1 train.py --sweep")


@pytest.mark.parametrize("index", [ID, "$((SLURM_ARRAY_TASK_ID / 3))", f"{ID} % 3"])
def test_a_list_of_an_array_that_is_no_sweep_is_told_to_be_of_the_shell(index: str) -> None:
    chosen = f"LR=${{LRS[{index}]}}"
    found = made("0-8", LRS, chosen, "echo ${LRS[@]}", "python train.py --lr $LR")
    assert len(found.refused) == 1
    what = "left out: no shell computes an argument of the script"
    told = dict(found.said)
    assert told[LRS] == told[chosen.replace(" ", "")] == what
