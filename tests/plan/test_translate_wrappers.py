"""What stands around a training's command in a batch script."""

from __future__ import annotations

import pytest

from hpc_train.plan.translate import translate
from hpc_train.plan.translation import Translation


def made(text: str) -> Translation:
    return translate(text, ())


@pytest.mark.parametrize(
    "behind",
    [
        *("2>&1", "2>&1 | tee log.txt", "> log", ">log 2>err", "&> log", "&>> log", ">& log"),
        *("| tee log", "|& tee log", "1> log", "&", "> log 2>&1 &", "|| exit 1", "2>/dev/null"),
    ],
)
def test_where_the_shell_sends_it_is_left_out(behind: str) -> None:
    found = made(f"srun python train.py --epochs 2 {behind}")
    assert found.script == ["train.py", "--epochs", "2"]
    assert found.refused == []
    assert any("hpc-train logs RUN" in what for _, what in found.said)


@pytest.mark.parametrize("word", ["'a 2>b'", '"x | y"', '"a & b"'])
def test_what_is_quoted_is_no_redirection(word: str) -> None:
    found = made(f"python train.py --name {word}")
    assert found.script == ["train.py", "--name", word.strip("'\"")]
    assert found.said == []


def test_a_number_that_stands_apart_is_an_argument() -> None:
    assert made("python train.py --epochs 2 > log").script == ["train.py", "--epochs", "2"]


@pytest.mark.parametrize(
    ("command", "config"),
    [
        ("uv run train.py", {"env.venv": ".venv"}),
        ("srun uv run --with rich --frozen python train.py", {"env.venv": ".venv"}),
        ("pdm run python train.py", {"env.venv": ".venv"}),
        ("~/venv/bin/python train.py", {"env.venv": "~/venv"}),
        ("srun $HOME/venv/bin/python3 -u train.py", {"env.venv": "~/venv"}),
        ("/opt/conda/envs/x/bin/python train.py", {"env.conda": "/opt/conda/envs/x"}),
        ("/usr/bin/python3 train.py", {}),
        ("$VENV/bin/python train.py", {}),
        ("bash -c 'python train.py'", {}),
        ('srun bash -lc "source ~/v/bin/activate; python train.py"', {"env.venv": "~/v"}),
        ("apptainer exec --nv img.sif python train.py", {"container.image": "img.sif"}),
        (
            "singularity exec -B /a:/b,/c --bind=/d --cleanenv img.sif python train.py",
            {
                "container.image": "img.sif",
                "container.runtime": "singularity",
                "container.mounts": ["/a:/b", "/c", "/d"],
                "container.options": ["--cleanenv"],
            },
        ),
    ],
)
def test_what_makes_the_environment_is_a_key(command: str, config: dict[str, object]) -> None:
    found = made(command)
    assert found.refused == []
    assert found.script == ["train.py"]
    assert {key: found.config.get(key) for key in config} == config
    assert config or not {"env.venv", "env.conda", "container.image"} & found.config.keys()


@pytest.mark.parametrize("tool", ["poetry", "pipenv", "hatch"])
def test_an_environment_whose_folder_only_its_tool_knows_is_told(tool: str) -> None:
    found = made(f"{tool} run python train.py")
    assert found.script == ["train.py"]
    assert found.said[0][0] == f"{tool} run"
    assert "write the folder that" in found.said[0][1]
    assert found.submit_line() == "hpc-train submit config.yaml"


@pytest.mark.parametrize("command", ["apptainer exec", "uv sync", "bash", "apptainer pull x"])
def test_what_starts_no_training_is_refused_as_before(command: str) -> None:
    found = made(command)
    assert found.script == []
    assert found.refused
