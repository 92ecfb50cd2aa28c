"""`${...}` of a key that is not there: the key of the config that is meant."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.config.files import write

TEXT = """\
name: x
global_batch_size: 8
model: {class_path: a.B, init_args: {horizon: 6, width: 8, size: "WHAT"}}
data: {class_path: a.C, init_args: {batch_size: 4, width: 9, size: 2}}
trainer: {max_epochs: 3}
"""


def hint_of(folder: Path, what: str, *words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(write(folder, TEXT.replace("WHAT", what)), words)
    assert "names the key" in caught.value.message
    return caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("model.horizon", "write ${model.init_args.horizon}"),
        ("data.batch_size", "write ${data.init_args.batch_size}"),
        ("horizon", "write ${model.init_args.horizon}"),
        ("max_epochs", "write ${trainer.max_epochs}"),
        ("size", "write ${data.init_args.size}"),  # the other one is this value itself
        ("width", "did you mean ${model.init_args.width} or ${data.init_args.width}?"),
        ("model.horizn", "did you mean ${model.init_args.horizon}?"),
        ("trainer.max_epoch", "did you mean ${trainer.max_epochs}?"),
        ("global_batchsize", "did you mean ${global_batch_size}?"),
    ],
)
def test_the_key_that_is_meant_is_told(name: str, hint: str, tmp_path: Path) -> None:
    assert hint_of(tmp_path, f"${{{name}}}") == hint


@pytest.mark.parametrize("name", ["paths.data", "model.lr", "model.init_args.dropout"])
def test_where_no_key_is_near_any_may_be_named(name: str, tmp_path: Path) -> None:
    hint = hint_of(tmp_path, f"${{{name}}}")
    assert hint.startswith("write the value here, or name another key of the config in full")


def test_what_was_typed_is_told_as_it_is_typed(tmp_path: Path) -> None:
    hint = hint_of(tmp_path, "1", "model.init_args.size=of-${model.horizon}")
    (word,) = shlex.split(hint.removeprefix("write "))
    assert word == "model.init_args.size=of-${model.init_args.horizon}"
    loaded = load(tmp_path / "cfg.yaml", [word])
    assert loaded.config.model["init_args"]["size"] == "of-6"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("model.init_args.hidden", "model.init_args.hidden: 24"),
        ("model.hidden", "model.init_args.hidden: 24, and ${model.init_args.hidden} here"),
        ("model.init_args.hiden", "model.init_args.hidden: 24, and ${model.init_args.hidden} here"),
        ("model.init_args.size", "model.init_args.size: ..."),
        ("data.init_args.kind", 'data.init_args.kind: "wide"'),
    ],
)
def test_an_argument_that_has_a_default_in_its_class_alone_is_to_be_written(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    classes = "class B:\n    def __init__(self, size, hidden: int = 24, horizon=6): ...\n"
    classes += "class C:\n    def __init__(self, kind='wide', width=1, size=1, batch_size=1): ...\n"
    (tmp_path / "defaulted.py").write_text(classes)
    text = TEXT.replace("a.B", "defaulted.B").replace("a.C", "defaulted.C")
    text = text.replace(', size: "WHAT"', "").replace("width: 9", f'width: "${{{name}}}"')
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text))
    assert caught.value.hint.endswith(f"and the config has no line of it: write {line}")


def test_a_default_of_a_class_is_typed_where_the_value_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "typed_nets.py").write_text("class B:\n    def __init__(self, hidden=24): ...\n")
    hint = hint_of(
        tmp_path, "1", "model.class_path=typed_nets.B", "data.init_args.width=${model.hidden}"
    )
    assert "write model.init_args.hidden=24, and ${model.init_args.hidden} here" in hint
