"""Lines of the command `module` in env.modules, which has names alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.config.files import loaded, refused


@pytest.mark.parametrize(
    ("modules", "fix"),
    [
        (["module load cuda"], "env.modules: [cuda]"),
        (["gcc/12", "ml cuda/12.4"], "env.modules: [gcc/12, cuda/12.4]"),
        (["module load a b", "module add 'c'", "ml load d"], "env.modules: [a, b, c, d]"),
        (["module purge"], "env.setup: [module purge] in place of env.modules"),
        (
            ["module use /opt/x", "cuda"],
            "env.setup: [module use /opt/x, module load cuda] in place of env.modules",
        ),
        (["ml purge"], "env.setup: [ml purge] in place of env.modules"),
        (["ml -gcc"], "env.setup: [ml -gcc] in place of env.modules"),
        (["module load $MINE"], "env.setup: [module load $MINE] in place of env.modules"),
    ],
)
def test_lines_of_the_shell_are_told_as_names(tmp_path: Path, modules: list[str], fix: str) -> None:
    error = refused(tmp_path, f"env: {{modules: {json.dumps(modules)}}}\n")
    first = next(it for it in modules if it.startswith(("module ", "ml ")))
    assert f"cfg.yaml:5: env.modules.{modules.index(first)} is `{first}`" in error.message
    assert error.hint == f"write {fix}"
    key, _, value = fix.removesuffix(" in place of env.modules").partition(": ")
    env = loaded(tmp_path, f"env: {{{key[4:]}: {value}}}\n").config.env  # what it says works
    assert env.modules or env.setup


def test_lines_of_env_setup_stay_behind_them(tmp_path: Path) -> None:
    more = "env: {modules: [module purge, cuda], setup: ['export A=1']}\n"
    fix = "write env.setup: [module purge, module load cuda, export A=1] in place of env.modules"
    assert refused(tmp_path, more).hint == fix


def test_what_is_typed_is_told_as_a_word(tmp_path: Path) -> None:
    for typed in ('env.modules=["module load cuda"]', "env.modules=module load cuda"):
        assert refused(tmp_path, "", typed).hint == "write 'env.modules=[cuda]'"


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("module load cuda gcc", "write env.modules: [cuda, gcc]"),
        ("|\n    module use /x\n    ml cuda", "write env.setup: [module use /x, ml cuda] in"),
    ],
)
def test_a_text_of_such_lines_is_told_too(tmp_path: Path, text: str, fix: str) -> None:
    assert refused(tmp_path, f"env:\n  modules: {text}\n").hint.startswith(fix)


def test_names_are_no_lines(tmp_path: Path) -> None:
    names = ["cuda", "ml", "module", "modules/1", "ml-tools/2.0", "gcc@12 +shared"]
    env = loaded(tmp_path, f"env: {{modules: {json.dumps(names)}}}\n").config.env
    assert env.modules == names
