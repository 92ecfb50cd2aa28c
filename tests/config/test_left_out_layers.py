"""`init_leave_out`, the layers that take no weights from `init_from`, and other forms of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.left_out_layers import is_left_out, layers_of
from hpc_train.config.origins import Origins
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from tests.config.files import loaded, refused

RUN = "write init_from: RUN beside it"
BOTH = "write init_from: {} and, below it, init_leave_out: [head, fc]"
ANY = "write init_from: {} and, below it, init_leave_out: [LAYER]"


def planned(folder: Path, more: str, *typed: str) -> Plan:
    config = loaded(folder, more, *typed).config
    return make_plan(config, workdir=folder, python="python", origins=Origins())


def test_the_plan_keeps_the_layers_and_is_of_another_result(tmp_path: Path) -> None:
    plan = planned(tmp_path, "init_from: a\ninit_leave_out: [head]\n")
    assert plan.weights_left_out == ["head"]
    assert Plan.from_json(plan.to_json()).weights_left_out == ["head"]
    whole = planned(tmp_path, "init_from: a\n")
    assert whole.config_hash != plan.config_hash
    assert "weights_left_out" not in whole.to_json()
    typed = planned(tmp_path, "", "init_from=a", "init_leave_out=[head,fc.*]")
    assert typed.weights_left_out == ["head", "fc.*"]


@pytest.mark.parametrize(
    ("more", "typed", "message", "hint"),
    [
        ("init_leave_out: [head]\n", (), "cfg.yaml:5: init_leave_out is head, and there", RUN),
        ("", ("init_leave_out=[a,b]",), "init_leave_out is a, b, and there", "write init_from=RUN"),
        ("init_from: a\ninit_leave_out: head\n", (), "init_leave_out is no list", "write [head]"),
        ("init_from: {run: a, leave_out: [head, fc]}\n", (), "init_from is {", BOTH.format("a")),
        ("init_from: {path: a.ckpt, strict: no}\n", (), "init_from is {", ANY.format("a.ckpt")),
        ("init_from: a\n", ("ignore_mismatched_sizes=1",), "is no key", "init_leave_out=["),
        ("script: {path: a.py}\ninit_leave_out: [a]\n", (), "stands beside script.path", ""),
    ],
)  # fmt: skip
def test_what_is_meant_is_told_with_the_keys_that_there_are(
    more: str, typed: tuple[str, ...], message: str, hint: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, more, *typed)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("head", {"head", "head.weight", "head.0.bias"}),
        ("head.0", {"head.0.bias"}),
        ("*.bias", {"head.0.bias", "net.header.bias"}),
        ("net.*", {"net.header.bias"}),
        ("net.head*", {"net.header.bias"}),
        ("*head", {"head", "head.weight", "head.0.bias"}),
        ("Head", set()),
    ],
)
def test_a_name_means_a_layer_and_all_below_it(pattern: str, names: set[str]) -> None:
    known = ("head", "head.weight", "head.0.bias", "net.header.bias")
    assert {it for it in known if is_left_out(it, [pattern])} == names


@pytest.mark.parametrize(
    ("names", "others", "layers"),
    [
        (["head.weight", "head.bias"], ["body.weight"], ["head"]),
        (["head.weight"], ["head.bias", "body.weight"], ["head"]),  # a bias alone is of no use
        (["net.fc.0.weight", "net.fc.2.bias"], ["net.body.weight"], ["net.fc"]),
        (["net.position"], ["net.body.weight"], ["net.position"]),
        (["position"], ["body.weight"], ["position"]),
        (["net.fc.2.bias"], ["net.fc.0.weight"], ["net.fc.2"]),
    ],
)
def test_the_fewest_layers_are_named(
    names: list[str], others: list[str], layers: list[str]
) -> None:
    assert layers_of(names, others) == layers
