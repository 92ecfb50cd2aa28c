"""`${...}` inside of { } or [ ]: what YAML does not read without quotes is told with them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hpc_train.config.load import load
from hpc_train.config.read import read_text
from hpc_train.errors import ConfigError
from tests.config.files import write

HOME = "${oc.env:HOME}"


@pytest.mark.parametrize(
    ("text", "place", "around", "fix"),
    [
        ("env: {variables: {A: ${oc.env:HOME}/x}}", "1:22", "{ }", f'write A: "{HOME}/x"'),
        ("env: {variables: {A: ${oc.env:HOME}}}", "1:22", "{ }", f'write A: "{HOME}"'),
        ("env: {variables: {A: x/${HOME}}}", "1:24", "{ }", f'write A: "x/{HOME}"'),
        (
            "env: {variables: {A: ${a.b}, B: x/${c}/y, C: '${d}'}}",
            "1:22",
            "{ }",
            'write A: "${a.b}", B: "x/${c}/y"',
        ),
        ("a: {b: s3://${c}/y}", "1:13", "{ }", 'write b: "s3://${c}/y"'),
        ("a: {b: ${oc.decode:${oc.env:C}}}", "1:8", "{ }", 'write b: "${oc.decode:${oc.env:C}}"'),
        ("a:\n  - {b: 1,\n     c: ${d}}", "3:9", "{ }", 'write c: "${d}"'),
        ("a: [1, ${c}/x]", "1:8", "[ ]", 'write "${c}/x"'),
        ("a: {b: ${c}", "1:8", "{ }", 'write b: "${c}"'),
    ],
)
def test_an_interpolation_in_brackets_is_told_with_its_quotes(
    text: str, place: str, around: str, fix: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(f"{text}\n", Path("cfg.yaml"))
    message = f"cfg.yaml:{place}: not YAML: ${{...}} inside of {around} needs quotes"
    assert (caught.value.message, caught.value.hint) == (message, fix)


@pytest.mark.parametrize("text", ["a: {b: 'q' ${c}}", "a: {b: 1 {c}}", "a: {b: ['x' $}"])
def test_another_slip_in_brackets_is_not_one_of_quotes(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(f"{text}\n", Path("cfg.yaml"))
    assert "needs quotes" not in caught.value.message


@pytest.mark.parametrize("text", ['a: {b: "${c}/x"}', "a: ${c}/x", "a: ['${c}']"])
def test_an_interpolation_that_reads_well_stays(text: str) -> None:
    read_text(f"{text}\n", Path("cfg.yaml"))


@pytest.mark.parametrize(
    "form", ["env:\n  variables:\n    A: {}\n", "env: {{variables: {{A: {}}}}}\n"]
)
def test_what_is_written_for_a_variable_of_the_shell_is_yaml_in_either_form(
    tmp_path: Path, form: str
) -> None:
    config = "name: x\nscript: {{path: a.py}}\n" + form
    (tmp_path / "a.py").write_text("")
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, config.format("$HOME/x")))
    fix = f'write "{HOME}/x"'
    assert fix in str(caught.value)
    written = yaml.safe_load(form.format(fix.removeprefix("write ")))
    assert written == {"env": {"variables": {"A": f"{HOME}/x"}}}
