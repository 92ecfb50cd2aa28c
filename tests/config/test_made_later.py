"""An optimizer or a schedule as a value of a config is refused with where it is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.checking import check_in, nets, refusal_in
from tests.config.files import write

__all__ = ["nets"]

KEY = "cfg.yaml:3: model.init_args.width"
OWN = """
import torch
class Adam2(torch.optim.Optimizer):
    def __init__(self, params, lr): ...
class Below(Adam2): pass
class Plain(torch.optim.Optimizer):
    def __init__(self, lr): ...
class Given(torch.optim.Optimizer):
    def __init__(self, params, lr): ...
class Query:
    def __init__(self, params): ...
"""


@pytest.mark.parametrize(
    ("value", "form", "message", "hint"),
    [
        (
            "{_target_: torch.optim.Adam, lr: 0.001}",
            "_target_",
            "torch.optim.Adam needs the model's parameters, which are not there yet",
            (
                "give the model plain values (lr: 0.001) in its place, which its __init__ takes"
                " and keeps in self, and make it in configure_optimizers:"
                " torch.optim.Adam(self.parameters(), lr=self.lr)"
            ),
        ),
        (
            "{class_path: torch.optim.SGD, init_args: {lr: 0.1, momentum: 0.9, betas: [1, 2]}}",
            "class_path",
            "torch.optim.SGD needs the model's parameters",
            "torch.optim.SGD(self.parameters(), lr=self.lr, momentum=self.momentum)",
        ),
        ("{_target_: torch.optim.AdamW, params: ...}", "_target_", "needs", "(lr: 0.001) in"),
        ("{_target_: torch.optim.AdamW, params: [], wd: 1}", "_target_", "needs", "(wd: 1) in"),
        ("{_target_: own.Below, lr: 0.1}", "_target_", "own.Below needs", "(lr: 0.1) in"),
        (
            "{_target_: torch.optim.lr_scheduler.StepLR, step_size: 3}",
            "_target_",
            "StepLR needs an optimizer, which is not there yet",
            "torch.optim.lr_scheduler.StepLR(optimizer, step_size=self.step_size)",
        ),
        (
            "{_target_: torch.optim.lr_scheduler.ReduceLROnPlateau}",
            "_target_",
            "needs an optimizer",
            "ReduceLROnPlateau(optimizer)",
        ),
    ],
)
def test_what_needs_the_models_parameters_is_made_by_the_model(
    value: str, form: str, message: str, hint: str, nets: Path
) -> None:
    write(nets, OWN, "own.py")
    told = refusal_in(nets, f"{{class_path: nets.Net, init_args: {{width: {value}}}}}")
    assert told.message.startswith(f"{KEY}.{form}: ")
    assert message in told.message
    assert hint in (told.hint or "")


@pytest.mark.parametrize(
    "value",
    [
        "{_target_: own.Plain, lr: 0.1}",
        "{_target_: own.Given, params: [a, b], lr: 0.1}",
        "{_target_: own.Query, params: [1]}",
        "{optimizer: adam, lr: 0.1, params: [1]}",
        "torch.optim.Adam",
    ],
)
def test_what_a_config_can_make_is_not_refused(value: str, nets: Path) -> None:
    write(nets, OWN, "own.py")
    check_in(nets, f"{{class_path: nets.Net, init_args: {{width: {value}}}}}")
