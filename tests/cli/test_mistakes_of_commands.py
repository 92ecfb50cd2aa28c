"""Words of other tools where a command, the config or one of its keys belongs: the line to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import project, refused

__all__ = ["project"]

EXPORT = (
    "prints the line that loads the model in Python; to_onnx() of it, or torch.export, writes"
    " another form"
)
_START = "hpc-train run {0} (here), hpc-train submit {0} (on the cluster)"


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("train cfg.yaml", _START.format("cfg.yaml")),
        ("fit --config cfg.yaml", _START.format("cfg.yaml")),
        ("fit -c cfg.yaml", _START.format("cfg.yaml")),
        ("fit --config=cfg.yaml", _START.format("cfg.yaml")),
        ("sbatch train.py", _START.format("train.py")),
        ("cfg.yaml seed=3", _START.format("cfg.yaml seed=3")),
        ("train cfg.yaml seed=3 --fast 1", _START.format("cfg.yaml seed=3 ...")),
        ("sbatch --nodes 2 cfg.yaml", _START.format("cfg.yaml ...")),
        ("check cfg.yaml", "hpc-train submit --dry-run cfg.yaml"),
        ("submti cfg.yaml seed=3", "hpc-train submit cfg.yaml seed=3"),
        ("watch first", "hpc-train logs first -f"),
        ("stop first", "hpc-train cancel first"),
        ("infer first", "hpc-train predict first"),
        ("export first --onnx", f"hpc-train checkpoints first {EXPORT}"),
        ("onnx", f"hpc-train checkpoints RUN {EXPORT}"),
        ("train", "`hpc-train --help` shows what there is"),
        ("squeue --me", "`hpc-train --help` shows what there is"),
        ("nonsense", "`hpc-train --help` shows what there is"),
    ],
)
def test_a_command_that_there_is_not(hpc, project: Path, typed: str, fix: str) -> None:
    words = typed.split()
    said = hpc(*words)
    assert said.code == 2
    assert said.err.startswith(f"error: no such command: {words[0]!r}")
    assert said.err.splitlines()[1] == f"  fix: {fix}"


@pytest.mark.parametrize(
    ("typed", "code", "message", "fix"),
    [
        ("run cfg.yaml -seed=3", 2, "No such option '-seed'", "no dashes: seed=3"),
        ("run cfg.yaml -trainer.max_epochs=3", 2, "No such option '-trainer.max_epochs'",
         "a key of the config has no dashes: trainer.max_epochs=3"),
        ("submit cfg.yaml -model.init_args.lr=3", 2, "'-model.init_args.lr'",
         "a key of the config has no dashes: model.init_args.lr=3"),
        ("run script nets.py", 3, "script stands in the config's place",
         "leave script out: nets.py belongs there"),
        ("submit train cfg.yaml", 3, "train stands in", "leave train out: cfg.yaml belongs there"),
        ("submit frist.yaml nets.py", 3, "'nets.py' is no key=value", "leave nets.py out"),
        ("submit train no.py", 3, "'no.py' is no key=value", ""),
        ("run scripts/nets.py", 3, "there is no file scripts/nets.py", "did you mean 'nets.py'?"),
        ("run sub/nte.py", 3, "there is no file sub/nte.py", "did you mean 'sub/net.py'?"),
        ("run net.py", 3, "there is no file net.py",
         "did you mean 'sub/net.py' or 'nets.py'?"),
        ("run other.py", 3, "there is no file other.py", "; there are: nets.py"),
        ("submit conf/cfg.yaml", 3, "there is no such file", "did you mean 'cfg.yaml'?"),
        ("submit conf/other.yaml", 3, "there is no such file", "there is no folder conf either"),
    ],
)  # fmt: skip
def test_a_word_that_is_meant_as_another(
    hpc, project: Path, typed: str, code: int, message: str, fix: str
) -> None:
    refused(hpc, project, typed.split(), code, message, fix)


def test_a_file_whose_name_has_a_blank_is_whole(hpc, project: Path) -> None:
    (project / "my cfg.yaml").write_text((project / "cfg.yaml").read_text())
    fix = "put the name in quotes: 'my cfg.yaml'"
    refused(hpc, project, ["submit", "my", "cfg.yaml"], 3, "and 'my cfg.yaml' is one", fix)


def test_an_element_of_a_list_by_the_name_of_its_class(hpc, project: Path) -> None:
    many = "[{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: loss}}, "
    one = many[:-2] + "]"
    many += "{_target_: nets.Mine}]"
    text = (project / "cfg.yaml").read_text()
    for listed, typed, fix in (
        (one, "EarlyStopping.patience=5", "write trainer.callbacks.0.init_args.patience=5"),
        (many, "earlystopping.init_args.patience=5", "trainer.callbacks.0.init_args.patience=5"),
        (many, "Mine.lr=5", "write trainer.callbacks.1.lr=5"),
        (many, "Other.lr=5", "it has 0 EarlyStopping, 1 Mine; give the whole list"),
        (many, "7.lr=5", "its elements are 0 to 1; give the whole list"),
        ("[]", "0.lr=5", "it is empty; give the whole list"),
    ):
        (project / "cfg.yaml").write_text(text.replace("{accel", f"{{callbacks: {listed}, accel"))
        words = ["submit", "cfg.yaml", f"trainer.callbacks.{typed}"]
        refused(hpc, project, words, 3, "trainer.callbacks has no element", fix)


def test_a_file_that_a_config_builds_on_is_looked_for_beside_it(hpc, project: Path) -> None:
    (project / "in.yaml").write_text("defaults: [base.yaml]\n")
    fix = f"looked beside it, in {project}, and in configs/ there and above; there are: cfg.yaml"
    message = "in.yaml:1: defaults names base.yaml, and there is no such file"
    refused(hpc, project, ["submit", "in.yaml"], 3, message, fix)
    (project / "in.yaml").write_text("defaults: [cgf]\n")
    refused(hpc, project, ["submit", "in.yaml"], 3, "defaults names cgf", "did you mean 'cfg'?")


def test_a_comment_needs_a_space_in_front(hpc, project: Path) -> None:
    text = (project / "cfg.yaml").read_text()
    for old, new, fix in (
        ("width: 3", "width: 3#was 4", "write a whole number: 3  # was 4 (a comment has a space"),
        ("width: 3", "width: 3, lr: 0.1# x", "write a number: 0.1  # x (a comment has a space"),
        ("nodes: 1", "nodes: 1#two", "write a whole number: 1  # two"),
    ):
        (project / "cfg.yaml").write_text(text.replace(old, new))
        refused(hpc, project, ["submit", "cfg.yaml"], 3, "cfg.yaml:", fix)
