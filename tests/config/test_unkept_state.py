"""What a loop with a Session trains with and does not keep is noted, with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.python_text.modules import read_names
from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.scripts.unkept_state import unkept_state
from tests.config.files import write
from tests.config.test_ranks_apart import told
from tests.config.test_session_calls import LOOP

ADAM = LOOP.replace("torch.optim.SGD(net.parameters(), 0.1)", "torch.optim.Adam(net.parameters())")
UNKEPT = ADAM.replace(", optimizer=sgd", "")
EXAMPLE = Path(__file__).parents[2] / "hpc_train" / "examples" / "raw_ddp.py"


def noted(folder: Path, text: str) -> list[str]:
    file = write(folder, text, "loop.py")
    tree = script_tree(file)
    assert tree is not None
    return [f"{line} {said}; {hint}" for line, said, hint in unkept_state(tree, read_names(file))]


def with_made(made: str, used: str = "") -> str:
    """The loop that keeps model and optimizer, and has something else."""
    text = ADAM.replace("    session.restore", f"    {made}\n    session.restore")
    return text.replace("sgd.step()", f"sgd.step(); {used}") if used else text


def test_a_forgotten_optimizer_is_noted_before_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused, notes = told(tmp_path, UNKEPT)
    assert refused is None
    assert notes.startswith(
        "train.py:8 calls session.restore without sgd (Adam): its state begins anew after each"
        " stop; write session.restore(model=net, optimizer=sgd)"
    )


@pytest.mark.parametrize(
    ("made", "used", "said"),
    [
        (
            "sched = torch.optim.lr_scheduler.StepLR(sgd, 3)",
            "sched.step()",
            "; write session.restore(model=net, optimizer=sgd, scheduler=sched)",
        ),
        (
            "scaler = torch.amp.GradScaler('cuda')",
            "scaler.update()",
            "write session.restore(model=net, optimizer=sgd, scaler=scaler)",
        ),
        (
            "ema = torch.optim.swa_utils.AveragedModel(net)",
            "ema.update_parameters(net)",
            "write session.restore(model=net, optimizer=sgd, average=ema)",
        ),
        (
            "other = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)",
            "other.step()",
            "write session.restore(model=net, optimizer=sgd, other=other)",
        ),
        (
            "a, b = 1, 2\n    c = torch.optim.AdamW(net.parameters())",
            "session.scaler.step(c)",
            "write session.restore(model=net, optimizer=sgd, c=c)",
        ),
    ],
)
def test_each_part_with_a_state_is_named(tmp_path: Path, made: str, used: str, said: str) -> None:
    (one,) = noted(tmp_path, with_made(made, used))
    assert said in one


def test_several_are_one_line(tmp_path: Path) -> None:
    text = with_made("sched = torch.optim.lr_scheduler.StepLR(sgd, 3)", "sched.step()")
    (one,) = noted(tmp_path, text.replace(", optimizer=sgd", ""))
    assert "without sgd (Adam) and sched (StepLR): their states begin anew" in one
    assert one.endswith("write session.restore(model=net, optimizer=sgd, scheduler=sched)")


@pytest.mark.parametrize(
    "text",
    [
        LOOP.replace(", optimizer=sgd", ""),  # SGD without momentum has no state
        ADAM,
        UNKEPT.replace("(model=net)", "(model=net, **others)"),
        UNKEPT.replace("(model=net)", "(state=State(net, sgd))"),
        UNKEPT.replace("    session.restore(", "    net = keep(net, sgd)\n    session.restore("),
        UNKEPT.replace("    session.restore(", "    o = sgd\n    session.restore(o=o, "),
        UNKEPT.replace("sgd.step(); ", ""),
        UNKEPT.replace("session.stepped()", "save(sgd.state_dict()); session.stepped()"),
        UNKEPT.replace("    session.", "    if old: session.restore(sgd=sgd)\n    session.", 1),
        with_made("scaler = torch.amp.GradScaler(enabled=False)", "scaler.update()"),
        with_made("warm = torch.optim.lr_scheduler.StepLR(sgd, 3)"),
        EXAMPLE.read_text("utf-8"),
    ],
)  # fmt: skip
def test_what_is_kept_or_may_be_is_not_noted(tmp_path: Path, text: str) -> None:
    assert noted(tmp_path, text) == []
