"""Several wrong classes of one config are told in one go, the first as if it were alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.checking import nets, refusal_in

__all__ = ["nets"]
NETT, FIX = "nets has no class 'Nett'", "did you mean 'nets.Net'?"


@pytest.mark.parametrize(
    ("data", "trainer", "first", "others"),
    [
        ("{class_path: nets.Data}", "", NETT, []),
        ("{class_path: nets.Dat}", "", NETT, ["cfg.yaml:4: data.class_path: nets has no class"]),
        ("{class_path: nowhere.Data}", "", NETT, ["data.class_path: there is no module 'nowhere'"]),
        (
            "{class_path: nets.Data, init_args: {nam: 1}}",
            "trainer: {max_epoch: 1, callbacks: [{class_path: nets.Call}]}",
            "cfg.yaml:5: trainer.max_epoch is no argument",
            [
                NETT,
                "data.init_args.nam: nets.Data takes no",
                "trainer.callbacks.0.class_path: nets",
            ],
        ),
    ],
)
def test_the_other_wrong_classes_stand_behind_the_fix_of_the_first(
    nets: Path,
    data: str,
    trainer: str,
    first: str,
    others: list[str],
) -> None:
    error = refusal_in(nets, "{class_path: nets.Nett}", data, trainer)
    assert first in error.message
    fix, *also = error.hint.split("; also ")
    assert fix.startswith("did you mean")
    assert len(also) == len(others)
    assert all(part in said for part, said in zip(others, also, strict=True)), also


def test_what_two_keys_want_mended_is_told_once(
    nets: Path,
) -> None:
    error = refusal_in(nets, "{class_path: net.Net}", "{class_path: net.Data}")
    assert error.hint == "did you mean 'nets'?"
