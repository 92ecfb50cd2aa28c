"""Callbacks that keep the lowest value of a metric of which the highest is the best."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.config.load import LoadedConfig
from hpc_train.config.specs import INIT_ARGS, callbacks_of, is_object, read_object

_CALLBACKS = re.compile(
    r"(?:pytorch_lightning|lightning(?:\.pytorch)?)\.(?:\w+\.)*(ModelCheckpoint|EarlyStopping)"
)
# Names by their words. Of what is not known, or named by both kinds, nothing is said.
_BEST_IS_HIGHEST = re.compile(
    r"acc|accuracy|f1|auc|auroc|precision|recall|m?iou|jaccard|dice|map(?:50)?|bleu\d?|r2|score"
    r"|f1score|psnr|ssim"
)
_SAY_WHICH = re.compile(r"step|epoch|macro|micro|weighted|mean|avg|top\d+|dataloader|idx|\d+")
_BEST_IS_LOWEST = re.compile(
    r".*loss|.*error|err|perplexity|ppl|wer|cer|mae|mse|rmse|nll|[bc]?ce|.*distance|fid|brier"
    r"|crps|lpips|neg|negative|minus|inverse|anomaly|energy|penalty|time"
)


def mode_notes(loaded: LoadedConfig) -> Iterator[str]:
    """A line for each ModelCheckpoint and EarlyStopping whose unwritten `mode` is the wrong one.

    Both have min as the default.
    """
    for key, spec in callbacks_of(loaded.config.trainer):
        if not is_object(spec):
            continue
        class_path, arguments = read_object(spec, key, loaded.origins)
        monitor = arguments.get("monitor")
        if not _CALLBACKS.fullmatch(class_path) or "mode" in arguments:
            continue
        if isinstance(monitor, str) and wants_the_highest(monitor):
            full = f"{key}.{INIT_ARGS}.monitor"
            said = f"{full} is {monitor} and mode is min, its default: the lowest counts as best"
            yield f"{loaded.origins.prefix(full)}{said}; write mode: max beside it"


def wants_the_highest(monitor: str) -> bool:
    """Whether the highest of a metric is the best, by its name."""
    words = [it for it in re.split(r"[\W_]+", monitor.lower()) if it]
    if any(map(_BEST_IS_LOWEST.fullmatch, words)):
        return False
    while len(words) > 1 and _SAY_WHICH.fullmatch(words[-1]):
        words.pop()
    return bool(words) and _BEST_IS_HIGHEST.fullmatch(words[-1]) is not None
