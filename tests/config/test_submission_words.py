"""What is kept of the words behind `hpc-train submit`, so that they can be typed again."""

from __future__ import annotations

import pytest

from hpc_train.config.submission_words import submission_words, typed_anew


def words(*overrides: str, arguments: list[str] | None = None, **flags: object) -> list[str]:
    return submission_words("cfg.yaml", overrides, flags, (), arguments)


def test_options_values_and_arguments_are_kept() -> None:
    kept = words("seed=1", arguments=["--lr", "0.1"], nodes=2, gpus=4, partition=None, name="a b")
    assert kept == [
        *("cfg.yaml", "--nodes", "2", "--gpus", "4", "--name", "a b", "seed=1"),
        *("--", "--lr", "0.1"),
    ]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("env.variables.HF_TOKEN=hf_abc", "env.variables.HF_TOKEN=VALUE"),
        ("env.variables={HF_TOKEN: hf_abc, A: b}", "env.variables={HF_TOKEN: VALUE, A: b}"),
        ("env.variables={HF_TOKEN: 'a b'}", "env.variables={HF_TOKEN: VALUE}"),
        ("loggers.0.uri=https://me:pw@host/x", "loggers.0.uri=https://VALUE@host/x"),
        ("model.init_args.max_tokens=512", "model.init_args.max_tokens=512"),
        ("model.init_args.tokenizer=bpe", "model.init_args.tokenizer=bpe"),
    ],
)
def test_a_secret_is_not_kept(typed: str, kept: str) -> None:
    assert words(typed)[-1] == kept


def test_a_secret_among_a_scripts_arguments_is_not_kept() -> None:
    given = ["--api-key", "abc", "--hf_token=abc", "--n-key", "--lr", "1"]
    assert words(arguments=given)[2:] == [
        *("--api-key", "VALUE", "--hf_token=VALUE", "--n-key", "--lr", "1")
    ]


def test_a_value_that_is_changed_takes_the_place_of_its_option_and_its_key() -> None:
    kept = words("slurm.time=1:00:00", "seed=1", arguments=["seed=1"], nodes=2, gpus=4)
    assert typed_anew(kept) == kept
    assert typed_anew(kept, "slurm.nodes=3") == [
        *("cfg.yaml", "--gpus", "4", "slurm.time=1:00:00", "seed=1"),
        *("slurm.nodes=3", "--", "seed=1"),
    ]
    assert typed_anew(kept, "seed=2")[-4:] == ["slurm.time=1:00:00", "seed=2", "--", "seed=1"]
