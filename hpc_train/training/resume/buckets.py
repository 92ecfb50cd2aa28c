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

- A checkpoint after the first step is older than the order: `capture` has the buckets rebuilt.
- A static graph learns the order in the second step only. An attempt that begins with that step
  notes it by hooks of its own, as the new reducer takes it for its first.
- Parameters that were frozen when DDP was built are not in its reducer, and DDP would never reduce
  their gradients: the ranks would drift apart. Where one thaws, the reducer is made anew.
- Names are saved, and not positions: other ranks, or a model that has changed, do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hpc_train.training.private import torch_ddp
from hpc_train.training.resume.saving import say_loudly

State = dict[str, Any]


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
                if isinstance(module, DistributedDataParallel) and torch_ddp.has_buckets(module):
                    key = torch_ddp.clean_name(f"{name}/{path}")
                    self._reduced[key] = _Reduced(module, self._saved.get(key))

    def capture(self) -> dict[str, State]:
        """The order from the next step on, as plain values; between two steps. Collective."""
        return {name: reduced.capture() for name, reduced in self._reduced.items()}


class _Reduced:
    """One DDP module."""

    def __init__(self, ddp: DistributedDataParallel, saved: State | None) -> None:
        self._ddp = ddp
        self._noted: _ReadyOrder | None = None
        self._captured: State | None = None
        self._hook: Any = None
        if saved is not None:
            self._restore(saved)
        known = {*torch_ddp.reduced_names(ddp), *torch_ddp.ignored_names(ddp)}
        named = torch_ddp.named_parameters(ddp)
        self._frozen = {name: item for name, item in named.items() if name not in known}
        self._hook_forward()

    def _restore(self, saved: State) -> None:
        ddp, names = self._ddp, saved["parameters"]
        if not set(names) <= torch_ddp.named_parameters(ddp).keys():
            say_loudly(
                "the model's parameters have other names than in the checkpoint, so DDP arranges "
                "its buckets anew: from three ranks on, the last bit of the weights may differ"
            )
            return
        if saved["rebuilt"] or set(names) != set(torch_ddp.reduced_names(ddp)):
            self._make_reducer(names, rebuilt=saved["rebuilt"])
        if saved["order_is_next"]:
            self._noted = _ReadyOrder(ddp)

    def capture(self) -> State:
        ddp = self._ddp
        self._settle()
        rebuilt = torch_ddp.is_rebuilt(ddp)
        if self._captured is None or self._captured["rebuilt"] != rebuilt:
            names = (torch_ddp.names_in_buckets if rebuilt else torch_ddp.reduced_names)(ddp)
            self._captured = {"parameters": names, "rebuilt": rebuilt}
        return {**self._captured, "order_is_next": torch_ddp.is_static_after_one_step(ddp)}

    def _make_reducer(self, names: list[str], *, rebuilt: bool) -> None:
        self._captured = {"parameters": names, "rebuilt": True} if rebuilt else None
        torch_ddp.make_reducer(self._ddp, names, rebuilt=rebuilt)

    def _hook_forward(self) -> None:
        """Be asked before each forward pass, only where there is something to wait for."""
        waits = self._frozen or self._noted
        if self._hook is None and waits:
            self._hook = self._ddp.register_forward_pre_hook(self._before_forward)
        elif self._hook is not None and not waits:
            self._hook.remove()
            self._hook = None

    def _before_forward(self, *_: Any) -> None:
        if torch.is_grad_enabled():
            self._settle()
        thawed = [name for name, item in self._frozen.items() if item.requires_grad]
        if thawed:
            names = torch_ddp.reduced_names(self._ddp)
            self._make_reducer(names + thawed, rebuilt=False)
            for name in thawed:
                del self._frozen[name]
            self._hook_forward()

    def _settle(self) -> None:
        """Take over the order that was noted in the step before."""
        if self._noted is not None and torch_ddp.is_static_after_one_step(self._ddp):
            names, self._noted = self._noted.end(), None
            self._make_reducer(names, rebuilt=True)
            self._hook_forward()


class _ReadyOrder:
    """Notes in which order the parameters' gradients become ready."""

    def __init__(self, ddp: Any) -> None:
        self._group = ddp.process_group
        self._names: dict[str, None] = {}
        self._declared = torch_ddp.reduced_names(ddp)
        named: dict[str, Any] = torch_ddp.named_parameters(ddp)
        self._hooks = [
            named[name].register_post_accumulate_grad_hook(self._noting(name))
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
        told = [[*self._names, *(name for name in self._declared if name not in self._names)]]
        source = dist.get_global_rank(self._group, 0)
        dist.broadcast_object_list(told, src=source, group=self._group)
        return told[0]
