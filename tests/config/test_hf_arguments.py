"""Options of a script's HfArgumentParser, and packages that they need: told before the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import write

TRAINING_ARGUMENTS = """\
from dataclasses import dataclass, field
@dataclass
class TrainingArguments:
    output_dir: str | None = None
    eval_strategy: str = "no"
    use_cpu: bool = False
    per_device_train_batch_size: int = 8
    save_safetensors: bool = True
    deepspeed: str | None = None
    report_to: list[str] | None = None
    optim: str = "adamw_torch"
    do_train: bool = False
"""
SEQ2SEQ = """\
from dataclasses import dataclass
from .training_args import TrainingArguments
@dataclass
class Seq2SeqTrainingArguments(TrainingArguments):
    predict_with_generate: bool = False
"""
SCRIPT = """\
from dataclasses import dataclass, field
import transformers
from transformers import HfArgumentParser, Trainer, TrainingArguments
from own import DataArguments
@dataclass
class ModelArguments:
    model_name: str = field(default="bert")
def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    Trainer(args=training_args).train()
if __name__ == "__main__":
    main()
"""
OWN = "import dataclasses\n@dataclasses.dataclass\nclass DataArguments:\n    train_file: str = ''\n"
LEAVE_OUT = "leave it out: the installed transformers, and the script, have no such option"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a package of that name lies beside the script."""
    write(tmp_path, "", "transformers/__init__.py")
    write(tmp_path, TRAINING_ARGUMENTS, "transformers/training_args.py")
    write(tmp_path, SEQ2SEQ, "transformers/training_args_seq2seq.py")
    names = "from .training_args import TrainingArguments\nTrainer = HfArgumentParser = object\n"
    write(tmp_path, f"{names}__getattr__ = None\n", "transformers/__init__.py")
    write(tmp_path, OWN, "own.py")
    monkeypatch.chdir(tmp_path)


def refused(text: str, line: str, **keywords: str) -> tuple[str, str] | None:
    write(Path(), text, "train.py")
    try:
        api.load("train.py", arguments=line.split(), **keywords)
    except ConfigError as error:
        return error.message.partition(": train.py ")[2], error.hint
    return None


@pytest.mark.parametrize(
    ("line", "option", "fix"),
    [
        ("--evaluation_strategy epoch", "--evaluation_strategy", "--eval_strategy"),
        ("--evaluation-strategy=epoch", "--evaluation-strategy", "--eval_strategy"),
        ("--train_file a --no_cuda", "--no_cuda", "--use_cpu"),
    ],
)
def test_a_renamed_option_is_refused_with_its_name_of_today(
    line: str, option: str, fix: str
) -> None:
    said = f"refuses: unrecognized arguments: {option}"
    assert refused(SCRIPT, line) == (said, f"write {fix}, as transformers calls it now")


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("--trane_file a", "did you mean '--train_file'?"),
        ("--quantize 4", LEAVE_OUT),
        ("--nodes 2", "--nodes is hpc-train's: write it in front of --"),
    ],
)
def test_an_unknown_option_is_refused_with_what_is_meant(line: str, fix: str) -> None:
    said = f"refuses: unrecognized arguments: {line.split()[0]}"
    assert refused(SCRIPT, line) == (said, fix)


@pytest.mark.parametrize(
    "line",
    [
        "--output_dir out --eval-strategy epoch --model_name a --train_file b",
        "--eval_strat epoch --use_cpu --no_save_safetensors --no-save-safetensors",
        "args.json",
        "--help --foo",
        "",
    ],
)
def test_its_own_options_are_taken(line: str) -> None:
    assert refused(SCRIPT, line) is None


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT.replace("classes()", "classes(return_remaining_strings=True)"),
        SCRIPT.replace("    Trainer(", "    parser.add_argument('--foo')\n    Trainer("),
        SCRIPT.replace('default="bert"', 'metadata={"aliases": ["--foo"]}'),
        SCRIPT.replace("(ModelArguments, ", "(made(), "),
        SCRIPT.replace("(ModelArguments, ", "(transformers.OtherArguments, "),
        SCRIPT.replace("class ModelArguments", "class ModelArguments(transformers.Base)"),
        SCRIPT.replace("def main():", "import sys\nsys.argv.remove('--foo')\ndef main():"),
        SCRIPT.replace("HfArgumentParser", "OwnParser"),
    ],
)
def test_where_there_may_be_other_options_nothing_is_said(text: str) -> None:
    assert refused(text, "--foo 1") is None


def test_fields_of_bases_are_options(tmp_path: Path) -> None:
    more = "import Trainer, Seq2SeqTrainingArguments, "
    text = SCRIPT.replace("import HfArg", f"{more}HfArg").replace("Trainer, Trai", "Trai")
    text = text.replace("DataArguments, T", "DataArguments, Seq2SeqT")
    init = tmp_path / "transformers/__init__.py"
    more = "from .training_args_seq2seq import Seq2SeqTrainingArguments"
    init.write_text(f"{more}\n{init.read_text()}")
    assert refused(text, "--predict_with_generate --eval_strategy no") is None
    assert refused(text, "--foo") == ("refuses: unrecognized arguments: --foo", LEAVE_OUT)


@pytest.mark.parametrize(
    ("line", "given", "package"),
    [
        ("--deepspeed ds.json", "--deepspeed ds.json", "deepspeed"),
        ("--deepspeed=ds.json", "--deepspeed ds.json", "deepspeed"),
        ("--report_to tensorboard wandb", "--report_to wandb", "wandb"),
        ("--optim adamw_bnb_8bit", "--optim adamw_bnb_8bit", "bitsandbytes"),
        ("--optim paged_adamw_8bit", "--optim paged_adamw_8bit", "bitsandbytes"),
    ],
)
def test_a_package_that_an_option_needs_and_that_is_not_there_is_refused(
    tmp_path: Path, line: str, given: str, package: str
) -> None:
    said = f"is given {given}, and {package} is not installed in this Python"
    assert refused(SCRIPT, line) == (said, f"pip install {package}")
    write(tmp_path, "", f"{package}.py")
    assert refused(SCRIPT, line) is None


@pytest.mark.parametrize(
    "line", ["--report_to none", "--report_to tensorboard", "--optim adamw_torch", "--deepspeed="]
)
def test_an_option_that_needs_none_is_taken(line: str) -> None:
    assert refused(SCRIPT, line) is None


def test_an_optimizer_is_not_made_where_nothing_is_trained() -> None:
    text = SCRIPT.replace("    Trainer(", "    if training_args.do_train: Trainer(")
    assert refused(text, "--optim adamw_bnb_8bit") is None
    assert refused(text, "--do_train --optim adamw_bnb_8bit") is not None


def test_all_options_and_packages_are_told_in_one_go() -> None:
    line = "--evaluation_strategy epoch --no_cuda --trane_file a --report_to wandb mlflow"
    found = refused(SCRIPT, f"{line} --evaluation_strategy no --optim adamw_bnb_8bit")
    said = "refuses: unrecognized arguments: --evaluation_strategy, --no_cuda, --trane_file"
    here = "is not installed in this Python"
    needs = [("report_to wandb", "wandb"), ("report_to mlflow", "mlflow")]
    needs += [("optim adamw_bnb_8bit", "bitsandbytes")]
    assert found == (
        "; ".join([said, *(f"is given --{given}, and {it} {here}" for given, it in needs)]),
        (
            "--evaluation_strategy: write --eval_strategy, as transformers calls it now;"
            " --no_cuda: write --use_cpu, as transformers calls it now;"
            " --trane_file: did you mean '--train_file'?; pip install wandb mlflow bitsandbytes"
        ),
    )


def test_what_is_said_of_several_alike_is_said_once() -> None:
    said = "refuses: unrecognized arguments: --quantize, --bits"
    assert refused(SCRIPT, "--quantize 4 --bits 8") == (said, LEAVE_OUT)
    found = refused(SCRIPT, "--optim adamw_bnb_8bit --optim paged_adamw_8bit")
    assert found == (
        (
            "is given --optim adamw_bnb_8bit and --optim paged_adamw_8bit, and bitsandbytes is not"
            " installed in this Python"
        ),
        "pip install bitsandbytes",
    )
