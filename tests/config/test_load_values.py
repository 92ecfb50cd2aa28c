"""Values, elements and classes that another file or the command line sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.keys import TEXT_KEYS, TYPES
from hpc_train.config.load import load
from hpc_train.config.ranges import RANGES
from hpc_train.config.show import show_lines
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, loaded, refusal, refused, write

NETWORK = """\
trainer:
  callbacks:
    - {class_path: nets.First, init_args: {patience: 3, mode: min}}
    - {class_path: nets.Last}
    - [[1, 2]]
"""


@pytest.mark.parametrize(
    ("override", "index", "element"),
    [
        (
            "trainer.callbacks.0.init_args.patience=5",
            0,
            {"class_path": "nets.First", "init_args": {"patience": 5, "mode": "min"}},
        ),
        (
            "trainer.callbacks.1.init_args.patience=5",
            1,
            {"class_path": "nets.Last", "init_args": {"patience": 5}},
        ),
        ("trainer.callbacks.1={class_path: nets.Other}", 1, {"class_path": "nets.Other"}),
        ("trainer.callbacks.0.class_path=nets.Other", 0, {"class_path": "nets.Other"}),
        ("trainer.callbacks.2.0.1=7", 2, [[1, 7]]),
    ],
)
def test_an_element_of_a_list_is_set_by_its_index_and_the_others_stay(
    override: str, index: int, element: object, tmp_path: Path
) -> None:
    before = loaded(tmp_path, NETWORK).config.trainer["callbacks"]
    made = loaded(tmp_path, NETWORK, override)
    wanted = [element if place == index else item for place, item in enumerate(before)]
    assert made.config.trainer["callbacks"] == wanted
    assert made.origins.of(override.partition("=")[0]) == "command line"


@pytest.mark.parametrize(
    ("overrides", "left_out"),
    [
        (["model.class_path=nets.Other"], "model.init_args.lr, model.init_args.width"),
        (["model.class_path=nets.Other", "model.init_args.lr=2"], "model.init_args.width"),
        (["model.init_args.lr=2", "model.class_path=nets.Other"], "lr, model.init_args.width"),
        (["model.class_path=nets.Other", "model.init_args={lr: 1, width: 2}"], ""),
        (["model.class_path=nets.Net"], ""),
        (["model.init_args.lr=2"], ""),
        ([], ""),
    ],
)
def test_arguments_that_another_class_leaves_out_are_told(
    overrides: list[str], left_out: str, tmp_path: Path
) -> None:
    old = "{class_path: nets.Net, init_args: {lr: 1, width: 2}}"
    text = MINIMAL.replace("{class_path: nets.Net}", old)
    notes = load(write(tmp_path, text), overrides).notes
    assert len(notes) == bool(left_out)
    assert not notes or f"{left_out}; give again" in notes[0]


def test_a_class_of_a_file_over_another_file_is_told_by_nobody(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL.replace("nets.Net", "nets.Old, init_args: {a: 1}"), "base.yaml")
    assert load(write(tmp_path, "base: base\nmodel: {class_path: nets.New}\n")).notes == ()


@pytest.mark.parametrize(("key", "kind"), sorted(TYPES.items()))
def test_null_is_refused_where_the_schema_has_none(key: str, kind: str, tmp_path: Path) -> None:
    if kind.startswith("Optional"):
        loaded(tmp_path, "", f"{key}=null")
    else:
        error = refused(tmp_path, "", f"{key}=null")
        assert error.message.endswith((f"{key} is null", f"{key} is missing"))
        assert error.hint


@pytest.mark.parametrize("key", sorted(TEXT_KEYS))
def test_an_empty_text_is_refused_in_a_file(key: str, tmp_path: Path) -> None:
    section, _, name = key.rpartition(".")
    more = f'{section}: {{{name}: " "}}\n' if section else f'{name}: ""\n'
    text = "".join(line for line in MINIMAL.splitlines(True) if not line.startswith(f"{key}:"))
    error = refusal(write(tmp_path, text + more))
    assert f"{key} is empty" in error.message
    assert error.hint


def test_mappings_and_lists_whose_lines_are_all_comments_change_nothing(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL + "trainer: {max_epochs: 3}\nenv: {modules: [a]}\n", "base.yaml")
    more = "base: base\ntrainer:\nloggers:\nenv:\n  modules:\n  # - b\n  variables:\n"
    config = load(write(tmp_path, more)).config
    assert (config.trainer, config.env.modules) == ({"max_epochs": 3}, ["a"])
    assert config.loggers == ["csv", "tensorboard"]


# Numbers


def numbers() -> set[str]:
    return {key for key, kind in TYPES.items() if "int" in kind or "float" in kind} - {
        "preflight.thresholds"  # checked by the preflight, which knows their names
    }


def test_every_number_of_the_schema_has_its_range_and_its_default_is_inside() -> None:
    assert set(RANGES) == numbers()


@pytest.mark.parametrize("key", sorted(RANGES))
@pytest.mark.parametrize(
    "value", ["-1", "1e23", "-1e23", ".inf", "-.inf", ".nan", "9" * 400, "1e999", "true", "''", "x"]
)
def test_a_number_out_of_its_range_is_refused_by_its_key(
    key: str, value: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, "", f"{key}={value}")
    assert error.message.startswith(f"command line: {key} is ")
    assert error.hint
    assert len(error.message) < 200


@pytest.mark.parametrize("key", sorted(RANGES))
def test_the_ends_of_a_range_are_inside(key: str, tmp_path: Path) -> None:
    for value in (RANGES[key].least, RANGES[key].most):
        loaded(tmp_path, "", f"{key}={value}")


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("slurm.qos=null", None),
        ("slurm.qos=~", None),
        ("slurm.qos='null'", "null"),
        ('slurm.qos="a b"', "a b"),
        ("slurm.qos=a b", "a b"),
        ('slurm.qos=it\'s "x"', 'it\'s "x"'),
        ("slurm.qos='", "'"),
    ],
)
def test_null_empties_a_text_and_quotes_hold_it(
    override: str, value: str | None, tmp_path: Path
) -> None:
    assert loaded(tmp_path, "slurm: {qos: fast}\n", override).config.slurm.qos == value


@pytest.mark.parametrize(
    ("time", "as_hours", "as_minutes"),
    [
        ("10:00", '"10:00:00" is 10 h', '"0:10:00" 10 min'),
        ("2:30", '"2:30:00" is 2 h 30 min', '"0:02:30" 2 min 30 s'),
        ("90:30", '"90:30:00" is 90 h 30 min', '"1:30:30" 90 min 30 s'),
    ],
)
def test_an_unquoted_time_of_two_fields_is_told_what_it_would_be(
    time: str, as_hours: str, as_minutes: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, f"slurm: {{time: {time}}}\n")
    assert f"slurm.time is {time} without quotes" in error.message
    assert error.hint == f"write hours and seconds, too: {as_hours}, {as_minutes}"


@pytest.mark.parametrize(
    ("word", "class_path", "arguments"),
    [
        ("wandb", "pytorch_lightning.loggers.WandbLogger", {"project": "x"}),
        ("mlflow", "pytorch_lightning.loggers.MLFlowLogger", {"experiment_name": "x"}),
    ],
)
def test_a_logger_may_be_one_word(
    word: str, class_path: str, arguments: dict[str, str], tmp_path: Path
) -> None:
    made = loaded(tmp_path, f"loggers: [csv, {word}, tensorboard]\n").config.loggers
    assert made == ["csv", {"class_path": class_path, "init_args": arguments}, "tensorboard"]


def test_a_flag_that_cannot_be_meant_is_named(tmp_path: Path) -> None:
    error = refused(tmp_path, "", flags={"nodes": 0})
    assert error.message == "--nodes: slurm.nodes is 0"


def test_a_flag_that_there_is_not_is_named_with_the_nearest(tmp_path: Path) -> None:
    error = refused(tmp_path, "", flags={"node": 3})
    assert (error.message, error.hint) == (
        "node is no argument of load",
        "did you mean 'nodes'?",
    )


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "x_password", "SECRETS", "AWS_KEY_2"]
)
def test_a_name_of_a_secret_is_known(name: str, tmp_path: Path) -> None:
    assert "secret" in refused(tmp_path, f"env: {{variables: {{{name}: x}}}}\n").message


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "KEYBOARD"])
def test_a_name_that_only_contains_the_word_is_no_secret(name: str, tmp_path: Path) -> None:
    made = loaded(tmp_path, f"env: {{variables: {{{name}: 'x'}}}}\n")
    assert made.config.env.variables == {name: "x"}


def test_a_key_of_the_top_that_begins_with_x_is_for_what_anchors_share(tmp_path: Path) -> None:
    shared = "x-common: &common {width: 8, lr: 0.1}\nx-more: [&name shared]\n"
    base = write(tmp_path, "x-base: &seed {seed: 5}\nrequeue: {budget: 2}\n", "base.yaml")
    model = "model: {class_path: nets.Net, init_args: {<<: *common, lr: 0.2}}\n"
    text = f"defaults: [{base.name}]\n{shared}name: *name\nglobal_batch_size: 8\n{model}"
    loaded = load(write(tmp_path, f"{text}data: {{class_path: nets.Data}}\n"))
    assert loaded.config.model["init_args"] == {"width": 8, "lr": 0.2}
    assert (loaded.config.name, loaded.config.requeue.budget) == ("shared", 2)
    assert not [it for it in show_lines(loaded) if it.startswith("x-")]
    with pytest.raises(ConfigError, match="x-common is no key"):
        load(write(tmp_path, f"{text}data: {{class_path: nets.Data}}\n"), ["x-common=3"])
