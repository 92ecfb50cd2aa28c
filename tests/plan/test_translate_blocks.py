"""Loops, conditions and second scripts of a batch script: what they are here."""

from __future__ import annotations

import pytest

from tests.plan.test_translate import made

SWEEP = "a loop is the shell's: of trainings it is a sweep, with {lr} for $lr: --sweep lr=0.1,0.01"


@pytest.mark.parametrize(
    "text",
    [
        "for lr in 0.1 0.01; do\n  python a.py --lr $lr\ndone",
        "for lr in 0.1 0.01\ndo\n  python a.py --lr $lr\ndone",
        "for lr in 0.1 0.01; do python a.py --lr $lr; done",
    ],
)
def test_a_loop_of_trainings_is_a_sweep(text: str) -> None:
    """`write what it does into env.setup` was told, where no training can stand."""
    assert [why for _, why in made(text).refused] == [SWEEP]


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
