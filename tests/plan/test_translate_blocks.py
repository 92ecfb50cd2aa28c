"""Loops, conditions and second scripts of a batch script: what they are here."""

from __future__ import annotations

import pytest

from tests.plan.test_translate import made

IS_A_SWEEP = ["--lr", "{lr}"]


@pytest.mark.parametrize(
    "text",
    [
        "for lr in 0.1 0.01; do\n  python a.py --lr $lr\ndone",
        "for lr in 0.1 0.01\ndo\n  python a.py --lr ${lr}\ndone",
        "for lr in 0.1 0.01; do python a.py --lr $lr; done",
        'LRS=(0.1 0.01)\nfor lr in "${LRS[@]}"; do srun python a.py --lr "$lr"; done',
    ],
)
def test_a_loop_of_trainings_is_a_sweep(text: str) -> None:
    """`write what it does into env.setup` was told, where no training can stand."""
    found = made(text)
    assert found.refused == []
    assert found.script == ["a.py", *IS_A_SWEEP]
    assert found.submit_line() == "hpc-train submit a.py --sweep lr=0.1,0.01 -- --lr '{lr}'"
    said = dict(found.said)
    assert not {"do", "done"} & said.keys()
    assert said[next(it for it in said if it.startswith("for "))] == (
        "--sweep lr=0.1,0.01, a run for each of them"
    )


def test_loops_within_each_other_are_one_sweep_of_both() -> None:
    text = "for lr in 0.1 1; do\nfor m in small big; do\n{}\ndone\ndone\npython b.py --lr $lr"
    found = made(text.format("python a.py --lr=$lr --model $m --out runs/${lr}_$m"))
    assert found.submit_line() == (
        "hpc-train submit a.py --sweep lr=0.1,1 --sweep m=small,big --"
        " '--lr={lr}' --model '{m}' --out 'runs/{lr}_{m}'"
    )
    assert [word for word, _ in found.refused] == ["b.py --lr '$lr'"]  # behind the loop


@pytest.mark.parametrize(
    ("values", "swept"),
    [
        ("1", "[1]"),
        ("{1..3}", "1,2,3"),
        ("$(seq 3)", "1,2,3"),
        ("$(seq 1 20)", "range(1,21)"),
        ("$(ls)", ""),
        ("*.yaml", ""),
        ("1 1", ""),
        ("{3..1}", ""),
        ('"${NONE[@]}"', ""),
    ],
)
def test_values_of_a_loop_are_those_that_the_text_tells(values: str, swept: str) -> None:
    found = made(f"for s in {values}; do python a.py --s $s; done")
    assert found.loops.options == (["--sweep", f"s={swept}"] if swept else [])
    assert bool(found.refused) is not bool(swept)


def test_a_loop_that_no_training_has_a_value_of_has_no_equivalent() -> None:
    ((line, why),) = made("for i in 1 2; do\npython a.py\ndone").refused
    assert line == "for i in 1 2"
    assert why == (
        "a loop is the shell's: of trainings it is a sweep, with {i} for $i: --sweep i=1,2"
    )


def test_a_condition_of_a_checkpoint_is_script_resume() -> None:
    text = 'if [ -f ckpt/last.ckpt ]; then\n  R="--resume ckpt/last.ckpt"\nfi\npython a.py'
    ((line, why),) = made(text).refused
    assert line == "if [ -f ckpt/last.ckpt ]"
    form = 'script.resume: {when: ckpt/last.ckpt, args: [OPTION, "{newest}"]}'
    assert why.startswith(f"is the shell's: {form} gives a script its arguments where")


@pytest.mark.parametrize("line", ["if [ -d /scratch ]; then", "while true; do", "case $X in"])
def test_any_other_is_the_shells(line: str) -> None:
    refused = made(f"{line}\necho x\nfi\npython a.py").refused
    assert [why for _, why in refused] == ["is the shell's: write what it does into env.setup"]


AFTER = "; with --after RUN it begins once the first one's run is complete"


def test_a_second_script_is_told_as_a_command_of_its_own() -> None:
    ((words, why),) = made("python prepare.py --out d\npython a.py --data d").refused
    assert words == "a.py --data d"
    own = f"this one is hpc-train submit a.py -- --data d{AFTER}"
    assert why == f"is a second script, and prepare.py is taken: a run is one of them; {own}"
    last = made("python a.py\npython eval.py").refused[0][1]
    assert last.endswith(f"this one is hpc-train submit eval.py{AFTER}")


HEAD = "#SBATCH --gres=gpu:2 --time=02:00:00 -J both\nmodule load cuda\n"


@pytest.mark.parametrize(
    ("first", "second", "said", "own"),
    [
        ("a.py --n 3", "b.py --m 4", "a second script", "script.path=b.py name=b -- --m 4"),
        ("a.py --n 3", "sub/b.py", "a second script", "script.path=sub/b.py name=b 'script.args"),
        ("a.py", "b.py", "a second script", "script.path=b.py name=b;"),
        ("a.py --n 3", "a.py --n 4", "the same script", "script.path=a.py name=a -- --n 4"),
    ],
)
def test_a_second_script_has_what_the_job_asks_for_as_well(
    first: str, second: str, said: str, own: str
) -> None:
    """It was told without GPUs, time and modules."""
    ((words, why),) = made(f"{HEAD}srun python {first}\nsrun python {second}").refused
    assert words == second
    assert why.startswith(f"is {said}, and a.py is taken: a run is one of them; this one is hpc-")
    assert f"hpc-train submit --gpus 2 config.yaml {own}" in why


def test_each_of_three_scripts_is_told() -> None:
    refused = made("torchrun --nproc_per_node=2 a.py\npython b.py\npython c.py -x").refused
    assert [words for words, _ in refused] == ["b.py", "c.py -x"]
    assert "hpc-train submit --gpus 2 b.py;" in refused[0][1]
    assert "hpc-train submit --gpus 2 c.py -- -x;" in refused[1][1]
