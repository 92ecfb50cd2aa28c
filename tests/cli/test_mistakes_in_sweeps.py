"""What people type wrong of a sweep, and from Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import HpcTrainError
from hpc_train.sweeps import Sweep, submit_sweep
from tests.cli.mistaken import CONFIG, NETS, project, refused

__all__ = ["project"]


def test_the_python_interface_refuses_what_is_of_another_kind(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    loaded = api.load("cfg.yaml")
    refused_calls: list[tuple[Callable[[], object], str]] = [
        (lambda: api.load({"seed": 1}), r"\{'seed': 1\} is none .*YAML file"),  # type: ignore[arg-type]
        (lambda: api.load("cfg.yaml", sweep="seed=1,2"), r"no list \(write sweep=\['seed=1,2"),
        (lambda: api.load("cfg.yaml", arguments="--lr 1"), "no list .write arguments="),
        (lambda: api.render("cfg.yaml"), "write hpc_train.load"),  # type: ignore[arg-type]
        (lambda: api.Run("x"), r"no run directory .write hpc_train.Run.find\('x'\)"),  # type: ignore[arg-type]
        (lambda: Sweep("x"), r"no sweep directory .write hpc_train.Sweep.find\('x'\)"),  # type: ignore[arg-type]
        (lambda: api.submit(loaded.config), r"not its config: submit\(loaded\)"),  # type: ignore[arg-type]
        (lambda: api.Run.find("7", "nope"), "--runs-dir nope: there is no such folder"),
        (lambda: submit_sweep(loaded), "no key varies"),
        (lambda: api.submit(loaded, nodes=2), "write hpc_train.load.PATH, nodes=2"),
        (lambda: api.load("cfg.yaml", **{"slurm.nodes": 2}), "PATH, 'slurm.nodes=2'"),  # type: ignore[arg-type]
        (lambda: api.load("cfg.yaml", lr=0.1), "PATH, 'model.init_args.lr=0.1'"),
        (lambda: api.load("cfg.yaml", max_epochs=3), "PATH, 'trainer.max_epochs=3'"),
        (lambda: api.load("cfg.yaml", node=3), "did you mean 'nodes'"),
        (lambda: api.load("cfg.yaml", odd=3), "keys of the config are texts: 'model.init_args"),
        (lambda: submit_sweep("cfg.yaml"), "write hpc_train.load"),  # type: ignore[arg-type]
        (lambda: api.prepare(loaded).wait("x"), "timeout_s is 'x' .write seconds"),  # type: ignore[arg-type]
        (lambda: api.prepare(loaded).evaluate("tset"), "'tset' is no evaluation"),  # type: ignore[arg-type]
    ]
    for call, message in refused_calls:
        with pytest.raises(HpcTrainError, match=message):
            call()


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("[WANDB_API_KEY=s3cr3t]", "[WANDB_API_KEY]"),
        ("WANDB_API_KEY=s3cr3t", "[WANDB_API_KEY]"),
        ("{WANDB_API_KEY: s3cr3t}", "[WANDB_API_KEY]"),
        ("[HOME, {WANDB_API_KEY: s3cr3t}]", "[HOME, WANDB_API_KEY]"),
        ("[$HF_TOKEN]", "[HF_TOKEN]"),
        ("['${oc.env:HF_TOKEN}']", "[HF_TOKEN]"),
        ("[s3cr3t-of-mine]", "[WANDB_API_KEY]"),
        ("[s3cr3t7f40cfb3b3e90c1d2]", "[WANDB_API_KEY]"),
    ],
)
def test_a_value_among_the_names_that_are_handed_on_is_never_repeated(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch, typed: str, names: str
) -> None:
    """Neither where it is typed nor where a file has it; what the fix says is taken."""
    monkeypatch.setenv("WANDB_API_KEY", "other")
    monkeypatch.setenv("HF_TOKEN", "other")
    message, fix = "env.passthrough holds more than names", f"names only: {names}; the values"
    words = ["submit", "cfg.yaml", "--dry-run", f"env.passthrough={typed}"]
    refused(hpc, project, words, 3, message, fix)
    assert "s3cr3t" not in hpc(*words).err
    (project / "cfg.yaml").write_text(f"{CONFIG}env: {{passthrough: {typed}}}\n")
    refused(hpc, project, words[:3], 3, message, fix)
    assert "s3cr3t" not in hpc(*words[:3]).err
    assert hpc(*words[:3], f"env.passthrough={names}").code == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("1:00:00", "00:01:00:00"),
        ("36:00:00", "01:12:00:00"),
        ("2-00:30:00", "02:00:30:00"),
        ("90m", "00:01:30:00"),
        ("1.5 hours", "00:01:30:00"),
        ("3:00", "00:00:30:00"),
    ],
)
def test_a_time_of_slurms_form_is_told_as_lightning_reads_it(
    hpc, project: Path, typed: str, meant: str
) -> None:
    """The fix is right at once, where YAML reads a number as well, and needs no quotes if typed."""
    words = ["submit", "cfg.yaml", "--dry-run", f"trainer.max_time={typed}"]
    refused(hpc, project, words, 3, f"trainer.max_time is '{typed}'", meant)
    assert hpc(*words[:3], f"trainer.max_time={meant}").code == 0
    assert hpc(*words[:3], f"trainer.max_time='{meant}'").code == 0
    (project / "cfg.yaml").write_text(CONFIG.replace("epochs: 1", f"epochs: 1, max_time: {typed}"))
    refused(hpc, project, words[:3], 3, "trainer.max_time is", meant)


@pytest.mark.parametrize("count", ["--gpus=-1", "--gpus=all", "slurm.gpus_per_node=auto"])
def test_as_many_gpus_as_there_are_is_told_to_be_counted(hpc, project: Path, count: str) -> None:
    said = hpc("submit", "cfg.yaml", count, "trainer.accelerator=auto")
    assert said.code in (2, 3)
    assert "how many GPUs of each node are used" in said.err
    for value in ("-1", "auto"):
        words = ["submit", "cfg.yaml", f"trainer.devices={value}"]
        refused(hpc, project, words, 3, "set by hpc-train", "write how many a node has: slurm.gpus")


KINDS = """\
import torch
from pytorch_lightning import LightningDataModule, LightningModule
class Model(LightningModule): ...
class Encoder(torch.nn.Module): ...
class Images(LightningDataModule): ...
"""


@pytest.mark.parametrize("typed", ["kinds", "kinds.py", "./kinds.py", "kinds.Nothing", "kinds.X"])
def test_only_classes_of_the_right_kind_are_proposed(hpc, project: Path, typed: str) -> None:
    (project / "kinds.py").write_text(KINDS)
    for key, right in (("model", "Model"), ("data", "Images")):
        said = hpc("submit", "cfg.yaml", f"{key}.class_path={typed}", "--dry-run")
        assert said.code == 3, said
        hint = said.err.splitlines()[-1]
        assert right in hint
        assert not any(it in hint for it in {"Model", "Encoder", "Images"} - {right}), hint
    (project / "kinds.py").write_text("import torch\nclass Encoder(torch.nn.Module): ...\n")
    assert "Encoder" not in hpc("submit", "cfg.yaml", f"model.class_path={typed}").err


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        ("--sweep seed=1 2 3 --nodes 1", "and 2 3 stands behind", "write --sweep seed=1,2,3"),
        ("--sweep seed=1, 2, 3 --nodes 1", "and 2 3 stands behind", "write --sweep seed=1,2,3"),
        ("--sweep seed=choice(1,2)", "choice() is Hydra's", "--sweep seed=1,2"),
        ("--sweep seed=interval(1,2)", "interval() is Hydra's", "--sweep seed=A,B,C"),
        ("--sweep model.init_args.lr=0.1:0.5:0.1", "is no list", "lr=0.1,0.2,0.3,0.4,0.5"),
        ("--sweep model.init_args.lr=0.1:0.1:0.5", "is no list", "by commas: model.init_args.lr=A"),
        ("--sweep model.init_args.lr=0:1:0.001", "is no list", "by commas: model.init_args.lr=A"),
        ("--sweep model.init_args.lr=0.1:0.5", "is no list", "write each value: model.init_args.l"),
        ("--sweep seed=1:9:2", "is no list", "write seed='range(1,10,2)'"),
        ("--sweep seed=1..5", "is no list", "write seed='range(1,6)'"),
        ("--sweep seed=1:2:10", "is no list", "by commas: seed=A,B,C"),
        ("--sweep seed=1,2 --at-most 0", "0 is not in the range", "write 1 or more"),
        ("--sweep --nodes 1", "--sweep wants KEY=VALUES, and --nodes", "--sweep KEY="),
        ("--sweep --dry-run", "--sweep wants KEY=VALUES, and --dry-run fol", "--sweep KEY=VALUES"),
        ("--name --nodes=1", "--name wants a value, and --nodes=1 follows", "write --name VALUE"),
        ("seed=3 --sweep seed=1,2", "seed=3 and --sweep seed=... are both", "leave one of"),
        ("--nodes 3 --sweep slurm.nodes=1,2", "--nodes 3 and --sweep slurm.nodes=... are", "leave"),
    ],
)  # fmt: skip
def test_a_sweep_that_is_typed_wrong_is_told(
    hpc, project: Path, words: str, message: str, fix: str
) -> None:
    said = hpc("submit", "cfg.yaml", *words.split())
    assert said.code in (2, 3)
    error, hint = said.err.splitlines()
    assert message in error
    assert fix in hint
    assert "--nodes" not in hint


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("model.init_args.lr=0.1 0.01", "0.1,0.01"),
        ("model.init_args.lr=[0.1 1e-3 -1]", "0.1,1e-3,-1"),
        ("model.init_args.lr=0.1, 0.01 0.001", "0.01,0.001"),
        ("model.init_args.width=3|4", "3,4"),
        ("seed=1  2", "1,2"),
    ],
)
def test_numbers_beside_blanks_are_told_to_have_commas(
    hpc, project: Path, typed: str, meant: str
) -> None:
    fix = f"several values are separated by commas: {meant}"
    refused(hpc, project, ["submit", "cfg.yaml", "--sweep", typed, "--dry-run"], 3, "point ", fix)


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("0.1 0.01", "write a list: [0.1, 0.01], or range"),
        ("'3,4; 5'", "write a list: [3, 4, 5], or range"),
        ("7", "write a list: [7], or range"),
        ("adam", "write a list: [adam], or range"),
        ("'{a: [b]}'", "write a list, or range"),
    ],
)
def test_values_of_a_file_that_are_no_list_are_shown_as_one(
    hpc, project: Path, written: str, fix: str
) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}sweep: {{model.init_args.lr: {written}}}\n")
    words = ["submit", "cfg.yaml", "--dry-run"]
    refused(hpc, project, words, 3, "cfg.yaml:7: sweep.model.init_args.lr is ", fix)


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("model.init_args.lr: 0.1, 0.01", "{model.init_args.lr: [0.1, 0.01]}"),
        ("seed: 1, 2, 3, model.init_args.lr: [0.1]", "{seed: [1, 2, 3]}"),
        ("model: {init_args: {lr: 0.1, 2}}", "{lr: [0.1, 2]}"),
        ("model.init_args.opt: adam, sgd", "{model.init_args.opt: [adam, sgd]}"),
        ("seed: range(1, 3)", '{seed: "range(1, 3)"}'),
    ],
)
def test_values_without_brackets_in_the_braces_of_a_sweep_are_told_to_have_them(
    hpc, project: Path, written: str, fix: str
) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}sweep: {{{written}}}\n")
    message = "and a comma ends a value in braces"
    refused(hpc, project, ["submit", "cfg.yaml", "--dry-run"], 3, message, fix)
    typed = ["submit", "cfg.yaml", "--dry-run", f"sweep={{{written}}}"]
    (project / "cfg.yaml").write_text(CONFIG)
    refused(hpc, project, typed, 3, message, fix)


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("lr: [0.1, 0.01]", "write sweep: {model.init_args.lr: [0.1, 0.01]}"),
        ("learning_rate: [0.1, 0.01]", "write sweep: {model.init_args.lr: [0.1, 0.01]}"),
        ("epochs: [1, 2]", "write sweep: {trainer.max_epochs: [1, 2]}"),
        ("max_epochs: range(3)", "write sweep: {trainer.max_epochs: range(3)}"),
        (f"lr: {[*range(60)]}", "write sweep: {model.init_args.lr: [...]}"),
        ("gpus: [1, 2]", "share slurm.gpus_per_node: submit it once for each value"),
    ],
)
def test_a_key_of_the_files_sweep_is_told_as_a_sweep_has_it(
    hpc, project: Path, written: str, fix: str
) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}sweep: {{{written}}}\n")
    words = ["submit", "cfg.yaml", "--dry-run"]
    refused(hpc, project, words, 3, "cfg.yaml:7: " + written.partition(":")[0], fix)


LR = "model.init_args.lr: [0.1, 0.01]"


@pytest.mark.parametrize(
    ("written", "said", "fix"),
    [
        (
            "lr: [0.1, 0.01], epochs: [1, 2]",
            "lr is no key of hpc-train, and epochs is none",
            f"write sweep: {{{LR}, trainer.max_epochs: [1, 2]}}",
        ),
        (
            "seed: [1, 2], lr: [0.1, 0.01], opt: [a, b], max_epochs: [1, 2]",
            "lr is no key of hpc-train, and opt, max_epochs are none",
            (
                f"write sweep: {{seed: [1, 2], {LR}, model.init_args.opt: [a, b],"
                " trainer.max_epochs: [1, 2]}"
            ),
        ),
        (
            f"{LR}, epochs: [1, 2]",
            "epochs is no key of hpc-train",
            f"write sweep: {{{LR}, trainer.max_epochs: [1, 2]}}",
        ),
    ],
)
def test_all_keys_of_the_files_sweep_are_told_as_one_section(
    hpc, project: Path, written: str, said: str, fix: str
) -> None:
    (project / "nets.py").write_text(NETS.replace("lr: float = 0.1", "lr: float = 0.1, opt='a'"))
    (project / "cfg.yaml").write_text(f"{CONFIG}sweep: {{{written}}}\n")
    words = ["submit", "cfg.yaml", "--dry-run"]
    refused(hpc, project, words, 3, f"cfg.yaml:7: {said}", fix)
    section = fix.removeprefix("write ")
    (project / "cfg.yaml").write_text(f"{CONFIG}{section}\n")
    assert hpc(*words).code == 0


@pytest.mark.parametrize(
    ("key", "numbers"),
    [
        ("model.init_args.lr", "[0.1, 0.01]"),
        ("trainer.max_epochs", "[1, 2, 3]"),
        ("seed", "[1, 2]"),
    ],
)
def test_numbers_in_the_place_of_one_are_told_to_be_a_sweep(
    hpc, project: Path, key: str, numbers: str
) -> None:
    typed = numbers.replace(" ", "")
    words = ["submit", "cfg.yaml", "--dry-run", f"{key}={typed}"]
    sweep = f"several values: --sweep {key}={typed[1:-1]}"
    refused(hpc, project, words, 3, f"{key} is {numbers}", sweep)
    for other in ("[1]", "[1,1]", "[]", "[a,b]"):
        assert "sweep" not in hpc(*words[:3], f"{key}={other}").err
    (project / "base.yaml").write_text(CONFIG)
    above, _, name = key.rpartition(".")
    text = f"{name}: {numbers}"
    for word in reversed(above.split(".") if above else []):
        text = f"{word}: {{{text}}}"
    (project / "cfg.yaml").write_text(f"defaults: [base]\n{text}\n")
    sweep = f"several values: sweep: {{{key}: {numbers}}}"
    refused(hpc, project, words[:3], 3, f"{key} is {numbers}", sweep)


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("seed=1,2;trainer.max_epochs=1,2", "--sweep seed=1,2 --sweep trainer.max_epochs=1,2"),
        ("seed=1,2 trainer.max_epochs=1", "--sweep seed=1,2 --sweep trainer.max_epochs=1"),
        ("seed=range(2), trainer.max_epochs=1", "'seed=range(2)' --sweep trainer.max_epochs=1"),
        ("seed=[1,2];trainer.max_epochs=1", "'seed=[1,2]' --sweep trainer.max_epochs=1"),
        ("a=1;b=2; c=3", "--sweep a=1 --sweep b=2 --sweep c=3"),
    ],
)
def test_several_keys_in_one_word_are_told_to_be_an_option_each(
    hpc, project: Path, typed: str, options: str
) -> None:
    words = ["submit", "cfg.yaml", "--dry-run", "--sweep", typed]
    refused(hpc, project, words, 3, "has several keys in one word", options)


def test_a_value_that_has_an_equals_sign_is_no_key(hpc, project: Path) -> None:
    (project / "train.py").write_text("import sys\nprint(sys.argv)\n")
    for values in ("x=1,y=2", "'a;b=1','a;b=2'", "x=1 y=2,x=2 y=3"):
        words = ["submit", "train.py", "--dry-run", "--sweep", f"more={values}", "--gpus", "2"]
        assert hpc(*words, "--", "{more}").code == 0


def test_a_key_of_the_files_sweep_that_is_typed_is_told(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}sweep: {{model: {{init_args: {{lr: [1, 2]}}}}}}\n")
    words = ["submit", "cfg.yaml", "--dry-run"]
    message = "model.init_args.lr=3 and sweep.model.init_args.lr (cfg.yaml:7) are both there"
    refused(hpc, project, [*words, "model.init_args.lr=3"], 3, message, "sweep={} for all")
    assert hpc(*words, "model.init_args.lr=3", "sweep={}").code == 0
    assert hpc(*words, "model.init_args.width=5").code == 0


@pytest.mark.parametrize(
    ("sweep", "point", "message"),
    [
        ("model.init_args.lr=0.1,abc", "point 1 of the sweep (model.init_args.lr=abc)", "takes fl"),
        ("data.init_args.batch_size=8,4,0", "point 2 of the sweep (data.init_args.b", "is 0"),
        ("model.init_args.width=8,9", "point 1 of the sweep", "refuses: no multiple of 8"),
    ],
)
def test_each_point_of_a_sweep_is_held_against_the_classes(
    hpc, project: Path, sweep: str, point: str, message: str
) -> None:
    body = "\n        if width % 8: raise ValueError('no multiple of 8')\n"
    nets = NETS.replace("width: int, lr: float = 0.1): ...", f"width: int, lr: float = 0.1):{body}")
    steps = "    def training_step(self, b): ...\n    def configure_optimizers(self): ...\n"
    nets = nets.replace("class Abstract", f"        super().__init__()\n{steps}class Abstract")
    (project / "nets.py").write_text(nets)
    words = ["submit", "cfg.yaml", "--dry-run", "model.init_args.width=16", "--sweep", sweep]
    words = [*(word for word in words[:-1] if not sweep.startswith(word.split("=")[0])), sweep]
    said = hpc(*words)
    assert said.code == 3, said
    error, hint = said.err.splitlines()
    assert error.startswith(f"error: {point}")
    assert message in error
    assert hint
    few = sweep.rpartition(",")[0]
    assert hpc(*words[:-1], f"{few},{'24' if 'width' in sweep else '16'}").code == 0


@pytest.mark.parametrize(
    ("arguments", "unfilled"),
    [
        ("--lr {lr}", "{lr}"),
        ("--lr={lr}", "--lr={lr}"),
        ("lr={lr}", "lr={lr}"),
        ("{lr}", ""),
        ("--model.weight-decay {weight_decay}", "{weight_decay}"),
        ("--filename {epoch}", ""),
        ("--format=%{lr}", ""),
        ("--lr 0.1", ""),
    ],
)
def test_the_place_of_a_value_that_no_sweep_gives_is_refused(
    hpc, project: Path, arguments: str, unfilled: str
) -> None:
    (project / "train.py").write_text("import sys\nprint(sys.argv)\n")
    words = ["submit", "train.py", "--dry-run", "--gpus", "2", "--", *arguments.split()]
    if not unfilled:
        assert hpc(*words).code == 0
        return
    name = unfilled.partition("{")[2].rstrip("}")
    message, fix = f"is {unfilled}, and no sweep fills it", f"write --sweep {name}=A,B, or"
    refused(hpc, project, words, 3, message, fix)
    sweep = ["--sweep", f"{name}=1,2"]
    assert hpc(*words[:3], *sweep, *words[3:]).code == 0
    other = ["--sweep", "momentum=1,2"]
    more = ["--momentum", "{momentum}"]
    refused(hpc, project, [*words[:3], *other, *words[3:], *more], 3, message, fix)
