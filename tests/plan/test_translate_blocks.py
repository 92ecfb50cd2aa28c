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


def test_a_second_script_is_told_as_a_command_of_its_own() -> None:
    ((words, why),) = made("python prepare.py --out d\npython a.py --data d").refused
    assert words == "a.py --data d"
    own = "this one is hpc-train submit a.py -- --data d"
    assert why == f"is a second script, and prepare.py is taken: a run is one of them; {own}"
    assert made("python a.py\npython eval.py").refused[0][1].endswith("hpc-train submit eval.py")
