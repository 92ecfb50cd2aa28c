"""Keeps the order in which DistributedDataParallel adds gradients, so that a resume changes no bit.

DDP reduces its first backward pass with the buckets it was built with, and all later ones with
buckets in the order in which the gradients became ready (torch/csrc/distributed/c10d/reducer.cpp,
`rebuild_buckets`; with a static graph one pass later; never with `find_unused_parameters`). A ring
all-reduce adds an element's shares in an order that follows from its place in the bucket, so with
three ranks and more a new DDP's first step differs from an old one's in the last bit.

Therefore the order is saved with each checkpoint, and the next attempt's DDP gets a reducer that
has been rebuilt in that order before its first step. The other way, one order for good from step 0
on, needs nothing saved, but takes the overlap of backward and communication from models that use
their layers in another order than they declare them. Here nothing is added to a step, and an
undisturbed run is plain DDP.

- A checkpoint after the first step is older than the order: DDP rebuilds at the beginning of the
  next forward pass. `capture` rebuilds then and there, between the same two passes.
- A static graph learns the order in the second step only. An attempt that begins with that step
  notes it by hooks of its own, as the new reducer takes it for its first.
- Parameters that were frozen when DDP was built are not in its reducer, and DDP would never reduce
  their gradients: the ranks would drift apart. Where one thaws, the reducer is made anew.
- Names are saved, and not positions: other ranks, or a model that has changed, do no harm.

Every use of a name private to torch's DDP is here; `tests/training/test_buckets.py` holds each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hpc_train.training.resume.saving import say_loudly

__all__ = ["GradientBuckets"]

State = dict[str, Any]
c10d: Any = dist  # for names that torch.distributed has and does not declare
_SAMPLE_RATE = 100  # torch's own (logger.cpp, kDDPRuntimeLoggingSampleRate)

# The reducer does not tell its parameters, and `requires_grad` may have changed since it was made.
_given: WeakKeyDictionary[DistributedDataParallel, list[nn.Parameter]] = WeakKeyDictionary()
_init_reducer = cast("Any", DistributedDataParallel)._ddp_init_helper


def _note_parameters(self: Any, parameters: list[nn.Parameter], *rest: Any) -> None:
    _given[self] = parameters
    _init_reducer(self, parameters, *rest)


cast("Any", DistributedDataParallel)._ddp_init_helper = _note_parameters


class GradientBuckets:
    """The buckets of all DDP modules of a training; all ranks call the same methods.

    Args:
        saved: From `capture`; None for a fresh start, or a checkpoint that has none.
    """

    def __init__(self, saved: Mapping[str, State] | None) -> None:
        self._saved = saved or {}
        self._reduced: dict[str, _Reduced] = {}

    def begin(self, **modules: nn.Module) -> None:
        """Before the attempt's first step. Collective.

        Args:
            modules: What is trained, by names that later attempts use as well; DDP modules are
                looked for inside. Those that do not reduce by plain buckets are left alone.
        """
        for name, outer in modules.items():
            for path, module in outer.named_modules():
                if isinstance(module, DistributedDataParallel) and _has_buckets(module):
                    key = _clean(f"{name}/{path}")
                    self._reduced[key] = _Reduced(module, self._saved.get(key))

    def capture(self) -> dict[str, State]:
        """The order from the next step on, as plain values; between two steps. Collective."""
        return {name: reduced.capture() for name, reduced in self._reduced.items()}


class _Reduced:
    """One DDP module."""

    def __init__(self, ddp: Any, saved: State | None) -> None:
        self._ddp = ddp
        self._noted: _ReadyOrder | None = None
        self._captured: State | None = None
        self._hook: Any = None
        if saved is not None:
            self._restore(saved)
        known = {*_inside(ddp), *map(_clean, ddp.parameters_to_ignore)}
        self._frozen = [item for name, item in _named(ddp).items() if name not in known]
        self._hook_forward()

    def _restore(self, saved: State) -> None:
        ddp, names = self._ddp, saved["parameters"]
        if not set(names) <= _named(ddp).keys():
            say_loudly(
                "the model's parameters have other names than in the checkpoint, so DDP arranges "
                "its buckets anew: from three ranks on, the last bit of the weights may differ"
            )
            return
        if saved["rebuilt"] or set(names) != set(_inside(ddp)):
            self._make_reducer(names, rebuilt=saved["rebuilt"])
        if saved["order_is_next"]:
            self._noted = _ReadyOrder(ddp)

    def capture(self) -> State:
        ddp = self._ddp
        self._settle()
        if not ddp._has_rebuilt_buckets:
            ddp._has_rebuilt_buckets = ddp.reducer._rebuild_buckets()
        rebuilt = ddp._has_rebuilt_buckets
        if self._captured is None or self._captured["rebuilt"] != rebuilt:
            names = _order(ddp) if rebuilt else _inside(ddp)
            self._captured = {"parameters": names, "rebuilt": rebuilt}
        return {**self._captured, "order_is_next": _static_after_one_step(ddp)}

    def _make_reducer(self, names: list[str], *, rebuilt: bool) -> None:
        self._captured = {"parameters": names, "rebuilt": True} if rebuilt else None
        _make_reducer(self._ddp, names, rebuilt=rebuilt)

    def _hook_forward(self) -> None:
        """Be asked before each forward pass, only where there is something to wait for."""
        if self._hook is None and (self._frozen or self._noted):
            self._hook = self._ddp.register_forward_pre_hook(self._before_forward)
        elif self._hook is not None and not (self._frozen or self._noted):
            self._hook.remove()
            self._hook = None

    def _before_forward(self, *_: Any) -> None:
        if torch.is_grad_enabled():
            self._settle()
        thawed = [item for item in self._frozen if item.requires_grad]
        if thawed:
            ddp = self._ddp
            names, ids = _inside(ddp), {id(item) for item in thawed}
            names += [name for name, item in _named(ddp).items() if id(item) in ids]
            self._make_reducer(names, rebuilt=False)
            self._frozen = [item for item in self._frozen if not item.requires_grad]
            self._hook_forward()

    def _settle(self) -> None:
        """Take over the order that was noted in the step before."""
        if self._noted is not None and _static_after_one_step(self._ddp):
            names, self._noted = self._noted.end(), None
            self._make_reducer(names, rebuilt=True)
            self._hook_forward()


class _ReadyOrder:
    """Notes in which order the parameters' gradients become ready."""

    def __init__(self, ddp: Any) -> None:
        self._ddp = ddp
        self._names: dict[str, None] = {}
        named = _named(ddp)
        self._declared = _inside(ddp)
        self._hooks = [
            cast("Any", named[name]).register_post_accumulate_grad_hook(self._noting(name))
            for name in self._declared
        ]

    def _noting(self, name: str) -> Callable[[torch.Tensor], None]:
        def note(_: torch.Tensor) -> None:
            self._names.pop(name, None)  # a parameter that is used twice is ready the last time
            self._names[name] = None

        return note

    def end(self) -> list[str]:
        """Rank 0's order, as in DDP; what had no gradient comes last. Collective."""
        for hook in self._hooks:
            hook.remove()
        names = list(self._names)
        names += [name for name in self._declared if name not in self._names]
        told, group = [names], self._ddp.process_group
        dist.broadcast_object_list(told, src=dist.get_global_rank(group, 0), group=group)
        return told[0]


def _has_buckets(ddp: Any) -> bool:
    """Whether plain buckets reduce it: not compiled autograd, nor an optimizer in the backward."""
    in_backward = any(hasattr(item, "_in_backward_optimizers") for item in ddp.parameters())
    return hasattr(ddp, "reducer") and not ddp._use_python_reducer and not in_backward


def _clean(name: str) -> str:
    return name.replace("_orig_mod.", "")  # torch.compile's wrapper; it may come and go


def _named(ddp: Any) -> dict[str, nn.Parameter]:
    return {_clean(name): item for name, item in ddp.module.named_parameters()}


def _inside(ddp: Any) -> list[str]:
    """The names of the parameters in the reducer, by its own numbers."""
    names = {id(item): name for name, item in _named(ddp).items()}
    given = _given.get(ddp) or ddp._build_params_for_reducer()[0]
    return [names[id(item)] for item in given]


def _order(ddp: Any) -> list[str]:
    """The same as they lie in the buckets, once these have been rebuilt."""
    ddp._set_ddp_runtime_logging_sample_rate(1)  # else it is told in one pass of 100
    ddp.logger.set_runtime_stats_and_log()
    ddp._set_ddp_runtime_logging_sample_rate(_SAMPLE_RATE)
    told = ddp._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"]
    names = _inside(ddp)
    return [names[int(number)] for number in told.replace(",", " ").split()]


def _static_after_one_step(ddp: Any) -> bool:
    """Whether a static graph has been through its first backward pass, and not been rebuilt."""
    passed = ddp.static_graph and ddp._static_graph_delay_allreduce_enqueued
    return bool(passed and not ddp._has_rebuilt_buckets)


def _make_reducer(ddp: Any, names: list[str], *, rebuilt: bool) -> None:
    """Give `ddp` a new reducer of the parameters `names`. Collective where it is rebuilt.

    Args:
        rebuilt: As after the first pass, in the order of `names`: the reducer is given the
            parameters in that order, and told that they all became ready one after another.
    """
    named, place = _named(ddp), {name: at for at, name in enumerate(names)}
    before = [(item, item.requires_grad) for item in named.values()]
    builtin = ddp._get_ddp_logging_data().get("comm_hook")
    for name, item in named.items():
        if item.requires_grad != (name in place):
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
            if item.requires_grad != flag:
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
