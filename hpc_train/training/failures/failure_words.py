"""What an exception says in one line, and what to do about it where its words do not say."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import FrameType

from hpc_train.config.fit.data_paths import keys_of_path
from hpc_train.config.fit.refused_callbacks import is_lightnings
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.scripts.absent_checkpoints import INSTEAD, absent_checkpoint
from hpc_train.config.words import did_you_mean
from hpc_train.plan.plan import Batch
from hpc_train.plan.states import SUBMIT_AGAIN
from hpc_train.training.failures.absent_file import absent_file
from hpc_train.training.failures.absent_folder import absent_folder
from hpc_train.training.failures.absent_interface import absent_interface
from hpc_train.training.failures.absent_package import absent_package
from hpc_train.training.failures.asked_of_gpu import asked_of_gpu
from hpc_train.training.failures.bare_assertions import asserted, unasserted
from hpc_train.training.failures.called_classes import uncalled_class
from hpc_train.training.failures.called_hooks import called_hook
from hpc_train.training.failures.changed_in_place import changed_in_place
from hpc_train.training.failures.class_numbers import class_numbers
from hpc_train.training.failures.collate_errors import wrong_collate
from hpc_train.training.failures.dead_worker import dead_worker
from hpc_train.training.failures.empty_data import empty_data
from hpc_train.training.failures.failing_frame import of_frame
from hpc_train.training.failures.few_gpus import few_gpus
from hpc_train.training.failures.given_texts import fix_of_text
from hpc_train.training.failures.gone_from_python import gone_from_python
from hpc_train.training.failures.kept_graph import kept_graph
from hpc_train.training.failures.kept_lists import kept_list
from hpc_train.training.failures.lengthless_set import lengthless_set
from hpc_train.training.failures.list_for_tensor import list_for_tensor
from hpc_train.training.failures.listed_sets import listed_sets
from hpc_train.training.failures.loaded_checkpoint import loaded_checkpoint
from hpc_train.training.failures.loaded_state import loaded_state
from hpc_train.training.failures.local_objects import local_object
from hpc_train.training.failures.logged_in_predict import logged_in_predict
from hpc_train.training.failures.lost_gradient import lost_gradient
from hpc_train.training.failures.meant_instead import meant_instead
from hpc_train.training.failures.merged_hparams import merged_hparams
from hpc_train.training.failures.metric_classes import of_metric
from hpc_train.training.failures.near_names import near_name
from hpc_train.training.failures.numpy_of_tensor import numpy_of_tensor
from hpc_train.training.failures.other_device import other_device
from hpc_train.training.failures.sampleless_set import sampleless_set
from hpc_train.training.failures.samples_alike import how_to_make_alike
from hpc_train.training.failures.samples_differ import none_in_samples, samples_differ
from hpc_train.training.failures.saved_values import saved_values
from hpc_train.training.failures.several_elements import several_elements
from hpc_train.training.failures.skipped_batch import skipped_batch
from hpc_train.training.failures.unfit_checkpoint import FIX, unfit_checkpoint
from hpc_train.training.failures.unknown_argument import meant_argument
from hpc_train.training.failures.unread_file import unread_file
from hpc_train.training.failures.unset_variables import unset_variable
from hpc_train.training.failures.untransformed_sets import untransformed
from hpc_train.training.failures.unused_parameters import fix_of_unused
from hpc_train.training.failures.users_method import method_that_returned
from hpc_train.training.failures.whole_batch import of_batch
from hpc_train.training.failures.whole_given import whole_given
from hpc_train.training.failures.whole_predicted import whole_predicted

_MOST_SAID = 400  # characters of a message of several lines
_MOST_READ = 20_000
_LONG = 80  # characters of a tensor on one line that are left as they are
# A tensor or an array as it prints itself, and rows of numbers without a name before them.
_PRINTED = re.compile(r"\b(tensor|Parameter containing:\s*tensor|array)\((?:[^()]|\([^()]*\))*\)")
_ROWS = re.compile(r"\[[\s\d.,+\-eEinfajx\[\]]*\]")
_CAUGHT = re.compile(r"Caught (\w+) in ")  # torch._utils.ExceptionWrapper
_UNFINISHED = re.compile(r"[:,(\[{]$")
# What to do about messages of torch's, Lightning's and Python's that do not say it.
_FIXES = (
    (r"EOF when reading a line", "nobody answers in a job: take it as an argument"),
    (
        r"Tried to step \d+ times\. The specified number of total steps",
        'with "interval": "step" write total_steps=self.trainer.estimated_stepping_batches',
    ),
    (
        r"Expected positive integer total_steps, but got -1",
        "max_steps is -1, not given: write total_steps=self.trainer.estimated_stepping_batches",
    ),
    (
        r"persistent_workers option needs num_workers > 0",
        "leave persistent_workers=True out, or give num_workers of 1 or more",
    ),
    (
        r'ckpt_path="best"\)` is set but `ModelCheckpoint` is not configured',
        "leave ckpt_path out, which takes the model as it is given, or name a file",
    ),
    (
        r"DistributedDataParallel device_ids and output_device arguments only work with",
        "leave device_ids and output_device out: it takes the device that the model is on",
    ),
    (
        r"type object 'Trainer' has no attribute '(?:add|from)_argparse_args'",
        'write parser.add_argument("--max_epochs", type=int), Trainer(max_epochs=args.max_epochs)',
    ),
    (r"before Module.__init__\(\) call", "call super().__init__() first"),
    (
        r"Expected a 'cpu' device type for generator but found 'cuda",
        "a DataLoader, a sampler and random_split draw on the CPU: write torch.Generator() for it",
    ),
    (
        r"Expected a 'cuda(?::\d+)?' device type for generator but found 'cpu'",
        'what draws on the GPU takes a generator of it: write torch.Generator("cuda")',
    ),
    (
        r"cannot pin 'torch\.cuda\.\w+' only dense CPU tensors can be pinned",
        "the data set gives tensors of the GPU: leave .cuda() and .to(...) out of it",
    ),
    (
        r"BCELoss are unsafe to autocast",
        "write F.binary_cross_entropy_with_logits or nn.BCEWithLogitsLoss(), without a sigmoid",
    ),
    (
        r"'NoneType' object has no attribute '(?:best_model_|best_k_models|last_model_path)",
        "add {class_path: pytorch_lightning.callbacks.ModelCheckpoint} to trainer.callbacks",
    ),
    (
        r"[Cc]an't pickle|cannot pickle|Can't get local object",
        "no lambda and no function in a function can go into a checkpoint or to data workers",
    ),
)
# Lightning's advice for its own Trainer, and torch's, which the fix gives for a config, and torch's
# signatures of all that a function takes.
_ADVICE = re.compile(
    r"(?<=\)), but expected one of: .*|"
    r"\. (?:If this is intentional, you must enable the detection of unused"
    r"|Hint: enable anomaly detection to find).*"
)
# torch's long advice of weights_only=False, which helps for some of the files that it is said of.
_WEIGHTS_ONLY = re.compile(r"(?<=Weights only load failed)\. .*")
_ONE_VALUE = re.compile(r"Expected more than 1 value per channel when training")
_SAVED_HPARAMS = "the arguments of __init__ once it has called self.save_hyperparameters()"
_NO_OPTIMIZER = "KeyError: 'optimizer'"
_NO_ATTRIBUTE = re.compile(r"'(?P<kind>\w+)' object has no attribute '(?P<name>\w+)'")


def fix_of(
    error: BaseException, batch: Batch | None = None, texts: Mapping[str, str] | None = None
) -> str:
    """What to do about it; empty where its own words say it, or nothing is known.

    Args:
        batch: What each rank of the training takes, where that is known.
        texts: Those among the arguments of its model and data, by key.
    """
    said = said_by(error)
    fixes = [of_project(fix) for pattern, fix in _FIXES if re.search(pattern, said)]
    fixes += [_of_batch_norm(batch)] if _ONE_VALUE.search(said) else []
    fixes += [
        _of_prepare_data(error),
        called_hook(error).passed or meant_argument(error),
        local_object(error).fix,
    ]
    if said == _NO_OPTIMIZER and method_that_returned(error):
        fixes.append('write return {"optimizer": opt, "lr_scheduler": s}')
    absent = absent_folder(error) or _of_checkpoint(error) or absent_file(error, said)
    of_key = _of_key(error, texts or {})
    fixes += [of_key, absent] if absent.endswith("?") else [absent, of_key]  # a question ends it
    fixes += [_of_hparams(error)]
    fixes += [FIX] if unfit_checkpoint(error) else []
    fixes += [
        fix_of_text(error, texts) or list_for_tensor(error, texts),
        loaded_checkpoint(error) or loaded_state(error),
    ]
    fixes += [empty_data(error, texts)]
    fixes += [fix_of_unused(error, of_config=batch is not None)]
    whole = whole_predicted(error).fix or whole_given(error).fix
    fixes += [unread_file(error) or of_frame(error) or whole or of_batch(error)]
    in_place = changed_in_place(error, of_config=batch is not None).fix
    fixes += [lost_gradient(error).fix or uncalled_class(error).fix or wrong_collate(error).fix]
    fixes += [in_place]
    fixes += [_of_samples(error) or sampleless_set(error).fix or lengthless_set(error).fix]
    fixes += [absent_interface(error), kept_graph(error), merged_hparams(error)]
    fixes += [skipped_batch(error).fix or listed_sets(error).fix or untransformed(error).fix]
    fixes += [gone_from_python(error) or absent_package(error)]
    fixes += [class_numbers(error) or of_metric(error) or other_device(error)]
    fixes += [few_gpus(error) or numpy_of_tensor(error)]
    fixes += [asked_of_gpu(error), logged_in_predict(error), several_elements(error).fix]
    if not any(fixes):
        meant = meant_instead(error, of_config=batch is not None) or near_name(error)
        fixes.append(meant or kept_list(error) or unasserted(error))
    return "; ".join(filter(None, fixes))


def _of_samples(error: BaseException) -> str:
    """Which data set gives samples that differ in size, or None."""
    if none := none_in_samples(error).of:
        whole = "it has to return a whole sample on every way"
        return f"{none} gave None: {whole}; one to be left out goes in a collate_fn"
    of = samples_differ(error).of
    how = how_to_make_alike(error) or "pad or crop them there, or in a collate_fn"
    return f"{of} gives samples that differ in size: {how}" if of else ""


def _of_checkpoint(error: BaseException) -> str:
    """Of the ckpt_path that a fit of the user's Trainer was given, and that is not there."""
    if not isinstance(error, FileNotFoundError):
        return ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = str(frame.f_locals.get("ckpt_path", ""))
        is_lightnings_fit = frame.f_code.co_name == "fit" and is_lightnings(
            str(frame.f_globals.get("__name__", ""))
        )
        if is_lightnings_fit and path and path in str(error):
            said = absent_checkpoint(path, Path.cwd())
            return f"{said}: {INSTEAD}" if said else ""
    return ""


def _of_key(error: BaseException, texts: Mapping[str, str]) -> str:
    """Which of the config's values a path comes from that is not there."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        return ""
    path = error.filename if isinstance(error.filename, str) else said_by(error)
    keys = keys_of_path(path, texts)
    return f"the path comes from {' or '.join(keys)}" if keys else ""


def _of_hparams(error: BaseException) -> str:
    """What self.hparams has where a name was asked of it that it has not.

    Lightning's AttributeDict raises the error itself: it is the `self` of the last frame.
    """
    found = _NO_ATTRIBUTE.search(str(error)) if isinstance(error, AttributeError) else None
    if not found or found["kind"] != "AttributeDict":
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    holder = frames[-1].f_locals.get("self") if frames else None
    names = [str(name) for name in holder] if isinstance(holder, Mapping) else []
    if not names:
        return saved_values(frames) or f"self.hparams has {_SAVED_HPARAMS}"
    near = did_you_mean(found["name"], names)
    return f"it has {', '.join(names)}{f': {near}' if near else ''}"


def said_by(error: BaseException) -> str:
    """`ValueError: text`, the text's first line; of a data worker's error, its own last line.

    Tensors and rows of numbers are left out, and a first line that stops in the middle of a
    sentence has the rest of it.
    """
    if unfit := unfit_checkpoint(error):
        return unfit
    if ended := dead_worker(error):
        return ended
    text = str(error).strip()
    if "Original Traceback (most recent call last)" in text:  # torch.utils.data's ExceptionWrapper
        return _without_module(_raised_in(text))
    if type(error).__name__ == "ProcessRaisedException":  # torch.multiprocessing.spawn's
        return _without_module(text.splitlines()[-1])
    text = _without_numbers(text).strip()
    first = text.splitlines()[0].rstrip() if text else ""
    if _stops_within(first):  # what is to be said comes below
        first = _cut(" ".join(text.split()))
    first = _WEIGHTS_ONLY.sub("", _ADVICE.sub("", first))
    name = type(error).__name__
    if unset := unset_variable(error):
        return f"{name}: {first}, {unset}"
    first = first or asserted(error)
    return f"{name}: {first}" if first else name


def _raised_in(text: str) -> str:
    """The line of a data worker's traceback that has the exception; its message may have more."""
    lines = text.splitlines()
    caught = _CAUGHT.match(text)
    is_raised = re.compile(rf"(?:\w+\.)*{caught[1] if caught else '[A-Z]'}\w*(?:: |\Z)")
    told = [line for above, line in pairwise(lines) if above[:2] == "  " and is_raised.match(line)]
    return told[-1] if told else lines[-1]


def _without_module(line: str) -> str:
    return re.sub(r"^(?:\w+\.)+(?=\w+: )", "", line)


def _without_numbers(text: str) -> str:
    """A text whose printed tensors, and lists of numbers over several lines, are cut short."""

    def shorter(found: re.Match[str]) -> str:
        whole = found[0]
        if "\n" not in whole and len(whole) <= _LONG:
            return whole
        return f"{found[1]}(...)" if found.re is _PRINTED else "[...]"

    return _ROWS.sub(shorter, _PRINTED.sub(shorter, text[:_MOST_READ]))


def _stops_within(line: str) -> bool:
    """Whether a line is no sentence yet: it ends with a colon, or in quotes, or has only values."""
    if _UNFINISHED.search(line) or line.count("`") % 2:
        return True
    return not re.search(r"[A-Za-z]", re.sub(r"\b(?:tensor|array)\(\.\.\.\)", "", line))


def _cut(text: str) -> str:
    """Its beginning, and its end, where the reason stands as a rule."""
    if len(text) <= _MOST_SAID:
        return text
    head, tail = text[: _MOST_SAID * 3 // 5], text[-_MOST_SAID * 2 // 5 :]
    return f"{head.rpartition(' ')[0] or head} ... {tail.partition(' ')[2] or tail}"


def _of_batch_norm(batch: Batch | None) -> str:
    """What gives a rank more than the one sample that batch norm cannot work with."""
    if batch is None or batch.micro_batch_size > 1:
        return "a rank had one sample: raise the batch size, use fewer ranks, or drop_last=True"
    total, ranks = batch.global_batch_size, batch.global_batch_size // batch.accumulate
    if batch.accumulate > 1:
        return "a rank takes one sample at a time: write micro_batch_size: 2"
    has = f"global_batch_size {total} gives each of {ranks} ranks one sample"
    return f"{has}: use fewer ranks, or {SUBMIT_AGAIN} global_batch_size={2 * ranks}"


def _of_prepare_data(error: BaseException) -> str:
    """Where an attribute that is missing is assigned on one rank of a node alone."""
    found = _NO_ATTRIBUTE.search(str(error))
    if found is None or not isinstance(error, AttributeError):
        return ""
    for kind in _classes_named(found["kind"], error):
        code = getattr(getattr(kind, "prepare_data", None), "__code__", None)
        if code is not None and found["name"] in code.co_names:
            one = "prepare_data runs on one rank of a node alone"
            return f"{one}: assign self.{found['name']} in setup(self, stage)"
    return ""


def _classes_named(name: str, error: AttributeError) -> list[type]:
    """Classes of that name, of the objects that the failed methods are of."""
    frames: list[FrameType] = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    owners = [error.obj, *(frame.f_locals.get("self") for frame in frames)]
    return [type(owner) for owner in owners if type(owner).__name__ == name]
