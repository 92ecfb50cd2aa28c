"""A tuple of tensors, as an LSTM's state, of which a tensor's method is asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hpc_train.training.failures.failure_words import fix_of

H: Any = torch.zeros(1, 4, 3)
STATE: Any = (H, H)
OUT: Any = (torch.zeros(4, 2), STATE)
MANY: Any = [H[0]] * 6
LSTM: Any = torch.nn.LSTM(2, 3)
X: Any = torch.zeros(5, 4, 2)
TWO = "a tensor [1, 4, 3], a tensor [1, 4, 3]"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: STATE.detach(),
            f"STATE is a tuple of {TWO}: write tuple(it.detach() for it in STATE)",
        ),
        (lambda: STATE.to("cpu", copy=True), "tuple(it.to('cpu', copy=True) for it in STATE)"),
        (
            lambda: MANY.cpu(),
            (
                f"MANY is a list of {', '.join(['a tensor [4, 3]'] * 4)}, ...:"
                " write [it.cpu() for it in MANY]"
            ),
        ),
        (
            lambda: OUT.argmax(dim=1),
            "OUT is a tuple of a tensor [4, 2], a tuple: write OUT[0].argmax(dim=1) for the first",
        ),
        (lambda: OUT.shape, "write OUT[0].shape for the first of them"),
        (
            lambda: LSTM(X).relu(),
            "LSTM(X) is a tuple of a tensor [5, 4, 3], a tuple: write LSTM(X)[0].relu() for the",
        ),
        (lambda: LSTM(X)[0].sum() + STATE.sum(), "write STATE[0].sum() for the first of them"),
        (lambda: abs(H).sum() + abs(X).sum() + STATE.sum(), "STATE is a tuple of"),
        (lambda: ("a", H).float(), ""),  # type: ignore[attr-defined]
        (lambda: (1, 2).float(), ""),  # type: ignore[attr-defined]
        (lambda: STATE[0].detached(), ""),
        (lambda: "text".detach(), ""),  # type: ignore[attr-defined]
    ],
)
def test_what_the_tuple_is_and_what_to_write(call: Any, told: str) -> None:
    with pytest.raises(AttributeError) as caught:
        call()
    said = fix_of(caught.value)
    assert told in said
    assert told or "is a tuple" not in said


def takes_whole(batch: Any) -> Any:
    x = batch
    return x.view(4, -1)


def takes_its_own(batch: Any) -> Any:
    return batch.view(4, -1)


def test_a_batch_of_one_tensor_that_is_taken_whole_is_told_where_it_is_taken() -> None:
    """x[0].view(x.size(0), -1) was told, which fails again."""
    line = takes_whole.__code__.co_firstlineno + 1
    with pytest.raises(AttributeError) as caught:
        takes_whole([H[0]])
    assert fix_of(caught.value) == (
        "x is a list of a tensor [4, 3]: write x, = batch for x = batch"
        f" (tests/training/test_tuple_for_tensor.py:{line})"
    )
    for given in ([H[0], H[0]], (H[0],)):
        with pytest.raises(AttributeError) as caught:
            takes_whole(given)
        assert "write x[0].view(4, -1) for the first of them" in fix_of(caught.value)
    with pytest.raises(AttributeError) as caught:
        takes_its_own([H[0]])
    assert "write batch[0].view(4, -1)" in fix_of(caught.value)
