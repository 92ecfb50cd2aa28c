"""Projects whose modules hide others, and scripts whose own parser would refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.config.python_text.own_modules import NEEDED
from tests.cli.mistaken import NETS, project, refused

__all__ = ["project"]


def test_a_package_in_src_is_told_with_what_finds_it(hpc, project: Path) -> None:
    (project / "src" / "parts").mkdir(parents=True)
    (project / "src" / "parts" / "__init__.py").write_text(NETS)
    (project / "train.py").write_text("import parts\n")
    fix = "env.variables.PYTHONPATH=src"
    named = ["submit", "cfg.yaml", "model.class_path=parts.Net", "model.init_args.width=3"]
    refused(hpc, project, named, 3, "there is no module 'parts'", f"src: write {fix}")
    refused(hpc, project, ["submit", "train.py"], 3, "imports 'parts', which", f"write {fix}")
    (project / "setup.py").touch()
    refused(hpc, project, named, 3, "there is no", f"{fix}, or pip install -e {project}")
    assert hpc(*named, "--dry-run", fix).code == 0
    assert hpc("submit", "train.py", "--dry-run", fix).code == 0


def test_a_module_in_a_folder_above_the_script_is_told(hpc, project: Path) -> None:
    (project / "sub" / "train.py").write_text("import nets\n")
    message, fix = "train.py:1: imports 'nets'", f"env.variables.PYTHONPATH={project}"
    refused(hpc, project, ["submit", "sub/train.py"], 3, message, fix)
    assert hpc("submit", "sub/train.py", fix.partition("write ")[2] or fix).code == 0


def test_a_class_in_a_notebook_is_told_with_what_makes_a_module_of_it(hpc, project: Path) -> None:
    (project / "exp.ipynb").write_text("{}")
    (project / "train.py").write_text("from exp import Net\n")
    fix = "exp.ipynb is a notebook, which no rank imports: put it into a .py (jupyter nbconvert"
    named = ["submit", "cfg.yaml", "model.class_path=exp.Net", "model.init_args.width=3"]
    refused(hpc, project, named, 3, "there is no module 'exp'", fix)
    refused(hpc, project, ["submit", "train.py"], 3, "imports 'exp', which", fix)
    (project / "exp.py").write_text(NETS)
    assert hpc(*named, "--dry-run").code == 0
    (project / "train.py").write_text("import deepspeed\n")  # a package that is to be installed
    (project / "deepspeed.ipynb").write_text("{}")
    assert "is a notebook" not in hpc("submit", "train.py").err


def test_files_that_may_not_be_read_are_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", closed)  # root may read every file
    message = "nets.py cannot be read: Permission denied"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "check its permissions")
    monkeypatch.setattr(Path, "read_text", closed)
    message = "cfg.yaml cannot be read: Permission denied"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "check its permissions")


def test_a_working_folder_that_is_gone_is_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "the folder that you are in is not there any more" in hpc("list").err
    monkeypatch.chdir(project)


def test_a_number_of_the_environment_is_read_as_one(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOW_MUCH", "3")
    for key in ("model.init_args.width", "trainer.max_epochs"):
        words = ["submit", "cfg.yaml", "--dry-run", f"{key}=${{oc.env:HOW_MUCH}}"]
        hint = "without quotes; of a variable: ${oc.decode:${oc.env:NAME}}"
        refused(hpc, project, words, 3, f"{key} is '3', and", hint)
        words[-1] = f"{key}=${{oc.decode:${{oc.env:HOW_MUCH}}}}"
        assert hpc(*words).code == 0


def test_a_class_that_never_begins_its_base_is_refused(hpc, project: Path) -> None:
    body = "self.width = width\n    def training_step(self, batch): ..."
    (project / "nets.py").write_text(NETS.replace("lr: float = 0.1): ...", f"lr=1): {body}"))
    message = "nets.Net has an __init__ (line 4) without super().__init__()"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "its first line")


def test_model_and_data_in_one_anothers_place_are_told(hpc, project: Path) -> None:
    (project / "sets.py").write_text("from nets import Data as D\nclass Set(D): ...\n")
    words = ["submit", "cfg.yaml", "model.class_path=sets.Set", "model.init_args=null"]
    refused(hpc, project, words, 3, "sets.Set (sets.py:2) is no Light", "it belongs to data")


@pytest.mark.parametrize("file", ["random.py", "random/__init__.py"])
def test_a_file_in_the_place_of_a_module_of_pythons_is_told(hpc, project: Path, file: str) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).touch()
    (project / "test.py").touch()  # a name that hides nothing anybody needs
    message = "hides Python's own module random, which every rank imports"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "rename it")


def test_a_file_in_the_place_of_a_module_that_few_import_is_refused_where_it_is_meant(
    hpc, project: Path
) -> None:
    (project / "code.py").write_text(NETS)
    (project / "more.py").write_text("from code import Net\nclass More(Net): ...\n")
    (project / "train.py").write_text("import code\n")
    said = hpc("submit", "cfg.yaml", "--dry-run")
    assert (said.code, "note: " in said.err) == (0, True)
    message = f"{project}/code.py hides Python's own module code"
    assert message in said.err
    for words in (["cfg.yaml", "model.class_path=code.Net"], ["train.py"]):
        refused(hpc, project, ["submit", *words], 3, message, "rename it")
    refused(
        hpc, project, ["submit", "cfg.yaml", "model.class_path=more.More"], 3, message, "rename"
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("nt.py", "from nets import Net\n"),
        ("nt.py", "import argparse\nfrom pytorch_lightning import Trainer\n"),
        ("winreg/__init__.py", "import torch\n"),
        ("msvcrt.py", ""),
    ],
)
def test_a_file_named_as_a_module_that_python_tries_to_import_is_refused(
    hpc, project: Path, file: str, text: str
) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text(text)
    (project / "train.py").write_text("print(1)\n")
    name = file.partition("/")[0]
    message = (
        f"{project}/{name} hides Python's own module {Path(name).stem}, which every rank tries"
    )
    for words in (["submit", "cfg.yaml"], ["submit", "train.py"], ["run", "cfg.yaml"]):
        refused(hpc, project, words, 3, message, "rename it")


@pytest.mark.parametrize("text", ["", "import math\nimport numpy\n", "import plain\n"])
def test_a_file_that_does_no_harm_where_python_imports_it_is_noted(
    hpc, project: Path, text: str
) -> None:
    (project / "nt.py").write_text(text)
    (project / "plain.py").write_text("import json\nimport nt\n")
    said = hpc("submit", "cfg.yaml", "--dry-run")
    assert (said.code, "note: " in said.err) == (0, True)
    assert "nt.py hides Python's own module nt" in said.err


@pytest.mark.torch
def test_every_module_of_pythons_that_torch_and_lightning_import_is_kept_free() -> None:
    code = "import sys; at_start = {*sys.modules}; import torch, pytorch_lightning"
    code += "; print(*({*sys.modules} - at_start & sys.stdlib_module_names))"
    said = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    names = {it for it in said.stdout.split() if it[0] != "_"} - {*sys.builtin_module_names}
    assert "random" in names
    assert names <= {*NEEDED}


def test_an_output_that_is_full_or_closed_is_told_or_left_alone(project: Path) -> None:
    command = f"{sys.executable} -m hpc_train.cli render cfg.yaml"
    full = subprocess.run(
        ["bash", "-c", f"{command} > /dev/full"], capture_output=True, cwd=project
    )
    assert full.returncode == 1
    said = "error: the output cannot be written: No space left on device\n  fix: make room there"
    assert full.stderr.decode().startswith(said)
    closed = subprocess.run(["bash", "-c", f"{command} >&-"], capture_output=True, cwd=project)
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_a_variable_of_sbatchs_in_the_shell_is_told_where_slurm_refuses(
    hpc, slurm, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.has("sbatch", "echo 'sbatch: error: no --hint of that kind' >&2; exit 1")
    monkeypatch.setenv("SBATCH_PARTITION", "gone")
    message = "Slurm refused the job: no --hint of that kind"
    refused(hpc, project, ["submit", "cfg.yaml"], 4, message, "your shell sets SBATCH_PARTITION")


PARSED = """\
import argparse
parser = argparse.ArgumentParser(description="x")
group = parser.add_argument_group("model")
group.add_argument("-w", "--width", type=int, required=True)
parser.add_argument("--act", choices=["relu", "gelu"], default="relu")
parser.add_argument("--fast", action="store_true")
parser.add_argument("--betas", nargs=2, type=float)
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("typed", "message", "fix"),
    [
        ("--widht 3", "arguments are required: -w/--width", "--widht: did you mean '--width'?"),
        ("--zzz 3", "arguments are required: -w/--width", "it needs --width VALUE"),
        ("", "are required: -w/--width", ": hpc-train submit train.py --dry-run -- --width VALUE"),
        (
            "--act gelu",
            "are required: -w/--width",
            ": hpc-train submit train.py --dry-run -- --act gelu --width VALUE",
        ),
        ("-w 3 --wdith 4", "refuses: unrecognized arguments: --wdith 4", "did you mean '--width'?"),
        ("-w 3 --epochs 4", "unrecognized arguments: --epochs 4", "it takes -w, --width, --act"),
        ("--width wide", "argument -w/--width: invalid int value: 'wide'", "correct it"),
        ("-w 3 --act tanh", "argument --act: invalid choice: 'tanh'", "correct it"),
        ("-w 3 --betas 1", "argument --betas: expected 2 arguments", "correct it"),
        ("--wid 3 --fast --betas 0.9 0.99 --act=gelu", "", ""),
        ("--help", "", ""),
    ],
)
def test_what_a_scripts_own_parser_would_refuse_is_refused(
    hpc, project: Path, typed: str, message: str, fix: str
) -> None:
    (project / "train.py").write_text(PARSED)
    words = ["submit", "train.py", "--dry-run", "--", *typed.split()]
    if message:
        refused(hpc, project, words, 3, message, fix)
    else:
        assert hpc(*words).code == 0


def test_what_a_script_lacks_is_told_as_the_line_to_type(hpc, project: Path) -> None:
    (project / "train.py").write_text(
        PARSED.replace("args =", 'parser.add_argument("path")\nargs =')
    )
    words = ["run", "train.py", "script.accelerator=cpu"]
    line = "hpc-train run train.py script.accelerator=cpu -- --width VALUE PATH"
    refused(hpc, project, words, 3, "are required: -w/--width, path", f"fix: {line}")
    (project / "own.yaml").write_text("script:\n  path: train.py\n  args: [--fast, p]\n")
    message, fix = "own.yaml:3: script.args: train.py refuses", "add to them: --width VALUE"
    refused(hpc, project, ["submit", "own.yaml"], 3, message, fix)


PARSES = "args = parser.parse_args()"


@pytest.mark.parametrize(
    ("parses", "typed"),
    [
        ("args, rest = parser.parse_known_args()", "--odd"),
        (f"add_options(parser)\n{PARSES}", "--odd"),
        (f"for name in names: parser.add_argument(name)\n{PARSES}", "--odd"),
        (f"parser.add_subparsers()\n{PARSES}", "--odd"),
        (f"if big: parser.add_argument('--big', required=True)\n{PARSES}", "-w 3"),
        (f"if big: parser.add_argument('--big', required=True)\n{PARSES}", "-w 3 --big 1"),
        (f"sys.argv.remove('--odd')\n{PARSES}", "--odd"),
        ("parser.parse_args(['--width', '3'])", "--odd"),
        (f"other = argparse.ArgumentParser(parents=[parser])\n{PARSES}", "-w 3"),
    ],
)
def test_a_parser_whose_text_does_not_tell_all_refuses_nothing(
    hpc, project: Path, parses: str, typed: str
) -> None:
    assert PARSES in PARSED
    (project / "train.py").write_text(PARSED.replace(PARSES, parses))
    assert hpc("submit", "train.py", "--dry-run", "--", *typed.split()).code == 0


def test_latest_is_the_newest_run_unless_one_is_called_that(hpc, project: Path) -> None:
    assert hpc("submit", "cfg.yaml", "seed=1").code == 0
    first = set(project.glob("runs/x/*"))
    assert hpc("submit", "cfg.yaml", "seed=2").code == 0
    (newest,) = set(project.glob("runs/x/*")) - first
    for word in ("latest", "last"):
        assert newest.name in hpc("status", word).out
    assert hpc("submit", "cfg.yaml", "name=latest").code == 0
    assert hpc("submit", "cfg.yaml").code == 0
    assert hpc("status", "latest").out.startswith("latest")


@pytest.mark.parametrize(
    ("module", "fix"),
    [
        ("cv2", "pip install opencv-python-headless, or name"),
        ("git", "pip install gitpython, or name"),  # is near to cgitb, which nobody means
        ("usb.core", "pip install pyusb, or name"),
        ("jwt", "pip install pyjwt, or name"),
        ("zarr_of_nobody", "pip install zarr_of_nobody (often its package has another name), or"),
        ("jsom", "did you mean 'json'? Else pip install jsom (often"),
    ],
)
def test_what_is_not_installed_is_told_with_the_name_that_pip_takes(
    hpc, project: Path, module: str, fix: str
) -> None:
    (project / "nets.py").write_text(f"import {module}\n{NETS}")
    (project / "train.py").write_text(f"from {module} import something\n")
    for file in ("cfg.yaml", "train.py"):
        message = f"imports '{module.partition('.')[0]}', which is not installed"
        refused(hpc, project, ["submit", file], 3, message, f"fix: {fix}")


def test_a_class_of_a_package_that_is_not_installed_is_no_slip_for_a_file_of_the_project(
    hpc, project: Path
) -> None:
    (project / "bs.py").touch()
    words = ["submit", "cfg.yaml", "model.class_path=bs4.Net"]
    refused(hpc, project, words, 3, "there is no module 'bs4'", "fix: pip install beautifulsoup4,")


@pytest.mark.parametrize(
    ("text", "is_values"),
    [
        ("lr = 0.1\nepochs: int = 3\n", True),
        ('"""Settings."""\nimport os\nmodel = dict(lr=0.1, root=os.path.join("a", "b"))\n', True),
        ("lr = 0.1\nresult = train(lr)\n", False),
        ("lr = 0.1\nprint(lr)\n", False),
        ("lr = 0.1\nimport other\n", False),
        ("lr = 0.1\nfor epoch in range(3): lr /= 2\n", False),
    ],
)
def test_a_python_file_that_only_assigns_values_is_no_script(
    hpc, project: Path, text: str, is_values: bool
) -> None:
    (project / "other.py").write_text("print('works')\n")
    (project / "config.py").write_text(text)
    if is_values:
        for command in ("submit", "run"):
            message = "config.py only assigns values, and a config is a YAML file"
            refused(hpc, project, [command, "config.py"], 3, message, "write a YAML file with name")
    else:
        assert hpc("submit", "config.py", "--dry-run").code == 0
