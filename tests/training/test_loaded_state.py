"""`load_state_dict` of what does not fit: what to write there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import nn

from hpc_train.training.failures.failure_words import fix_of

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(pl.LightningModule):
    def __init__(self, hidden: int = 3, *, saves: bool = True) -> None:
        super().__init__()
        if saves:
            self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.Linear(hidden, 1))


class Two(Net):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(1, 1)


NET, PLAIN, TWO = Net(), nn.Linear(2, 1), Two()
STATE = NET.state_dict()
INNER = NET.layers.state_dict()
WRAPPED = {f"module.{key}": it for key, it in STATE.items()}
OWN: Any = {"epoch": 3, "model": STATE}
DEEP: Any = {"model_state_dict": WRAPPED}


def told(call: Callable[[], Any]) -> str:
    with pytest.raises(RuntimeError, match="in loading state_dict for") as caught:
        call()
    return fix_of(caught.value)


def saved(path: Path, model: pl.LightningModule) -> Path:
    one = pl.Trainer(accelerator="cpu", logger=False, barebones=True)
    one.strategy.connect(model)
    one.save_checkpoint(path / "m.ckpt")
    return path / "m.ckpt"


def test_a_whole_checkpoint_of_lightnings_is_told_with_its_weights(tmp_path: Path) -> None:
    path, net = saved(tmp_path, NET), Net()
    said = "that is a whole checkpoint, which has the weights under 'state_dict': write "
    assert told(lambda: net.load_state_dict(torch.load(path))) == (
        f"{said}net.load_state_dict(torch.load(path)['state_dict']), or"
        " Net.load_from_checkpoint(path)"
    )
    whole = torch.load(path, weights_only=False)
    assert told(lambda: net.load_state_dict(whole)) == (
        f"{said}net.load_state_dict(whole['state_dict'])"
    )
    assert told(lambda: net.layers.load_state_dict(whole)) == (
        "that is a whole checkpoint, which has the weights under 'state_dict', and its names begin"
        " with 'layers.', and those of net.layers without: write"
        " net.load_state_dict(whole['state_dict'])"
    )
    path = saved(tmp_path, Net(saves=False))
    assert told(lambda: net.load_state_dict(torch.load(path))) == (
        f"{said}net.load_state_dict(torch.load(path)['state_dict'])"
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: NET.load_state_dict(OWN),
            (
                "that is a whole checkpoint, which has the weights under 'model': write"
                " NET.load_state_dict(OWN['model'])"
            ),
        ),
        (
            lambda: NET.layers.load_state_dict(STATE),
            (
                "its names begin with 'layers.', and those of NET.layers without: write"
                " NET.load_state_dict(STATE)"
            ),
        ),
        (
            lambda: NET.load_state_dict(INNER),
            "its names are those of NET.layers: write NET.layers.load_state_dict(INNER)",
        ),
        (
            lambda: NET.load_state_dict(WRAPPED, strict=True),
            (
                "its names begin with 'module.', and those of NET without: write"
                " NET.load_state_dict({k.removeprefix('module.'): v for k, v in WRAPPED.items()},"
                " strict=True)"
            ),
        ),
        (
            lambda: NET.load_state_dict(DEEP),
            (
                "which has the weights under 'model_state_dict', and its names begin with"
                " 'module.', and those of NET without: write NET.load_state_dict("
                "{k.removeprefix('module.'): v for k, v in DEEP['model_state_dict'].items()})"
            ),
        ),
        (
            lambda: NET.layers.load_state_dict(TWO.state_dict()),
            (
                "NET.layers.load_state_dict({k.removeprefix('layers.'): v for k, v in"
                " TWO.state_dict().items() if k.startswith('layers.')})"
            ),
        ),
    ],
)
def test_names_that_differ_in_their_beginning_are_told_with_what_to_write(
    call: Callable[[], Any], said: str
) -> None:
    assert told(call).endswith(said)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Net(5).load_state_dict(STATE),
        lambda: TWO.load_state_dict(STATE),
        lambda: NET.load_state_dict(TWO.state_dict(), strict=True),  # so it is meant
        lambda: PLAIN.load_state_dict(STATE),
        lambda: NET.load_state_dict({}),
        lambda: NET.load_state_dict({"a": torch.zeros(1)}),
    ],
)
def test_what_differs_otherwise_is_left_as_torch_says_it(call: Callable[[], Any]) -> None:
    assert not told(call)


def test_names_that_the_module_lacks_are_passed_over_where_it_has_all_others() -> None:
    assert told(lambda: NET.load_state_dict(TWO.state_dict())) == (
        "it has all that NET has, and head.weight, head.bias more: write"
        " NET.load_state_dict(TWO.state_dict(), strict=False), which passes over the rest"
    )
    many = {**STATE, **{f"old.{number}": torch.ones(1) for number in range(9)}}
    assert "and old.0, old.1, old.2, old.3 ... more: write" in told(
        lambda: NET.load_state_dict(many)
    )
