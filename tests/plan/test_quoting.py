from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpc_train.errors import ConfigError
from hpc_train.plan.quoting import (
    escape_pattern,
    fits_output,
    quote_path,
    quote_sbatch,
    quote_shell,
    slug,
)
from tests.plan.sbatch_parser import read_line

NASTY = [
    "it's",
    'say "hi"',
    "$(touch /tmp/owned)",
    "`id`",
    "a; rm -rf x",
    "back\\slash\\",
    "# not a comment",
    "%j",
    "grüße-日本",
    "--wrap=x",
    "a  b\tc",
    "my hetjob and PackJob",
    "",
    " ",
    "${HOME}",
    "!history",
]
_one_line = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\0"))


@given(_one_line)
def test_sbatch_reads_back_the_very_value_that_was_quoted(value: str) -> None:
    line = f"#SBATCH --comment={quote_sbatch(value, 'x')}"
    assert read_line(line) == [f"--comment={value}"]


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_value_stays_one_word_of_an_sbatch_line(value: str) -> None:
    line = f"#SBATCH --job-name={quote_sbatch(value, 'name')} --nodes=2"
    assert read_line(line) == [f"--job-name={value}", "--nodes=2"]


def test_plain_values_stay_readable() -> None:
    assert quote_sbatch("gpu:a100:4", "x") == "gpu:a100:4"
    assert quote_sbatch("1-02:30:00", "x") == "1-02:30:00"
    assert quote_sbatch("my run", "x") == '"my run"'


@pytest.mark.parametrize("value", ["two\nlines", "nul\0"])
def test_what_would_end_the_line_is_refused_by_the_name_of_its_key(value: str) -> None:
    with pytest.raises(ConfigError, match="name holds a line break or a NUL"):
        quote_sbatch(value, "name")


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
@example("two\nlines")
def test_bash_reads_back_the_very_value_that_was_quoted(value: str) -> None:
    script = f"printf %s {quote_shell(value, 'x')}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode() == value


def test_a_home_in_a_path_is_left_to_the_machine_that_runs_it() -> None:
    script = f"HOME='/a b'; printf %s {quote_path('~/x y/$z', 'env.venv')}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"/a b/x y/$z"


def test_a_percent_sign_in_a_folder_is_no_pattern_of_a_log() -> None:
    assert escape_pattern("/runs/50%j/x") == "/runs/50%%j/x"


@pytest.mark.parametrize(("path", "fits"), [("/a b/'c", True), ("/a\\b", False), ("/a\nb", False)])
def test_a_folder_that_output_cannot_name_is_known(path: str, fits: bool) -> None:
    assert fits_output(path) is fits


@given(st.text())
def test_a_folder_name_is_plain_and_stays_in_its_folder(name: str) -> None:
    folder = slug(name)
    assert folder not in ("", ".", "..")
    assert folder.isascii()
    assert "/" not in folder
    assert len(folder) <= 64
    assert slug(folder) == folder


def test_a_plain_name_is_its_own_folder() -> None:
    assert slug("digits_v1.2-a") == "digits_v1.2-a"
    assert slug("my run; rm -rf") == "my-run-rm--rf"
