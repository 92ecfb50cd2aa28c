"""Logs and batch scripts whose names are mistyped, wherever one is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hpc_train
from hpc_train.errors import ConfigError
from tests.cli.mistaken import project, refused

__all__ = ["project"]

JOB = "#!/bin/bash\n#SBATCH --nodes=2\nsrun python nets.py\n"
NO_LOG = "no file in this folder ends in .out, .err, .log, .txt"
RUN_IS = "RUN is a name, a run id, a run directory or a job id"


@pytest.fixture
def files(project: Path) -> Path:
    """Two logs and two scripts, and one of each in folders."""
    for name in ("slurm-4711.out", "slurm-4713.out", "logs/run.err", "logs/deep.out"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("step 1\n")
    for name in ("job.sbatch", "scripts/train.sh"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(JOB)
    return project


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("slurm-4712.out", "did you mean 'slurm-4713.out' or 'slurm-4711.out'?"),
        ("slurm-4711.ou", "did you mean 'slurm-4711.out'?"),
        ("slurm-4711", "did you mean 'slurm-4711.out'?"),
        ("./slurm-471.out", "did you mean 'slurm-4713.out' or 'slurm-4711.out'?"),
        ("logs/rnu.err", "did you mean 'logs/run.err'?"),
        ("logs/run.log", "did you mean 'logs/run.err'?"),
        ("deep.out", "did you mean 'logs/deep.out'?"),
        ("log/slurm-4711.out", "did you mean 'slurm-4711.out'?"),
        ("log/deep.out", "there is no folder log either"),
        ("zzz.txt", "in this folder there are: slurm-4711.out, slurm-4713.out"),
        ("jbo.sbatch", "did you mean 'job.sbatch'?"),
    ],
)
def test_a_log_that_is_not_there_is_told_with_those_that_are(
    hpc, files: Path, word: str, fix: str
) -> None:
    refused(hpc, files, ["diagnose", word], 2, f"there is no file {word}", fix)
    both = ["diagnose", "slurm-4711.out", word]
    refused(hpc, files, both, 2, f"there is no file {word}", fix)


@pytest.mark.parametrize("word", ["nothing", "x-0.3", "4712", "20261126-101010-abcd", "exp.v2"])
def test_a_word_that_is_no_name_of_a_log_is_a_run(hpc, files: Path, word: str) -> None:
    refused(hpc, files, ["diagnose", word], 5, f"no run answers to '{word}', and it is no file", "")


def test_a_folder_without_logs_says_so(hpc, project: Path) -> None:
    refused(hpc, project, ["diagnose", "a.log"], 2, "there is no file a.log", NO_LOG)


@pytest.mark.parametrize("command", ["logs", "status", "cancel", "resume"])
def test_a_log_in_the_place_of_a_run_is_read_by_another_command(
    hpc, files: Path, command: str
) -> None:
    fix = f"hpc-train diagnose slurm-4713.out (or slurm-4711.out) reads a log; {RUN_IS}"
    message = "no run answers to 'slurm-4712.out'"
    refused(hpc, files, [command, "slurm-4712.out"], 5, message, fix)
    fix = f"hpc-train diagnose logs/run.err reads a log; {RUN_IS}"
    refused(hpc, files, [command, "logs/rn.err"], 5, "no run answers to 'logs/rn.err'", fix)


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("jbo.sbatch", "did you mean 'job.sbatch'? hpc-train translate job.sbatch makes a config"),
        ("job.sbtach", "did you mean 'job.sbatch'? hpc-train translate job.sbatch makes a config"),
        ("job", "did you mean 'job.sbatch'? hpc-train translate job.sbatch makes a config"),
        ("scripts/trian.sh", "hpc-train translate scripts/train.sh makes a config of a shell"),
        ("slurm-4712.out", "hpc-train diagnose slurm-4713.out reads a log, and a config ends in"),
        ("zzz.sh", "in . there are: cfg.yaml"),
    ],
)
def test_a_script_in_a_configs_place_that_is_not_there_is_told_with_what_takes_it(
    hpc, files: Path, word: str, fix: str
) -> None:
    for command in ("submit", "run", "render"):
        if word == "zzz.sh":
            (files / "job.sbatch").unlink(missing_ok=True)
        refused(hpc, files, [command, word], 3, f"{word}: there is no such file", fix)


def test_a_log_in_a_configs_place_is_told_as_one(hpc, files: Path) -> None:
    fix = "hpc-train diagnose slurm-4711.out reads it; a config ends in .yaml, a script in .py"
    refused(hpc, files, ["submit", "slurm-4711.out"], 3, "is a log, and no config", fix)


def test_a_rendered_script_that_is_meant_is_submitted_by_sbatch(hpc, files: Path) -> None:
    assert hpc("render", "cfg.yaml", "-o", "digits.sbatch").code == 0
    fix = "did you mean 'digits.sbatch'? it is a rendered training: sbatch digits.sbatch"
    refused(hpc, files, ["submit", "digit.sbatch"], 3, "there is no such file", fix)


@pytest.mark.parametrize(
    ("typed", "file", "fix"),
    [
        ("job.sbtach", "job.sbtach", "did you mean 'job.sbatch'?"),
        ("jbo.sbatch", "jbo.sbatch", "did you mean 'job.sbatch'?"),
        ("job", "job", "did you mean 'job.sbatch'?"),
        ("sbatch jbo.sbatch", "jbo.sbatch", "did you mean 'job.sbatch'?"),
        ("bash jbo.sbatch", "jbo.sbatch", "did you mean 'job.sbatch'?"),
        ("./jbo.sbatch", "./jbo.sbatch", "did you mean 'job.sbatch'?"),
        ("scripts/trian.sh", "scripts/trian.sh", "did you mean 'scripts/train.sh'?"),
        ("train.sh", "train.sh", "did you mean 'scripts/train.sh'?"),
        ("script/train.sh", "script/train.sh", "there is no folder script either"),
        ("script/job.sbatch", "script/job.sbatch", "did you mean 'job.sbatch'?"),
        ("zzzzzz.slurm", "zzzzzz.slurm", "in this folder there are: job.sbatch"),
        ("bin/go", "bin/go", "name a batch script"),
    ],
)
def test_a_batch_script_that_is_not_there_is_no_command(
    hpc, files: Path, typed: str, file: str, fix: str
) -> None:
    refused(hpc, files, ["translate", *typed.split()], 2, f"there is no file {file}", fix)
    refused(hpc, files, ["translate", typed], 2, f"there is no file {file}", fix)


@pytest.mark.parametrize(
    ("word", "message", "fix"),
    [
        ("scripts", "scripts is a folder", "name the batch script in it: scripts/train.sh"),
        ("cfg.yaml", "cfg.yaml is a config already", "hpc-train submit cfg.yaml"),
        ("slurm-4711.out", "is a log, and no command", "hpc-train diagnose slurm-4711.out"),
        ("empty.sh", "empty.sh is empty", "name a batch script"),
    ],
)
def test_another_file_that_is_translated_is_told_as_what_it_is(
    hpc, files: Path, word: str, message: str, fix: str
) -> None:
    (files / "empty.sh").write_text("")
    refused(hpc, files, ["translate", word], 2, message, fix)


@pytest.mark.parametrize(
    "typed", ["./job.sbatch", "bash job.sbatch", "sbatch scripts/train.sh", "sh scripts/train.sh"]
)
def test_a_script_that_a_shell_is_given_is_read(hpc, files: Path, typed: str) -> None:
    assert "hpc-train submit --nodes 2 nets.py" in hpc("translate", *typed.split()).out


def test_a_script_whose_name_has_blanks_is_read(hpc, files: Path) -> None:
    (files / "my job.sbatch").write_text(JOB)
    for words in (["my job.sbatch"], ["sbatch", "my job.sbatch"], ["bash 'my job.sbatch'"]):
        assert "hpc-train submit --nodes 2 nets.py" in hpc("translate", *words).out


def test_a_whole_script_that_is_typed_is_no_name_of_a_file(hpc, files: Path) -> None:
    typed = "#!/bin/bash\n" + "# a comment\n" * 500 + "srun --nodes=2 python nets.py\n"
    assert "hpc-train submit --nodes 2 nets.py" in hpc("translate", typed).out


@pytest.mark.parametrize(
    "typed",
    ["torchrun", "python3.11", "/opt/bin/torchrun", "torch.distributed.run", "make", "mpirun"],
)
def test_a_program_is_no_file_that_is_missing(hpc, files: Path, typed: str) -> None:
    said = hpc("translate", typed)
    assert (said.code, said.err.startswith("no equivalent: ")) == (3, True)


def test_a_script_that_another_starts_is_named_as_it_is_written(hpc, files: Path) -> None:
    (files / "job.sbatch").write_text("#!/bin/bash\nbash scripts/train.sh\n")
    said = hpc("translate", "job.sbatch")
    fix = "its lines are not read: hpc-train translate scripts/train.sh"
    assert said.err == f"no equivalent: scripts/train.sh: {fix}\n"


def test_what_translate_prints_for_a_cd_is_taken_when_it_is_typed(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src" / "trainer").mkdir(parents=True)
    (project / "src" / "trainer" / "main.py").write_text("print('here')\n")
    job = "#!/bin/bash\n#SBATCH --time=9\ncd $SLURM_SUBMIT_DIR/src\nsrun python trainer/main.py\n"
    (project / "job.sbatch").write_text(job)
    said = hpc("translate", "job.sbatch").out
    (project / "config.yaml").write_text(said)
    assert said.endswith("# cd src && hpc-train submit ../config.yaml\n")
    fix = (
        "did you mean 'src/trainer/main.py'? or, for a job that starts in src:"
        " cd src, and there name ../config.yaml"
    )
    message = "script.path: there is no file trainer/main.py"
    refused(hpc, project, ["submit", "config.yaml"], 3, message, fix)
    typed = ["run", "trainer/main.py"]
    refused(hpc, project, typed, 3, message, "did you mean 'src/trainer/main.py'?")
    monkeypatch.chdir(project / "src")
    assert hpc("submit", "--dry-run", "../config.yaml").code == 0


def test_a_config_that_is_there_from_a_folder_above_is_told_with_the_line_to_type(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`there is no folder configs either` was told in notebooks/, and then PYTHONPATH."""
    (project / "configs").mkdir()
    (project / "cfg.yaml").rename(project / "configs" / "big.yaml")
    (project / "notebooks" / "old").mkdir(parents=True)
    monkeypatch.chdir(project / "notebooks")
    it_is = f"it is in {project}: cd .. && hpc-train"
    line = f"{it_is} run configs/big.yaml seed=3"
    absent = "configs/big.yaml: there is no such file"
    refused(hpc, project, ["run", "configs/big.yaml", "seed=3"], 3, absent, line)
    no_module = "there is no module 'nets'"
    refused(hpc, project, ["run", "../configs/big.yaml", "seed=3"], 3, no_module, line)
    with pytest.raises(ConfigError, match=re.escape(f"{project}: os.chdir('..'), and then")) as it:
        hpc_train.load("configs/big.yaml")
    assert it.value.hint.endswith("hpc_train.load('configs/big.yaml')")
    with pytest.raises(ConfigError, match=re.escape(it.value.hint)):
        hpc_train.load("../configs/big.yaml")
    monkeypatch.chdir(project / "notebooks" / "old")
    up = f"it is in {project}: cd ../.. && hpc-train submit configs/big.yaml"
    refused(hpc, project, ["submit", "configs/big.yaml"], 3, absent, up)
    for word in ("../configs/big.yaml", "configs/none.yaml"):
        folder = word.rpartition("/")[0]
        said = f"there is no folder {folder} either"
        refused(hpc, project, ["run", word], 3, "there is no such file", said)
