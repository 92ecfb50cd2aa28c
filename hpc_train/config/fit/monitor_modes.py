"""Callbacks that take the worst value of a metric for the best: `mode` says which it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
# Not where another word may turn it round: a loss of an attack or of two players, a gain.
_SURELY_LOWEST = re.compile(r"loss|error|perplexity|ppl|mae|mse|rmse|mape|smape|nll|[cw]er")
_TURNED = re.compile(
    r"neg(?:ative)?|minus|inv(?:erse)?|adv(?:ersarial)?|attack|d|g|gan|disc(?:riminator)?|critic"
    r"|reward|policy|actor|entropy|elbo|profit|win|gain|max|skill|reduction|improve(?:ment|d)?"
)


@dataclass(frozen=True)
class _Watching:
    """A ModelCheckpoint or an EarlyStopping of a config, and what it watches."""

    name: str
    key: str  # of its arguments
    monitor: str
    mode: str
    is_written: bool

    def wrong(self) -> str:
        """What its mode does to a metric of which the other is best by its name; else empty."""
        if self.mode == "min" and wants_the_highest(self.monitor):
            best, does = "lowest", "stops while it rises" if self._stops else "keeps the worst"
        elif self.mode == "max" and wants_the_lowest(self.monitor):
            best, does = "highest", "stops while it falls" if self._stops else "keeps the worst"
        else:
            return ""
        does = f", and {self.name} {does}" if self.is_written else ""
        return f"the {best} counts as best{does}"

    @property
    def _stops(self) -> bool:
        return self.name == "EarlyStopping"


def mode_notes(loaded: LoadedConfig) -> Iterator[str]:
    """A line for each ModelCheckpoint and EarlyStopping whose `mode` is the wrong one.

    Both have min as the default. Of a name that does not tell which is best, a line where an
    EarlyStopping and another one have different modes.
    """
    kept = dict[str, _Watching]()
    for it in _watching(loaded):
        other = kept.setdefault(it.monitor, it)
        if wrong := it.wrong():
            yield _said_of(it, wrong, loaded)
        elif other.mode != it.mode and "EarlyStopping" in (it.name, other.name):
            yield from () if other.wrong() else (_said_of_two(other, it, loaded),)


def _said_of(it: _Watching, wrong: str, loaded: LoadedConfig) -> str:
    if it.is_written:
        full, other = f"{it.key}.mode", "min" if it.mode == "max" else "max"
        said = f"{full} is {it.mode} and monitor is {it.monitor}: {wrong}; write mode: {other}"
    else:
        full = f"{it.key}.monitor"
        said = f"{full} is {it.monitor} and mode is min, its default: {wrong}"
        said += "; write mode: max beside it"
    return f"{loaded.origins.prefix(full)}{said}"


def _said_of_two(first: _Watching, second: _Watching, loaded: LoadedConfig) -> str:
    def of(it: _Watching) -> str:
        where = f"{it.key}.{'mode' if it.is_written else 'monitor'}"
        default = "" if it.is_written else ", its default"
        return f"{loaded.origins.prefix(where)}{where}: {it.name} has mode {it.mode}{default}"

    said = f"{of(second)} for {second.monitor}, and {of(first)}"
    return f"{said}: one of them takes the worst for the best; write the same mode at both"


def _watching(loaded: LoadedConfig) -> Iterator[_Watching]:
    for key, spec in callbacks_of(loaded.config.trainer):
        if not is_object(spec):
            continue
        class_path, arguments = read_object(spec, key, loaded.origins)
        monitor, mode = arguments.get("monitor"), arguments.get("mode", "min")
        if (found := _CALLBACKS.fullmatch(class_path)) and isinstance(monitor, str):
            given = f"{key}.{INIT_ARGS}"
            yield _Watching(found[1], given, monitor, str(mode), "mode" in arguments)


def wants_the_lowest(monitor: str) -> bool:
    """Whether the lowest of a metric is surely the best, by its name."""
    words = _words(monitor)
    if any(map(_TURNED.fullmatch, words)):
        return False
    return bool(words) and _SURELY_LOWEST.fullmatch(words[-1]) is not None


def wants_the_highest(monitor: str) -> bool:
    """Whether the highest of a metric is the best, by its name."""
    words = _words(monitor)
    if any(map(_BEST_IS_LOWEST.fullmatch, words)):
        return False
    return bool(words) and _BEST_IS_HIGHEST.fullmatch(words[-1]) is not None


def _words(monitor: str) -> list[str]:
    """Those of a name, without what says at its end of which step or class it is."""
    words = [it for it in re.split(r"[\W_]+", monitor.lower()) if it]
    while len(words) > 1 and _SAY_WHICH.fullmatch(words[-1]):
        words.pop()
    return words
