"""`snapshot: git` from the command line: what is submitted, resumed, refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hpc_train.plan.container import in_container
from hpc_train.plan.plan import Plan
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import read_state
from tests.cli.test_resume import CONFIG, NETS
from tests.runs.test_snapshot import git


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with a working folder in it; the runs lie inside of it, too."""
    folder = tmp_path / "repo" / "work"
    folder.mkdir(parents=True)
    (folder / "nets.py").write_text(NETS)
    (folder / "train.py").write_text("print(1)\n")
    (folder / "cfg.yaml").write_text(CONFIG + "snapshot: git\n")
    git(folder.parent, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "1")
    monkeypatch.chdir(folder)
    return folder


def submitted(hpc, *words: str) -> RunDir:
    said = hpc("submit", *words, "--json")
    assert said.code == 0, said
    return RunDir(Path(json.loads(said.out)["run_dir"]))


def plan_of(run: RunDir) -> Plan:
    return Plan.from_json(run.plan.read_text())


def end(run: RunDir) -> None:
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, {"state": "cancelled"}))


def test_the_job_starts_in_the_copy_and_everything_else_stays_where_it_is(
    hpc, taken, project: Path
) -> None:
    (project / "venv/bin").mkdir(parents=True)
    (project / "venv/bin/activate").write_text("")
    taken.has("sbatch", 'echo "$@" > "$(dirname "$0")/asked-sbatch"; echo Submitted batch job 7')
    run = submitted(
        hpc, str(project / "train.py"), "snapshot=git", "env.venv=venv", "env.setup=[x]"
    )
    plan = plan_of(run)
    assert plan.workdir == str(run.path / "snapshot/work")
    assert plan.script is not None
    assert plan.script.path == "train.py", "typed with its whole path, it is the copy's"
    assert run.path.parents[1] == project / "runs"
    assert f"--chdir={plan.workdir}" in (taken.folder / "asked-sbatch").read_text()
    assert f". {project}/venv/bin/activate" in run.script.read_text()


def test_a_resume_runs_the_copy_of_the_submission_unless_a_new_one_is_asked_for(
    hpc, taken, project: Path
) -> None:
    run = submitted(hpc, "cfg.yaml")
    copied = run.path / "snapshot/work/nets.py"
    end(run)
    (project / "nets.py").write_text(NETS + "# 2\n")
    assert hpc("diff", "x").out.splitlines() == ["code      work/nets.py"]
    said = hpc("resume", "x", "--nodes", "1")
    assert (said.code, copied.read_text()) == (0, NETS)
    assert "the code is not" not in said.err
    lacks = f"its copy of the code, which lacks the changes since then in {project}: nets.py;"
    assert f"{lacks} hpc-train resume {run.run_id} --new-snapshot takes them" in said.err
    assert Path(plan_of(run).workdir) == copied.parent
    end(run)
    before = run.environment.read_text()
    taken.has("sbatch", "echo sbatch: error: no >&2; exit 1")
    assert hpc("resume", "x", "--new-snapshot").code == 4
    assert (copied.read_text(), run.environment.read_text()) == (NETS, before)
    taken.has("sbatch", "echo Submitted batch job 8")
    said = hpc("resume", "x", "--new-snapshot")
    assert (said.code, "lacks the changes" in said.err) == (0, False)
    assert copied.read_text() == NETS + "# 2\n"
    assert "# 2" in next(run.path.glob("code-*.diff")).read_text()
    assert hpc("diff", "x").out == "config    slurm.nodes: 1 -> 2\n", "what resume was told"


def test_a_sweep_has_one_copy_for_all_of_its_points(hpc, taken, project: Path) -> None:
    taken.has("scontrol", "echo MaxArraySize = 1001")
    said = hpc("submit", "cfg.yaml", "--sweep", "seed=range(3)", "--json")
    assert said.code == 0, said
    folder = Path(json.loads(said.out)["sweep_dir"])
    document = json.loads((folder / "sweep.json").read_text())
    assert document["plan"]["workdir"] == str(folder / "snapshot/work")
    assert (folder / "snapshot/work/nets.py").read_text() == NETS


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("submit", "new.py"), "git does not track new.py"),
        (("submit", "cfg.yaml", "model.class_path=new.Net"), "git does not track new.py"),
        (("render", "cfg.yaml"), "a script makes its own"),
        (("submit", "cfg.yaml", "snapshot.max_mb=0"), "snapshot.max_mb"),
        (("submit", "cfg.yaml", "snapshot=svn"), "write one of"),
        (("submit", "cfg.yaml", "snapshot.link=[data]"), "work/data is not there"),
    ],
)
def test_what_a_copy_would_lack_is_refused_and_nothing_stays_behind(
    hpc, taken, project: Path, words: tuple[str, ...], told: str
) -> None:
    (project / "new.py").write_text(f"{NETS}print(Net)\n")
    more = ("snapshot=git",) if "new.py" in words else ()
    said = hpc(*words, *more)
    assert said.code == 3, said
    assert told in said.err
    assert "fix: " in said.err
    assert not (project / "runs").exists()


@pytest.mark.parametrize(
    ("module", "text", "words"),
    [
        ("parts/blocks.py", "from parts.blocks import B\n", ("cfg.yaml",)),
        ("parts/blocks.py", "from parts import blocks\n", ("cfg.yaml",)),
        ("parts/blocks.py", "def later():\n    from parts.blocks import B\n", ("cfg.yaml",)),
        ("parts/blocks.py", "try:\n    import parts.blocks\nexcept OSError: ...\n", ("cfg.yaml",)),
        ("tools.py", "import parts.more\n", ("cfg.yaml",)),
        ("parts/blocks.py", "import parts.blocks\n", ("main.py", "snapshot=git")),
        (
            "stops.py",
            "",
            ("cfg.yaml", "trainer.callbacks=[{class_path: stops.Stop}]"),
        ),
        ("parts/blocks.py", "import parts.blocks\n", ("cfg.yaml", "--sweep", "seed=1,2")),
    ],
)
def test_every_module_that_is_imported_is_looked_for(
    hpc, taken, project: Path, module: str, text: str, words: tuple[str, ...]
) -> None:
    taken.has("scontrol", "echo MaxArraySize = 1001")
    (project / "parts").mkdir()
    (project / "parts/__init__.py").write_text("")
    (project / "parts/more.py").write_text("import tools\n" if module == "tools.py" else "")
    (project / "nets.py").write_text(f"{text}{NETS}")
    (project / "main.py").write_text("import nets\nprint(nets)\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "2")
    code = "from pytorch_lightning import Callback\nclass Stop(Callback): ...\nB = 1\n"
    (project / module).write_text(code)
    for more in (("--dry-run",), ()):
        said = hpc("submit", *words, *more)
        assert said.code == 3, said
        assert f"git does not track {module}, so" in said.err
        assert f"fix: git add {module}, or snapshot.untracked=true" in said.err
    assert not (project / "runs").exists()
    assert hpc("submit", *words, "--dry-run", "snapshot.untracked=true").code == 0
    (project / ".gitignore").write_text("*.py\n")
    said = hpc("submit", *words, "--dry-run", "snapshot.untracked=true")
    assert f"fix: git add -f {module}\n" in said.err
    git(project, "add", "-f", module)
    assert hpc("submit", *words).code == 0


def test_what_nobody_imports_and_what_is_linked_may_be_untracked(hpc, taken, project: Path) -> None:
    (project / "linked").mkdir()
    (project / "linked/far.py").write_text("")
    (project / "other.py").write_text("")
    (project / "nets.py").write_text(f"import linked.far, json, torch\n{NETS}")
    words = ["submit", "cfg.yaml", "--dry-run"]
    assert "does not track linked/far.py" in hpc(*words).err
    assert hpc(*words, "snapshot.link=[linked]").code == 0


def test_a_run_without_a_snapshot_has_no_new_one_and_gets_none_later(
    hpc, taken, project: Path
) -> None:
    run = submitted(hpc, "cfg.yaml", "snapshot=none")
    end(run)
    assert plan_of(run).workdir == str(project)
    assert "without a snapshot" in hpc("resume", "x", "--new-snapshot").err
    assert "cannot change within a run" in hpc("resume", "x", "snapshot=git").err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("container.image=none.sif",), "there is no"),
        (("container.image=images/none.sif",), "there is no"),
        (("container.image=docker://x/y",), "container.image"),
        (("container.image=/nowhere/at/all.sif", "container.mounts=['a:b:c:d']"), "/a:b:c:d'"),
        (("container.image=cfg.yaml", "container.runtime=docker"), "write one of"),
        (("container.image=a#b", "container.runtime=pyxis", "--cluster", "local"), "srun"),
    ],
)
def test_an_image_that_is_not_there_is_refused_and_nothing_stays_behind(
    hpc, taken, project: Path, words: tuple[str, ...], told: str
) -> None:
    said = hpc("submit", "cfg.yaml", *words)
    assert said.code == 3, said
    assert told in said.err
    assert "fix: " in said.err
    assert not (project / "runs").exists()


def test_an_image_that_only_the_nodes_may_see_is_left_to_them(hpc, taken, project: Path) -> None:
    run = submitted(hpc, "cfg.yaml", "container.image=/nowhere/at/all.sif")
    container = plan_of(run).container
    assert container is not None
    assert container.image == "/nowhere/at/all.sif"


@pytest.mark.parametrize("mode", ["none", "git"])
def test_an_image_by_a_relative_path_is_that_of_the_submission_wherever_one_resumes(
    hpc, taken, project: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    image = project / "box.sif"
    image.write_text("")
    run = submitted(hpc, "cfg.yaml", "container.image=box.sif", f"snapshot={mode}")
    end(run)
    monkeypatch.chdir(project.parent)
    assert str(image) in in_container(plan_of(run), ["python"])
    assert hpc("resume", str(run.path), "--dry-run", "--time", "1:00:00").code == 0
    said = hpc("resume", str(run.path), "container.image=other.sif")
    assert f"there is no {Path(plan_of(run).workdir) / 'other.sif'}" in said.err
    image.unlink()
    said = hpc("resume", str(run.path))
    assert said.code == 3
    assert f"there is no {image}" in said.err


def test_an_evaluation_runs_the_code_that_trained(hpc, taken, project: Path) -> None:
    model = "".join(
        f"\n    def {name}(self, *_): ..."
        for name in ("training_step", "configure_optimizers", "test_step")
    )
    methods = NETS.replace("Module): ...", f"Module):{model}", 1)
    methods += "    def train_dataloader(self): ...\n    def test_dataloader(self): ...\n"
    (project / "nets.py").write_text(methods.replace("DataModule): ...", "DataModule):"))
    trained = submitted(hpc, "cfg.yaml")
    end(trained)
    (project / "nets.py").write_text("raise SystemExit\n")
    (project / "w.ckpt").write_bytes(b"\x80\x02, as torch.save may begin")
    said = hpc("test", "x", "--ckpt", str(project / "w.ckpt"), "--json")
    assert said.code == 0, said
    plan = plan_of(run := RunDir(Path(json.loads(said.out)["run_dir"])))
    assert plan.workdir == str(trained.path / "snapshot/work")
    assert run.path.parents[1] == project / "runs"
    assert read_state(run)["sources"] == read_state(trained)["sources"]
    assert not (run.path / "snapshot").exists()
