from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Plan
from hpc_train.plan.script import job_options, render_script
from hpc_train.plan.setup_watch import FAILED, told_in_log, told_in_variable
from tests.plan.configs import config
from tests.plan.sbatch_parser import read_line
from tests.plan.test_quoting import NASTY

GOLDEN = Path(__file__).parent / "golden"
NASTY_FOLDER = 'it\'s a "run" $(touch owned) `id`; # %j \\ \n grüße'

# Stands in for Python: writes down what it was started with, and what came on its input.
FAKE_PYTHON = """#!/bin/bash
printf '%s\\0' "$@" > "$OUT/arguments"
pwd > "$OUT/folder"
env -0 > "$OUT/environment"
for word in "$@"; do
  if [ "$word" = /dev/stdin ]; then cat > "$OUT/plan"; fi
done
"""


class Ran:
    """What a script did under bash with a stand-in for Python."""

    def __init__(self, out: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.out = out
        self.done = done

    @property
    def arguments(self) -> list[str]:
        return (self.out / "arguments").read_text().split("\0")[:-1]

    @property
    def environment(self) -> dict[str, str]:
        pairs = (self.out / "environment").read_text().split("\0")[:-1]
        return dict(pair.split("=", 1) for pair in pairs)


def make(python: str = "/opt/bin/python3", *, for_script: bool = True, **changes: Any) -> Plan:
    return make_plan(config(**changes), workdir="/w", python=python, for_script=for_script)


def run(script: str, out: Path, **environment: str) -> Ran:
    path = out / "job.sbatch"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        ["bash", str(path)],
        env={"PATH": os.environ["PATH"], "OUT": str(out), **environment},
        cwd=out,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(out, done)


@pytest.fixture
def python(tmp_path: Path) -> str:
    path = tmp_path / 'a python\'s "bin" $(id)'
    path.write_text(FAKE_PYTHON)
    path.chmod(0o755)
    return str(path)


def test_the_script_of_a_plan_is_the_golden_one() -> None:
    made = make(
        slurm={"time": "1:00:00", "partition": "gpu", "cpus_per_gpu": 8, "comment": "it's #1"},
        env={
            "modules": ["cuda/12.4"],
            "venv": "~/venvs/train",
            "variables": {"NCCL_DEBUG": "WARN", "GREETING": "it's"},
            "passthrough": ["WANDB_API_KEY"],
            "setup": ["ulimit -l unlimited"],
        },
    )
    golden = GOLDEN / "job.sbatch"
    assert render_script(made) == golden.read_text(encoding="utf-8")


def test_the_script_of_a_run_is_the_golden_one() -> None:
    golden = GOLDEN / "run.sbatch"
    assert render_script(make(), run_dir="/runs/50%/x") == golden.read_text(encoding="utf-8")


def test_options_behind_the_script_end_it_at_once_with_a_line() -> None:
    done = subprocess.run(
        ["bash", "-s", "--", "--nodes=4"],
        input=render_script(make()),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("hpc-train: error: this script takes no arguments (--nodes=4): options")


def test_the_same_plan_gives_the_same_script() -> None:
    assert render_script(make()) == render_script(make())


def test_the_script_starts_the_supervisor_with_the_very_plan_on_its_input(
    python: str, tmp_path: Path
) -> None:
    made = make(python, name="a 'nasty' \"name\" $(touch owned) HPC_TRAIN_PLAN \\")
    ran = run(render_script(made), tmp_path)
    assert ran.done.stderr == ""
    assert ran.arguments == ["-m", "hpc_train.supervisor", "--plan", "/dev/stdin"]
    assert Plan.from_json((tmp_path / "plan").read_text(encoding="utf-8")) == made
    assert not (tmp_path / "owned").exists()


def test_a_line_in_the_config_that_looks_like_the_end_of_the_plan_is_only_data(
    python: str, tmp_path: Path
) -> None:
    made = make(
        python, data={"class_path": "a.B", "init_args": {"x": "a\nHPC_TRAIN_PLAN\ntouch owned"}}
    )
    ran = run(render_script(made), tmp_path)
    assert ran.done.returncode == 0
    assert Plan.from_json((tmp_path / "plan").read_text(encoding="utf-8")) == made
    assert not (tmp_path / "owned").exists()


def test_folders_with_everything_in_their_names_are_passed_whole(
    python: str, tmp_path: Path
) -> None:
    ran = run(render_script(make(python), run_dir=f"/runs/{NASTY_FOLDER}"), tmp_path)
    assert ran.done.stderr == ""
    folder = ["--run-dir", f"/runs/{NASTY_FOLDER}"]
    assert ran.arguments == ["-m", "hpc_train.supervisor", *folder, "--plan", "/dev/stdin"]
    assert not list(tmp_path.rglob("owned"))


def test_the_script_of_a_run_differs_from_the_rendered_one_in_the_runs_name_alone() -> None:
    made = make(env={"venv": "venv"}, slurm={"exclude": "n[1-2]"})
    of_run = render_script(made, run_dir="/runs/x")
    rendered = render_script(made)
    assert of_run.replace("/runs/x/submitit/", "").replace(" --run-dir /runs/x", "") == rendered


def test_nodes_to_leave_out_stand_beside_those_of_the_user_and_the_job_starts_in_its_folder() -> (
    None
):
    made = make(for_script=False, slurm={"exclude": "n[1-2]"})
    assert job_options(made, []) == ["--chdir=/w"]
    assert job_options(made, ["n7", "n8"]) == ["--chdir=/w", "--exclude=n[1-2],n7,n8"]
    in_a_file = make(for_script=False, slurm={"exclude": "./nodes.txt"})
    assert job_options(in_a_file, ["n7"]) == ["--chdir=/w", "--exclude=n7"]


@pytest.mark.parametrize("value", [*NASTY, "two\nlines"])
def test_a_variable_arrives_as_it_was_written(value: str, python: str, tmp_path: Path) -> None:
    made = make(python, env={"variables": {"VALUE": value}})
    ran = run(render_script(made), tmp_path)
    assert ran.environment["VALUE"] == value


def test_sbatch_reads_the_options_of_the_plan_back(tmp_path: Path) -> None:
    made = make(name='it\'s "x"; $(id) # hetjob', slurm={"comment": "a\\b %j", "time": "30"})
    lines = [line for line in render_script(made).splitlines() if line.startswith("#SBATCH")]
    read = [word for line in lines for word in read_line(line)]
    wanted = [
        f"--{name}" if value is None else f"--{name}={value}"
        for name, value in [*made.slurm.options, ("output", "slurm-%j.log")]
    ]
    assert read == wanted


def test_all_options_stand_before_the_first_command() -> None:
    lines = render_script(make(env={"setup": ["#SBATCH --nodes=99"]})).splitlines()
    first = next(index for index, line in enumerate(lines) if line and not line.startswith("#"))
    options = [index for index, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert [index for index in options if index > first] == [lines.index("#SBATCH --nodes=99")]


def test_the_log_of_a_run_lies_in_its_folder_unless_slurm_cannot_name_it() -> None:
    script = render_script(make(), run_dir="/runs/50%j/x")
    assert "#SBATCH --output=/runs/50%%j/x/submitit/slurm-%j.log\n" in script
    assert "#SBATCH --output=slurm-%j.log\n" in render_script(make(), run_dir="/runs/a\\b")


def test_what_an_outer_job_left_behind_is_forgotten_and_slurm_conf_is_kept(
    python: str, tmp_path: Path
) -> None:
    stale = {
        "SLURM_CPU_BIND": "x",
        "SLURM_CPU_BIND_LIST": "0x1",
        "SLURM_EXPORT_ENV": "NONE",
        "SLURM_CONF": "/s.conf",
    }
    ran = run(render_script(make(python)), tmp_path, **stale)
    assert not {"SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST", "SLURM_EXPORT_ENV"} & set(ran.environment)
    assert ran.environment["SLURM_CONF"] == "/s.conf"


def test_a_variable_that_must_come_from_the_submitter_and_does_not_ends_the_job_at_once(
    python: str, tmp_path: Path
) -> None:
    script = render_script(make(python, env={"passthrough": ["WANDB_API_KEY"]}))
    ran = run(script, tmp_path)
    assert ran.done.returncode != 0
    assert "error: env.passthrough: WANDB_API_KEY is not set; fix: set it" in ran.done.stderr
    assert not (tmp_path / "arguments").exists()
    (tmp_path / "with").mkdir()
    ran = run(script, tmp_path / "with", WANDB_API_KEY="x")
    assert ran.environment["WANDB_API_KEY"] == "x"
    assert "WANDB_API_KEY=x" not in script


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"modules": ["a b'c"]}, "hpc-train: error: env.modules: this node has no command module"),
        ({"conda": "x"}, "hpc-train: error: env.conda: conda is not on the PATH"),
        ({"venv": "/no/such"}, "hpc-train: error: env.venv cannot be activated"),
        ({"venv": "no/such"}, "hpc-train: error: env.venv cannot be activated"),
    ],
)
def test_an_environment_that_is_not_there_ends_the_job_with_its_name(
    env: dict[str, Any], words: str, tmp_path: Path
) -> None:
    ran = run(render_script(make(env=env)), tmp_path)
    assert ran.done.returncode == 1
    assert words in ran.done.stderr


ENDS = {
    "a command that is not there": (["sorce x.sh"], "env.setup.0: `sorce x.sh` exited with 127"),
    "within a block of several items": (
        ["if true; then", "  nosuchcommand a", "fi"],
        "env.setup.1: `nosuchcommand a` exited with 127",
    ),
    "no conda": (
        ["conda activate x"],
        "env.setup.0: `conda activate x` exited with 127\n  fix: that node has no command conda",
    ),
    "no module": (
        ["module load cuda"],
        "env.setup.0: `module load cuda` exited with 127\n  fix: that node has no command module",
    ),
    "no ml": (
        ["ml cuda"],
        "env.setup.0: `ml cuda` exited with 127\n  fix: that node has no command ml: ",
    ),
    "a module whose own program is not there": (
        ["module() { modulecmd bash; }", "module load cuda"],
        "env.setup.1: `module load cuda` exited with 127\n  fix: `module avail` on that node",
    ),
    "conda that refuses": (
        ["conda() { return 1; }", "conda activate x"],
        "env.setup.1: `conda activate x` exited with 1\n  fix: `conda env list` on that node",
    ),
    "a module that is not there": (
        ["module() { ls /nosuch; }", "echo a\nmodule load 'it s'"],
        "env.setup.1: `module load 'it s'` exited with 2\n  fix: `module avail` on that node",
    ),
    "set -e of the user's own": (
        ["set -euo pipefail", "test -e /nosuch"],
        "env.setup.1: `test -e /nosuch` exited with 1\n  fix: it ends the job by set -e",
    ),
    "an exit with 0": (
        ["true && exit 0"],
        "env.setup ended the job's shell: `exit 0`, exit code 0",
    ),
    "an exit in a file that is read": (
        ["source ./ends.sh"],
        "env.setup ended the job's shell: `source ./ends.sh`, exit code 0",
    ),
    "an exit with a code of its own": (
        ["if true; then", "exit 1", "fi"],
        "env.setup ended the job's shell: `exit 1`, exit code 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_a_line_of_setup_that_cannot_work_ends_the_job_with_a_fix(
    name: str, python: str, tmp_path: Path
) -> None:
    lines, said = ENDS[name]
    (tmp_path / "ends.sh").write_text("true\nexit\n")
    ran = run(render_script(make(python, env={"setup": lines})), tmp_path)
    assert ran.done.returncode == 1
    assert f"hpc-train: error: {said}" in ran.done.stderr
    assert ran.done.stderr.count("error: env.setup") == 1
    assert "\n  fix: " in ran.done.stderr
    assert not (tmp_path / "arguments").exists()


GOES_ON = {
    "all is well": (["true", "x=1"], []),
    "a test": (["test -e /nosuch"], [(0, 1)]),
    "what is asked is no failure": (
        ["false || true", "if false; then", "  echo a", "fi", "! false", "test -e /x && echo y"],
        [],
    ),
    "items that belong together": (
        ["for name in a b; do", "  ls /nosuch", "done", "cat > /dev/null <<'EOF'", "it's", "EOF"],
        [(1, 2)],
    ),
    "text with quotes and breaks": (
        ["echo 'a\nb' \"c\"", "(exit 3)\nfalse\ntrue", "false"],
        [(1, 3), (2, 1)],
    ),
    "within a file that is read": (["source ./inner.sh"], []),
    "a file that ends so": (["source ./inner.sh false"], [(0, 1)]),
    "a pipe": (["false | true", "true | false"], [(1, 1)]),
    "a function": (["f() { false; true; }; f", "g() { nosuch; }; g || :"], []),
    "what the tool may": (["module load x || true"], []),
    "a trap of the user's own": (["trap 'echo mine >&2' ERR", "false"], []),
    "a trap that is taken back": (["trap : ERR", "trap - ERR", "false"], []),
    "a trap behind what failed": (["false; trap : ERR", "false"], [(0, 1)]),
    "a trap for something else": (["trap : EXIT", "false"], [(1, 1)]),
    "a trap in a shell of its own": (["(trap : err; false)"], [(0, 1)]),
    "set -u": (["set -u", "false"], [(1, 1)]),
    "an exit of a shell of its own": (["(exit 0)", "x=$(exit 0)", "exec 3>&1"], []),
}  # fmt: skip


@pytest.mark.parametrize("name", GOES_ON)
def test_a_line_of_setup_that_fails_is_noted_and_the_job_goes_on(
    name: str, python: str, tmp_path: Path
) -> None:
    lines, failed = GOES_ON[name]
    (tmp_path / "inner.sh").write_text('false\nnosuchcommand\n"${1:-true}"\n')
    stale = {FAILED: " 7:1"}  # of the job that this one was submitted from
    ran = run(render_script(make(python, env={"setup": lines})), tmp_path, **stale)
    assert ran.done.returncode == 0, ran.done.stderr
    told = told_in_variable(ran.environment.get(FAILED, ""))
    assert told.failed == dict(failed)
    assert told.has_own_trap == ("ERR" in lines[0])
    assert told == told_in_log(f"19:36:54 hpc-train: attempt 0\n{ran.done.stderr}")


def test_modules_are_loaded_and_a_venv_is_activated_before_python(
    python: str, tmp_path: Path
) -> None:
    venv = tmp_path / "my venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "python").write_text(FAKE_PYTHON)
    (venv / "python").chmod(0o755)
    (venv / "activate").write_text(f"PATH='{venv}':$PATH; export ACTIVATED=1\n")
    module = 'module() { printf \'%s\\n\' "$*" >> "$OUT/modules"; }\n'
    made = make(python, env={"modules": ["cuda/12.4", "gcc 13"], "venv": "my venv"})
    script = render_script(made).replace("unset ", module + "unset ", 1)
    ran = run(script, tmp_path)
    assert ran.done.stderr == ""
    assert (tmp_path / "modules").read_text() == "load cuda/12.4\nload gcc 13\n"
    assert ran.environment["ACTIVATED"] == "1"


def test_the_plan_in_the_script_takes_a_line_a_section() -> None:
    script = render_script(make())
    body = script.partition("<<'HPC_TRAIN_PLAN'\n")[2].partition("\nHPC_TRAIN_PLAN\n")[0]
    assert len(body.splitlines()) == len(json.loads(body))


def test_the_script_outlives_slurms_sigterm_until_the_supervisor_has_finished(
    tmp_path: Path,
) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/bash\ntrap 'sleep 0.3; echo saved > \"$OUT/end\"; exit 7' TERM\n"
        'kill -TERM "$PPID" "$$"\nsleep 20\n'
    )
    python.chmod(0o755)
    ran = run(render_script(make(str(python))), tmp_path)
    assert (tmp_path / "end").read_text() == "saved\n"
    assert ran.done.returncode == 7
