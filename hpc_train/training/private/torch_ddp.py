"""The reducer inside of DistributedDataParallel: which parameters it has, in which buckets."""

from __future__ import annotations

from typing import Any, cast
from weakref import WeakKeyDictionary

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

c10d: Any = dist  # for names that torch.distributed has and does not declare
_SAMPLE_RATE = 100  # torch's own (logger.cpp, kDDPRuntimeLoggingSampleRate)

# The reducer does not tell its parameters, and `requires_grad` may have changed since it was made.
_given: WeakKeyDictionary[DistributedDataParallel, list[nn.Parameter]] = WeakKeyDictionary()
_init_reducer = cast("Any", DistributedDataParallel)._ddp_init_helper


def _note_parameters(self: Any, parameters: list[nn.Parameter], *rest: Any) -> None:
    _given[self] = parameters
    _init_reducer(self, parameters, *rest)


cast("Any", DistributedDataParallel)._ddp_init_helper = _note_parameters


def has_buckets(ddp: Any) -> bool:
    """Whether plain buckets reduce it: not compiled autograd, nor an optimizer in the backward."""
    in_backward = any(hasattr(item, "_in_backward_optimizers") for item in ddp.parameters())
    return hasattr(ddp, "reducer") and not ddp._use_python_reducer and not in_backward


def clean_name(name: str) -> str:
    """Without the part of torch.compile's wrapper, which may come and go."""
    return name.replace("_orig_mod.", "")


def ignored_names(ddp: Any) -> set[str]:
    """Parameters that DDP was told to leave alone."""
    return set(map(clean_name, ddp.parameters_to_ignore))


def named_parameters(ddp: Any) -> dict[str, nn.Parameter]:
    """All parameters of the wrapped module."""
    return {clean_name(name): item for name, item in ddp.module.named_parameters()}


def reduced_names(ddp: Any) -> list[str]:
    """The names of the parameters in the reducer, by its own numbers."""
    names = {id(item): name for name, item in named_parameters(ddp).items()}
    given = _given.get(ddp) or ddp._build_params_for_reducer()[0]
    return [names[id(item)] for item in given]


def names_in_buckets(ddp: Any) -> list[str]:
    """The same as they lie in the buckets, once these have been rebuilt."""
    ddp._set_ddp_runtime_logging_sample_rate(1)  # else it is told in one pass of 100
    ddp.logger.set_runtime_stats_and_log()
    ddp._set_ddp_runtime_logging_sample_rate(_SAMPLE_RATE)
    told = ddp._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"]
    names = reduced_names(ddp)
    return [names[int(number)] for number in told.replace(",", " ").split()]


def is_rebuilt(ddp: Any) -> bool:
    """Whether the buckets have got their order for good; between two passes. Collective.

    DDP gives it to them at the beginning of the next forward pass; here it is done then and there.
    """
    if not ddp._has_rebuilt_buckets:
        ddp._has_rebuilt_buckets = ddp.reducer._rebuild_buckets()
    return bool(ddp._has_rebuilt_buckets)


def is_static_after_one_step(ddp: Any) -> bool:
    """Whether a static graph has been through its first backward pass, and not been rebuilt."""
    passed = ddp.static_graph and ddp._static_graph_delay_allreduce_enqueued
    return bool(passed and not ddp._has_rebuilt_buckets)


def make_reducer(ddp: Any, names: list[str], *, rebuilt: bool) -> None:
    """Give `ddp` a new reducer of the parameters `names`. Collective where it is rebuilt.

    Args:
        rebuilt: As after the first pass, in the order of `names`: the reducer is given the
            parameters in that order, and told that they all became ready one after another.
    """
    named, place = named_parameters(ddp), {name: at for at, name in enumerate(names)}
    before = [(item, item.requires_grad) for item in named.values()]
    builtin = ddp._get_ddp_logging_data().get("comm_hook")
    for name, item in named.items():
        item.requires_grad_(name in place)
    try:
        parameters, sparse = ddp._build_params_for_reducer()
        if rebuilt:
            at = {id(named[name]): number for name, number in place.items()}
            pairs = sorted(zip(parameters, sparse, strict=True), key=lambda pair: at[id(pair[0])])
            parameters, sparse = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        mapping = ddp._build_debug_param_to_name_mapping(parameters)
        ddp._remove_autograd_hooks()
        ddp.logger = ddp.reducer = None  # the old buckets go before the new ones come
        ddp._ddp_init_helper(parameters, sparse, mapping, ddp.static_graph)
    finally:
        for item, flag in before:
            item.requires_grad_(flag)
    _finish_reducer(ddp, builtin)
    ddp._has_rebuilt_buckets = False
    if rebuilt:
        ddp.reducer._push_all_rebuilt_params()
        ddp._has_rebuilt_buckets = ddp.reducer._rebuild_buckets()


def _finish_reducer(ddp: Any, builtin: str | None) -> None:
    """What DDP's constructor and its methods tell a reducer after it was made."""
    if ddp.static_graph:
        ddp._static_graph_delay_allreduce_enqueued = False
        ddp.reducer._set_static_graph()
        ddp.logger._set_static_graph()
    if ddp.mixed_precision is not None:
        ddp.reducer._set_mixed_precision_param_dtype(ddp.mixed_precision.param_dtype)
    for hook, state in ddp._comm_hooks:
        c10d._register_comm_hook(ddp.reducer, state, hook)
    for kind in c10d.BuiltinCommHookType.__members__.values():
        if not ddp._comm_hooks and builtin == str(kind):
            ddp._register_builtin_comm_hook(kind)
