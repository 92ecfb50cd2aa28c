"""Files, folders, variables and modules that are not where they are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.cli.mistaken import CONFIG, NETS, project, refused

__all__ = ["project"]


def test_an_override_and_a_cluster_of_python_that_are_none(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    with pytest.raises(ConfigError, match=r"\{'seed': 3\} is no text .*write each override as"):
        api.load(project / "cfg.yaml", {"seed": 3})  # type: ignore[arg-type]
    before = sorted(project.rglob("*"))
    with pytest.raises(ConfigError, match=r"cluster is 'pbs' \(write 'slurm' or 'local'\)"):
        api.submit(api.load(project / "cfg.yaml"), cluster="pbs")
    assert sorted(project.rglob("*")) == before


def test_a_variable_that_names_a_file_in_place_of_a_folder_of_runs_is_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", "cfg.yaml")
    for words in (["list"], ["status", "x"], ["top"]):
        refused(hpc, project, words, 5, "HPC_TRAIN_RUNS_DIR=cfg.yaml: that is no", "unset HPC_")


def test_a_folder_is_no_file_and_a_file_of_hosts_no_host(hpc, project: Path) -> None:
    for name, said in (("a.toml", "is TOML"), ("a.ckpt", "is a checkpoint")):
        (project / name).write_bytes(b"PK\x03\x04\xff")
        refused(hpc, project, ["submit", name], 3, said, "write" if "toml" in name else "resume")
    (project / "hosts").write_text("a\nb\n")
    words = ["launch", "cfg.yaml", "--hosts", "hosts"]
    refused(hpc, project, words, 3, "hosts names the file hosts", '$(paste -sd, hosts)"')


def test_a_variable_that_names_no_folder_of_runs_is_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", "/no/such")
    said = hpc("list").err
    assert "no runs in /no/such (HPC_TRAIN_RUNS_DIR), which does not exist" in said


def test_a_file_in_another_encoding_is_told_with_its_line(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_bytes(b"seed: 1\nname: gr\xf6\xdfe\n")
    message = "cfg.yaml:2: not text in UTF-8, for its byte 0xf6"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "save the file as UTF-8")


def test_a_file_that_hides_a_package_is_named(hpc, project: Path) -> None:
    (project / "torch.py").touch()
    (project / "nets.py").write_text(f"import torch.nn\n{NETS}")
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "torch.py hides that package", "rename")
    (project / "pytorch_lightning.py").touch()
    (project / "torch.py").unlink()
    words = ["submit", "cfg.yaml"]
    refused(hpc, project, words, 3, "pytorch_lightning.py hides that package", "rename")


@pytest.mark.parametrize(
    ("method", "message", "fix"),
    [
        ("def training_step(batch, i): ...", "begins with batch, and not", "(self, batch, i)"),
        ("def training_step(): return self.x", "begins with nothing", "training_step(self)"),
        ("def training_step(self, b, i, opt): ...", "needs b, i, opt, and", "(self, batch, batch_"),
        ("def configure_optimizers(self, lr): ...", "needs lr, and Lightning", "optimizers(self)"),
        ("def __int__(self, width): ...", "its __int__ (line 6) is called by nobody", "__init__"),
        (
            "def setup(self): ...",
            "its setup (line 6) does not take stage",
            "def setup(self, stage)",
        ),
        ("def training_step(self, b, i=0, opt=None): ...", "", ""),
        ("def training_step(self, *args): ...", "", ""),
        ("@staticmethod\n    def loss(x): ...", "", ""),
        ("@property\n    def loss(self): ...", "", ""),
        ("def told(fn): return fn\n    @told\n    def predict_step(self, b): ...", "", ""),
        ("def made(n): return n\n    width = made(3)", "", ""),
    ],
)
def test_a_method_that_cannot_be_called_is_told_by_its_text(
    hpc, project: Path, method: str, message: str, fix: str
) -> None:
    text = f"""\
from pytorch_lightning import LightningModule
class Net(LightningModule):
    def training_step(self, batch): ...
    def configure_optimizers(self): ...
    def forward(self, x): ...
    {method}
"""
    (project / "more.py").write_text(text)
    words = ["submit", "cfg.yaml", "--dry-run", "model.class_path=more.Net"]
    if message:
        refused(hpc, project, words, 3, message, fix)
    else:
        assert hpc(*words).code == 0


@pytest.mark.parametrize(
    ("module", "message", "fix"),
    [
        (
            "from .util import x\n",
            "more.py:1: a relative import, and more is in no",
            "from util im",
        ),
        (
            "from circle import y\n",
            "circle.py:1: imports 'Net' from more, which imports",
            "move one",
        ),
        ("import numpi\n", "more.py:1: imports 'numpi', which is not", "'numpy'? Else pip install"),
        (
            "def make():\n    class Net: ...\n",
            "more has no class 'Net' at its top",
            "inside of make",
        ),
        ("from nets import Net as Base\nNet = Base\n", "", ""),
        ("class A: ...\nNet = A()\n", "more.Net is a value, not a class", "the name of a class"),
        (
            "from pytorch_lightning import LightningModule\n\n\nclass A(LightningModule): ...\n",
            "more has no class 'Net'",
            "did you mean 'more.A'?",
        ),
    ],
)
def test_a_module_that_cannot_give_the_class_is_told_by_its_text(
    hpc, project: Path, module: str, message: str, fix: str
) -> None:
    ends = "" if "Net" in module or "A" in module else "from nets import Net\n"
    ends = "class Net: ...\n" if "circle" in module else ends
    (project / "more.py").write_text(module + ends)
    (project / "circle.py").write_text("from more import Net\ny = 1\n")
    (project / "inner").mkdir()
    (project / "inner" / "more.py").write_text("class Net: ...\n")
    words = ["submit", "cfg.yaml", "--dry-run", "model.class_path=more.Net"]
    if message:
        refused(hpc, project, words, 3, message, fix)
    else:
        assert "is a value" not in hpc(*words).err


@pytest.mark.parametrize("text", ["\ufeff" + CONFIG, CONFIG.replace("\n", "\r\n")])
def test_a_file_of_another_system_is_read(hpc, project: Path, text: str) -> None:
    (project / "cfg.yaml").write_bytes(text.encode())
    assert hpc("submit", "cfg.yaml").code == 0


def test_a_tilde_in_runs_dir_is_the_home(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project / "home"))
    assert hpc("submit", "cfg.yaml", "runs_dir=~/all runs").code == 0
    assert list((project / "home" / "all runs" / "x").iterdir())
    assert not (project / "~").exists()


def test_a_command_without_its_words_shows_its_help(hpc) -> None:
    said = hpc("config")
    assert said.code == 2
    assert said.err.startswith("Usage: hpc-train config")


def test_a_usage_error_as_json_is_one_document(hpc, project: Path) -> None:
    said = hpc("submit", "cfg.yaml", "--nodes", "x", "--json")
    assert '"exit_code": 2' in said.out
    assert said.err == ""
    assert "hpc-train status RUN --json" in hpc("logs", "x", "--json").out


def test_a_script_that_imports_what_is_not_there_is_refused(hpc, project: Path) -> None:
    script = project / "train.py"
    script.write_text("import pytorch_lightnin\n")
    said = "train.py:1: imports 'pytorch_lightnin', which is not installed"
    refused(hpc, project, ["submit", "train.py"], 3, said, "did you mean 'pytorch_lightning'?")
    script.write_text("import hydra\n")
    said = "train.py:1: imports 'hydra', which is not installed"
    refused(hpc, project, ["submit", "train.py"], 3, said, "pip install hydra-core, or")
    script.write_text("from nets import Nett\n")
    said = "train.py:1: imports 'Nett' from nets, which has no such name"
    refused(hpc, project, ["submit", "train.py"], 3, said, "did you mean 'Net'")


@pytest.mark.parametrize(
    "lines",
    [
        "import sys\nsys.path.insert(0, '..')\nimport shared\n",
        "import os\ntry:\n    import apex\nexcept ImportError:\n    apex = None\n",
        "import nets\n",
    ],
)
def test_a_script_whose_imports_may_be_found_is_taken(hpc, project: Path, lines: str) -> None:
    (project / "train.py").write_text(lines)
    assert hpc("submit", "train.py").code == 0


def test_a_file_of_env_setup_that_is_not_there_is_refused(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "env.setup=['ulimit -c 0', 'source no.sh']"]
    message = f"env.setup.1: {project}/no.sh is not there"
    refused(hpc, project, words, 3, message, "what only the nodes have")


@pytest.mark.parametrize(
    "line", ["source ok.sh", "cd sub && . no.sh", ". $HOME/no.sh", ". /no/such/folder/no.sh"]
)
def test_a_file_of_env_setup_that_may_be_there_is_taken(hpc, project: Path, line: str) -> None:
    (project / "ok.sh").touch()
    assert hpc("submit", "cfg.yaml", f"env.setup=['{line}']").code == 0


@pytest.mark.parametrize("line", ["exit 0", "exit  # done", "exec bash -l", "exec ./train.sh a"])
@pytest.mark.parametrize("command", ["submit", "render"])
def test_a_line_of_env_setup_that_ends_the_shell_is_refused(
    hpc, project: Path, command: str, line: str
) -> None:
    words = [command, "cfg.yaml", f"env.setup=['ulimit -c 0', '{line}']"]
    message = f"env.setup.1: `{line}` ends the job's shell"
    refused(hpc, project, words, 3, message, "leave that line out")


@pytest.mark.parametrize(
    "lines",
    [
        "'exec > log.txt 2>&1'",
        "'exec 3>&1'",
        "exec",
        "'if false; then', 'exit 0', fi",
        "'stop() {', 'exit 0', '}'",
        "'test -e /nosuch ||', 'exit 0'",
        '"cat > /dev/null <<E", "exit 0", "E"',
        "'test -e /nosuch && exit 0'",
    ],
)
def test_a_line_of_env_setup_that_may_not_end_the_shell_is_taken(
    hpc, project: Path, lines: str
) -> None:
    assert hpc("submit", "cfg.yaml", f"env.setup=[{lines}]").code == 0


def test_a_site_profile_that_is_not_there_is_told_where_to_write_it(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "cluster_profile=mysite"]
    refused(hpc, project, words, 3, "clusters/mysite", "write the file clusters/mysite.yaml, or")
    words = ["submit", "cfg.yaml", "cluster_profile=exampl"]
    refused(hpc, project, words, 3, "clusters/exampl", "did you mean 'example'?")


def test_a_folder_of_runs_that_links_to_nothing_is_named(hpc, project: Path) -> None:
    (project / "runs").symlink_to("/no/such")
    message = f"{project}/runs is a link to /no/such, which is not there"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "set runs_dir to a folder")


def test_a_gpu_type_without_gpus_is_told(hpc, project: Path) -> None:
    assert "slurm.gpu_type is not used" in hpc("submit", "cfg.yaml", "slurm.gpu_type=a100").err


def test_a_damaged_plan_is_named_with_its_path(hpc, project: Path) -> None:
    assert hpc("submit", "cfg.yaml").code == 0
    plan = next(project.glob("runs/x/*/plan.json"))
    plan.write_text("{")
    refused(hpc, project, ["diff", "x"], 1, f"{plan} cannot be read", "submit again")


def test_a_rank_that_is_none_and_weights_that_are_none_are_told(hpc, project: Path) -> None:
    assert hpc("submit", "cfg.yaml").code == 0
    refused(hpc, project, ["logs", "x", "--rank", "all"], 2, "--rank is one", "--all shows all")
    nets = NETS.replace("0.1): ...", "0.1): ...\n    def test_step(self, batch): ...")
    (project / "nets.py").write_text(nets + "    def test_dataloader(self): ...\n")
    refused(hpc, project, ["test", "x", "--ckpt", "bset"], 3, "--ckpt bset", "did you mean 'best'?")


def test_what_was_not_loaded_is_refused(project: Path) -> None:
    for call in (api.submit, api.render, api.plan, api.test_only, api.run_here):
        with pytest.raises(ConfigError, match=r"'cfg.yaml' is no loaded config .*load\('cfg.y"):
            call("cfg.yaml")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "message", "fix"),
    [
        ("n.ipynb", "n.ipynb is a notebook, and no config", "hpc_train.submit(...)"),
        ("job.sh", "job.sh is a shell script, and no config", "name the .py"),
        ("link.yaml", "link.yaml is a link to /no/such, which is not there", "the file itself"),
    ],
)
def test_a_file_that_is_no_config(hpc, project: Path, name: str, message: str, fix: str) -> None:
    if name.startswith("link"):
        (project / name).symlink_to("/no/such")
    else:
        (project / name).write_text("echo\n")
    refused(hpc, project, ["submit", name], 3, message, fix)


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("train.py --lr 0.1", "hpc-train run train.py -- --lr 0.1"),
        ("train.py -- --lr 0.1", "hpc-train run train.py -- --lr 0.1"),
        ("python train.py --lr 0.1", "hpc-train run train.py -- --lr 0.1"),
        ("cfg.yaml seed=3", "hpc-train run cfg.yaml seed=3"),
    ],
)
def test_several_words_in_quotes_are_told_without_them(
    hpc, project: Path, typed: str, fix: str
) -> None:
    message = f"'{typed}' is one word, and no file is called that"
    refused(hpc, project, ["run", typed], 2, message, f"leave the quotes out: {fix}")


def test_lists_are_values_of_a_sweep(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "--dry-run", "model={class_path: nets.Forms}", "--sweep"]
    both = [
        hpc(*words, f"model.init_args.words={values}") for values in ("[a],[a, b]", "[[a],[a, b]]")
    ]
    assert [said.code for said in both] == [0, 0]
    assert both[0].out == both[1].out


def test_the_site_profile_of_a_file_is_emptied_as_it_is_said(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}cluster_profile: nope\n")
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "cfg.yaml:7: cluster_profile names", "write")
    words = ["submit", "cfg.yaml", "cluster_profile="]
    refused(hpc, project, words, 3, "cluster_profile is empty", "write cluster_profile=null")
    assert hpc("submit", "cfg.yaml", "--dry-run", "cluster_profile=null").code == 0


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["cfg.yaml", "env.variables.D=~/d"], "env.variables.D is ~/d, and nothing replaces its ~"),
        (["cfg.yaml", "model={class_path: nets.Forms, init_args: {words: [~/d]}}"], "words.0 is"),
        (["any.py", "--", "--data=~/d"], "script.args.0 is --data=~/d, and nothing"),
        (["cfg.yaml", "env.setup=['D=\"~/d\"']"], "bash replaces no ~ in quotes"),
        (["cfg.yaml", "env.setup=['cd ~']", "runs_dir=~/d"], ""),
        (["any.py", "--", "a~/d"], ""),
    ],
)
def test_a_home_that_nothing_puts_in_the_place_of_its_tilde_is_noted(
    hpc, project: Path, words: list[str], note: str
) -> None:
    (project / "any.py").write_text("print(1)\n")
    said = hpc("submit", "--dry-run", *words)
    assert said.code == 0, said
    assert note in said.err
    assert (f"write {Path.home()}/d" in said.err.replace('D="', "").replace("--data=", "")) == (
        bool(note)
    )


def test_a_file_that_lies_one_folder_down_is_found(hpc, project: Path) -> None:
    (project / "my net").mkdir()
    (project / "my net" / "own.yaml").write_text(CONFIG)
    fix = "it is in my net: cd 'my net', and again"
    refused(hpc, project, ["run", "own.yaml"], 3, "own.yaml: there is no such file", fix)
    (project / "sub" / "own.yaml").write_text(CONFIG)
    refused(
        hpc, project, ["run", "own.yaml"], 3, "there is no such file", "did you mean 'cfg.yaml'?"
    )


def test_a_command_without_its_config_names_those_that_are_here(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("run", "submit", "render"):
        fix = f"hpc-train {command} cfg.yaml"
        refused(hpc, project, [command], 2, "Missing argument 'CFG'", fix)
    (project / "mkdocs.yml").write_text("site_name: model\n")  # another program's
    refused(hpc, project, ["run"], 2, "Missing argument 'CFG'", "hpc-train run cfg.yaml")
    (project / "b c.yml").write_text(CONFIG)
    refused(hpc, project, ["run"], 2, "Missing", "run CFG, one of: 'b c.yml', cfg.yaml")
    monkeypatch.chdir(project / "sub")
    refused(hpc, project, ["run"], 2, "Missing argument 'CFG'", "`hpc-train run --help`")


def test_a_folder_with_blanks_for_init_is_quoted(hpc, project: Path) -> None:
    fix = "a name with blanks is quoted: hpc-train init 'my project'"
    refused(hpc, project, ["init", "my", "project"], 2, "unexpected extra argument", fix)
