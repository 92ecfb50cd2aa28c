"""Where the values of a sweep belong in the arguments of a script, as the refusal shows them."""

from __future__ import annotations

import pytest

from hpc_train.config.origins import Origins
from hpc_train.config.scripts.swept_arguments import where_it_belongs

IN_FILE = Origins({"script.args": "a.yaml:4"})
TYPED = Origins({"script.args": "command line"})


@pytest.mark.parametrize(
    ("keys", "args", "written"),
    [
        (["lr"], ["--lr", "0.1", "--n", "2"], "[--lr, '{lr}', --n, '2']"),
        (["lr"], ["--n", "2"], "[--n, '2', --lr, '{lr}']"),
        (["lr"], ["--n=2", "--lr=0.1"], "[--n=2, '--lr={lr}']"),
        (["lr", "n"], ["--lr", "0.1", "--n", "2"], "[--lr, '{lr}', --n, '{n}']"),
        (["weight_decay"], ["--weight-decay", "-.1"], "[--weight-decay, '{weight_decay}']"),
        (["lr"], ["--lr", "--n", "2"], "[--lr, '{lr}', --n, '2']"),
        (["model.lr"], ["model.lr=1", "a=2"], "['model.lr={model.lr}', a=2]"),
        (["lr"], ["a=2"], "[a=2, 'lr={lr}']"),
        (["lr"], ["lr", "x"], "[lr, x, --lr, '{lr}']"),
    ],
)
def test_arguments_of_a_file_are_named_with_their_line(
    keys: list[str], args: list[str], written: str
) -> None:
    fix = where_it_belongs(keys[0], keys, args, IN_FILE)
    assert fix == f"write {{{keys[0]}}} where the value belongs, at a.yaml:4: args: {written}"


@pytest.mark.parametrize(
    ("args", "at", "typed"),
    [
        (["--lr", "0.1", "--net", "a b"], TYPED, "--lr {lr} --net 'a b'"),
        (["--n=$N"], TYPED, "'--n=$N' --lr {lr}"),
        ([], TYPED, "--lr {lr}"),
        ([], Origins(), "--lr {lr}"),
    ],
)
def test_typed_arguments_are_all_in_what_is_to_be_typed(
    args: list[str], at: Origins, typed: str
) -> None:
    fix = where_it_belongs("lr", ["lr"], args, at)
    assert fix == f"write {{lr}} where the value belongs: -- {typed}"
