"""A text in a number's or a function's place: which name has it, and what to write."""

from __future__ import annotations

import sys

import pytest
import torch

from hpc_train.training.failures.failure_words import fix_of

LAYER = torch.nn.Linear(1, 1)


def fix(make: object, *given: object) -> str:
    with pytest.raises((TypeError, ValueError)) as raised:
        make(*given)  # type: ignore[operator]
    return fix_of(raised.value)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lr", "0.1"], "lr is the text '0.1': write add_argument(\"--lr\", type=float)"),
        (["--lr=0.1"], "lr is the text '0.1': write add_argument(\"--lr\", type=float)"),
        ([], "lr is the text '0.1': write float(lr), or a number where it comes from"),
        (["--lr", "0.1", "--wd", "0.1"], "lr is the text '0.1': write float(lr), or a number"),
    ],
)
def test_an_argument_without_a_type_is_named(
    monkeypatch: pytest.MonkeyPatch, kind: object, words: list[str], said: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", *words])
    assert fix(kind, LAYER.parameters(), "0.1").startswith(said)


def test_a_size_is_a_whole_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", "--hidden", "16"])
    said = fix(torch.nn.Linear, 8, "16")
    assert said == "out_features is the text '16': write add_argument(\"--hidden\", type=int)"


def scale(x: float) -> float:
    return 2 * x


class Scale:
    def __call__(self, x: float) -> float:
        return 2 * x


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("torch.relu", "make one of it, self.act = getattr(torch, 'relu')"),
        ("relu", "make one of it, self.act = getattr(torch, 'relu')"),
        ("mish", "make one of it, self.act = getattr(torch.nn.functional, 'mish')"),
        ("F.mish", "make one of it, self.act = getattr(torch.nn.functional, 'mish')"),
        (
            "torch.nn.functional.mish",
            "make one of it, self.act = getattr(torch.nn.functional, 'mish')",
        ),
        ("nn.ReLU", "a config has {class_path: torch.nn.ReLU} for it, and code ReLU()"),
        ("ReLU", "a config has {class_path: torch.nn.ReLU} for it, and code ReLU()"),
        (f"{__name__}.Scale", f"a config has {{class_path: {__name__}.Scale}} for it, and code"),
        (
            f"{__name__}.scale",
            f"import {__name__} in that file, and write self.act = {__name__}.scale",
        ),
        ("nowhere.Scale", "give the object itself, or make it of the text there"),
        ("Scale", "give the object itself, or make it of the text there"),
        ("", "give the object itself, or make it of the text there"),
        ("a/b c", "give the object itself, or make it of the text there"),
    ],
)
def test_a_text_that_is_called_is_named(text: str, make: str) -> None:
    class Net:
        def __init__(self) -> None:
            self.act, self.name = text, "x"

        def go(self) -> None:
            self.act(1)  # type: ignore[operator]

    assert fix(Net().go).startswith(f"self.act is the text {text!r}, and no function: {make}")


def block(act: object) -> object:
    return act()  # type: ignore[operator]


def scaled(act: object) -> object:
    return act(1)  # type: ignore[operator]


OF_NET = {"model.init_args.act": "nn.GELU", "model.class_path": "nets.Net"}


@pytest.mark.parametrize(
    ("make", "texts", "said"),
    [
        (
            block,
            OF_NET,
            (
                "act is the text 'nn.GELU', from model.init_args.act, and no function: write"
                " model.init_args.act: GELU, and the line act = getattr(torch.nn, act) in __init__"
                " of the class that takes it"
            ),
        ),
        (
            scaled,
            OF_NET,
            (
                "act is the text 'nn.GELU', from model.init_args.act, and no function: a config has"
                " {class_path: torch.nn.GELU} for it, and code GELU()"
            ),
        ),
        (
            block,
            {**OF_NET, "data.init_args.act": "nn.GELU"},
            (
                "act is the text 'nn.GELU', and no function: a config has {class_path:"
                " torch.nn.GELU} for it, and code GELU()"
            ),
        ),
        (
            block,
            {},
            (
                "act is the text 'nn.GELU', and no function: a config has {class_path:"
                " torch.nn.GELU} for it, and code GELU()"
            ),
        ),
    ],
)
def test_a_text_of_the_config_that_is_called_is_told_with_its_key(
    make: object, texts: dict[str, str], said: str
) -> None:
    with pytest.raises(TypeError) as raised:
        make("nn.GELU")  # type: ignore[operator]
    assert fix_of(raised.value, texts=texts) == said


@pytest.mark.parametrize("give", [(divmod, 1), (len, 3), (int, [])])
def test_of_other_errors_nothing_is_said(give: tuple[object, ...]) -> None:
    make, *given = give
    assert fix(make, *given) == ""


def test_a_schedule_of_too_few_steps_is_told_what_counts_them() -> None:
    optimizer = torch.optim.SGD(LAYER.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)

    def go() -> None:
        for _ in range(3):
            optimizer.step()
            schedule.step()

    assert "total_steps=self.trainer.estimated_stepping_batches" in fix(go)
