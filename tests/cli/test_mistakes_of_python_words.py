"""Python's words in a config: YAML reads None, (3, 3) and 1/255 as texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import NETS, project, refused

__all__ = ["project"]

WORDS = """
class Words(LightningModule):
    def __init__(
        self, width=16, drop=None, kernel=(3, 3), sizes=[1, 2], table={}, flag=True, mode="none",
        dtype=torch.float32, layers: int | None = None, root: Optional[str] = None,
        name: str = None, rate: float = 0.5, pair: "tuple[int, int]" = (1, 1), title: str = "x",
        reduction: Literal["none", "sum"] = "sum", many: float | list[float] | None = None,
    ): ...
class Compares(LightningModule):
    def __init__(self, norm=None, act=None):
        super().__init__()
        self.is_plain = norm == "none"
        if act not in (None, "None"):
            self.act = act
    def training_step(self, batch): return batch.sum()
    def configure_optimizers(self): return len(self)
"""


@pytest.fixture
def words(project: Path) -> Path:
    (project / "nets.py").write_text(NETS + WORDS)
    config = (project / "cfg.yaml").read_text()
    (project / "cfg.yaml").write_text(
        config.replace("nets.Net, init_args: {width: 3}", "nets.Words")
    )
    return project


@pytest.mark.parametrize(
    ("argument", "value", "fix"),
    [
        ("drop", "None", "write null"),
        ("width", "None", "write a number, or null where the class takes None"),
        ("width", "none", "write a number, or null where"),
        ("flag", "None", "write null"),
        ("kernel", "nil", "write null"),
        ("dtype", "None", "write null"),
        ("layers", "None", "write null"),
        ("layers", "nil", "write null"),
        ("root", "None", "write null"),
        ("name", "None", "write null"),
        ("rate", "None", "write a number, or null where"),
        ("many", "none", "write null"),
    ],
)
def test_none_is_told_as_null_where_the_class_has_no_text(
    hpc, words: Path, argument: str, value: str, fix: str
) -> None:
    key = f"model.init_args.{argument}"
    message = f"{key} is the text '{value}' (YAML's None is null), and nets.Words "
    typed = ["submit", "cfg.yaml", f"{key}={value}"]
    refused(hpc, words, typed, 3, f"command line: {message}", f"fix: {fix}")
    config = (words / "cfg.yaml").read_text()
    written = config.replace("nets.Words", f"nets.Words, init_args: {{{argument}: {value}}}")
    (words / "cfg.yaml").write_text(written)
    refused(hpc, words, ["submit", "cfg.yaml"], 3, f"cfg.yaml:3: {message}", f"fix: {fix}")
    assert hpc("submit", "cfg.yaml", "--dry-run", f"{key}=null").code == 0  # as it is told


@pytest.mark.parametrize(
    ("argument", "value", "meant"),
    [
        ("kernel", "(3, 3)", "[3, 3]"),
        ("sizes", "(3, (4, None))", "[3, [4, null]]"),
        ("sizes", "list((1, 2))", "[1, 2]"),
        ("sizes", "'[3, 3]'", "[3, 3]"),
        ("pair", "(3, 3)", "[3, 3]"),
        ("table", "dict(a=1, b=[1, True])", "{a: 1, b: [1, true]}"),
        ("width", "1/256", "a number: 0.00390625"),
        ("rate", "2**-3", "a number: 0.125"),
        ("rate", "10^-3", "a number: 0.001"),
        ("width", "3*10^-4", "a number: 0.0003"),
        ("width", "np.inf", "a number: .inf"),
        ("rate", "-float('inf')", "a number: -.inf"),
    ],
)
def test_an_expression_of_pythons_is_told_as_yaml(
    hpc, words: Path, argument: str, value: str, meant: str
) -> None:
    key = f"model.init_args.{argument}"
    typed = ["submit", "cfg.yaml", f"{key}={value}"]
    message = f"{key} is the text {value.strip(chr(39))!r}, and nets.Words "
    refused(hpc, words, typed, 3, message, f"fix: write {meant}")
    typed[-1] = f"{key}={meant.rpartition(': ')[2] if 'number' in meant else meant}"
    assert hpc(*typed, "--dry-run").code == 0


@pytest.mark.parametrize(
    ("model", "argument", "value"),
    [
        ("Words", "mode", "none"),
        ("Words", "reduction", "none"),
        ("Words", "root", "none"),
        ("Words", "title", "None"),
        ("Words", "title", "(3, 3)"),
        ("Words", "kernel", "same"),
        ("Words", "sizes", "[None, few, many]"),
        ("Compares", "norm", "none"),
        ("Compares", "act", "None"),
    ],
)
def test_a_word_that_may_be_meant_reaches_the_class(
    hpc, words: Path, model: str, argument: str, value: str
) -> None:
    named = [f"model.class_path=nets.{model}", f"model.init_args.{argument}={value}"]
    said = hpc("submit", "cfg.yaml", "--dry-run", *named)
    assert said.code == 0, said.err
    assert f"is the text '{value}', and" not in said.err


@pytest.mark.parametrize(
    ("argument", "value", "note"),
    [
        ("drop", "none", "drop is the text 'none' (YAML's None is null), and nets.Words has None"),
        ("drop", "(3, 3)", "has None there by default: write [3, 3], unless a text is meant"),
        ("dtype", "torch.float16", "has torch.float32 there by default: no Python is worked out"),
    ],
)
def test_a_word_that_is_not_surely_a_mistake_is_a_note(
    hpc, words: Path, argument: str, value: str, note: str
) -> None:
    said = hpc("submit", "cfg.yaml", "--dry-run", f"model.init_args.{argument}={value}")
    assert said.code == 0
    assert f"note: command line: model.init_args.{argument} is the text" in said.err
    assert note in said.err


def test_none_among_numbers_and_in_a_sweep_is_told(hpc, words: Path) -> None:
    key = "model.init_args.sizes"
    typed = ["submit", "cfg.yaml", f"{key}=[None, 3]"]
    refused(hpc, words, typed, 3, f"{key} is ['None', 3], with the text 'None'", "write null for")
    swept = ["submit", "cfg.yaml", "--sweep", "model.init_args.width=8,None"]
    refused(hpc, words, swept, 3, "model.init_args.width is the text 'None'", "write a number, or")


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("trainer.limit_val_batches", "write null"),
        ("trainer.callbacks", "write null"),
        ("trainer.profiler", "write null"),
        ("micro_batch_size", "write null"),
        ("watchdog.step_timeout_s", "write null"),
        ("slurm.partition", "write null"),
        ("name", "leave it out, or write a value"),
    ],
)
def test_none_in_a_key_of_hpc_train_is_told(hpc, project: Path, key: str, fix: str) -> None:
    message = f"command line: {key} is the text 'None' (YAML's None is null)"
    refused(hpc, project, ["submit", "cfg.yaml", f"{key}=None"], 3, message, f"fix: {fix}")
    if fix == "write null":
        assert hpc("submit", "cfg.yaml", "--dry-run", f"{key}=null").code == 0
