"""Trains many small models with DDP in one process group, undisturbed and interrupted.

An interruption is what an attempt's end is: everything is made anew, and put back from what was
saved. The undisturbed training is plain DDP, without anything of hpc-train.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from hpc_train.training.resume.buckets import GradientBuckets
from hpc_train.training.resume.module_state import capture_module, restore_module
from hpc_train.training.resume.rng import capture_rngs, restore_rngs
from tests.ledger import hash_tensors

STEPS = 6
STOPS: list[tuple[int, ...]] = [(1,), (2, 3), (1, 2, 5)]


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 5)
    )


class Shuffled(nn.Module):
    """Its layers are used in another order than they are declared; `turns` changes it by step."""

    def __init__(self, turns: bool = False) -> None:
        super().__init__()
        self.last, self.second = nn.Linear(24, 5), nn.Linear(24, 24)
        self.first, self.third = nn.Linear(6, 24), nn.Linear(24, 24)
        self.turns, self.step = turns, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        middle = [self.second, self.third]
        if self.turns and self.step % 2:
            middle.reverse()
        x = torch.tanh(self.first(x))
        for layer in middle:
            x = torch.tanh(layer(x))
        return self.last(x)


class Unused(nn.Module):
    """One layer is never used, another one in every other step where `sometimes`."""

    def __init__(self, sometimes: bool) -> None:
        super().__init__()
        self.never, self.now_and_then = nn.Linear(6, 6), nn.Linear(24, 24)
        self.body = mlp()
        self.sometimes, self.step = sometimes, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.body[0](x))
        if not self.sometimes or self.step % 2:
            x = self.now_and_then(x)
        return self.body[3:](x)


class Frozen(nn.Module):
    """A backbone that is frozen before or after DDP sees it, and thaws with step 3."""

    def __init__(self, early: bool) -> None:
        super().__init__()
        self.backbone, self.head = nn.Linear(6, 24), nn.Sequential(nn.Tanh(), nn.Linear(24, 5))
        self.norm = nn.LayerNorm(24)
        self.step = 0
        if early:
            self.backbone.requires_grad_(False)

    def before_step(self) -> None:
        if self.step in (0, 3):  # as a callback at an epoch's start: not asked again in its middle
            self.backbone.requires_grad_(self.step == 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.backbone(x)))


class TwoTypes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.low, self.out = nn.Linear(24, 24).bfloat16(), nn.Linear(24, 5)
        self.into, self.scale = nn.Linear(6, 24), nn.Parameter(torch.ones(24).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out((self.low(self.into(x).bfloat16()) * self.scale).float())


class Words(nn.Module):
    """A sparse embedding, and weights that two layers share."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(10, 24, sparse=True)
        self.one, self.two, self.out = nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 5)
        self.two.weight = self.one.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.words((x.abs() * 3).long().clamp(max=9)).sum(1)
        return self.out(self.two(torch.tanh(self.one(found))))


class Single(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.only = nn.Parameter(torch.randn(6, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.only


def norm() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 5))


def deep() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 24), *[nn.Linear(24, 24) for _ in range(3)], nn.Linear(24, 5))


@dataclass(frozen=True)
class Case:
    """A model, how DDP wraps it, and how it is used."""

    make: Callable[[], nn.Module]
    ddp: dict[str, Any] = field(default_factory=dict)
    accumulate: int = 1
    no_sync: bool = True
    sgd: bool = False
    wrap: Callable[[nn.Module], nn.Module] = lambda module: module  # torch.compile, inside of DDP
    outside: Callable[[nn.Module], nn.Module] = lambda module: module
    register: Callable[[Any], None] = lambda ddp: None
    slow: bool = False


SMALL = {"bucket_cap_mb": 0.003}
CASES = {
    "an MLP with dropout": Case(mlp),
    "layers in another order": Case(Shuffled),
    "an order that changes with each step": Case(lambda: Shuffled(turns=True)),
    "unused parameters": Case(lambda: Unused(True), {"find_unused_parameters": True}),
    "unused parameters, several buckets": Case(
        lambda: Unused(True), {"find_unused_parameters": True, **SMALL}
    ),
    "a static graph": Case(lambda: Unused(False), {"static_graph": True}),
    "a static graph, another order, several buckets": Case(
        Shuffled, {"static_graph": True, **SMALL}
    ),
    "several buckets": Case(deep, SMALL),
    "several buckets, another order": Case(Shuffled, SMALL),
    "frozen before DDP, thaws": Case(lambda: Frozen(True)),
    "frozen before DDP, thaws, views of buckets": Case(
        lambda: Frozen(True), {"gradient_as_bucket_view": True, **SMALL}
    ),
    "frozen behind DDP, thaws": Case(lambda: Frozen(False), {"find_unused_parameters": True}),
    "BatchNorm": Case(norm),
    "BatchNorm of each rank's own": Case(norm, {"broadcast_buffers": False}),
    "accumulation": Case(mlp, accumulate=3),
    "accumulation that reduces each time": Case(deep, SMALL, accumulate=2, no_sync=False),
    "views of buckets": Case(deep, {"gradient_as_bucket_view": True, **SMALL}),
    "bf16 beside fp32": Case(TwoTypes),
    "bf16 beside fp32, several buckets": Case(TwoTypes, SMALL),
    "sparse gradients and shared weights": Case(Words, sgd=True),
    "a hook for communication": Case(
        mlp, register=lambda ddp: ddp.register_comm_hook(None, fp16_compress_hook)
    ),
    "a built-in hook": Case(
        mlp,
        register=lambda ddp: ddp._register_builtin_comm_hook(
            dist.BuiltinCommHookType.FP16_COMPRESS
        ),
    ),
    "compiled inside of DDP": Case(
        Shuffled, wrap=lambda module: torch.compile(module, backend="eager"), slow=True
    ),
    "compiled around DDP": Case(
        lambda: Frozen(True), outside=lambda ddp: torch.compile(ddp, backend="eager"), slow=True
    ),
    "one parameter": Case(Single),
}


def _attempt(case: Case, saved: Any, steps: range, *, plain: bool) -> tuple[list[str], bytes]:
    torch.manual_seed(3)
    module = case.make()
    ddp: Any = DistributedDataParallel(case.wrap(module), **case.ddp)
    case.register(ddp)
    used = case.outside(ddp)
    kind = torch.optim.SGD if case.sgd else torch.optim.Adam
    optimizer = kind(module.parameters(), lr=0.05)
    rank, hashes = dist.get_rank(), []
    torch.manual_seed(1000 + rank)
    buckets = GradientBuckets(saved["buckets"] if saved else None)
    if saved is not None:
        module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        restore_module(module, saved["own"], same_world=True)
        restore_rngs(saved["rng"])
    if not plain:
        buckets.begin(model=used)
    for step in steps:
        module.step = step
        if hasattr(module, "before_step"):
            module.before_step()
        for micro in range(case.accumulate):
            generator = torch.Generator().manual_seed(1000 * step + 10 * rank + micro)
            x = torch.randn(4, 6, generator=generator)
            last = micro == case.accumulate - 1
            quiet = case.no_sync and not last
            with ddp.no_sync() if quiet else contextlib.nullcontext():
                used(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        hashes.append(hash_tensors(module.state_dict().values()))
    if plain:
        return hashes, b""
    state = {
        "model": module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "own": capture_module(module),
        "buckets": buckets.capture(),
        "rng": capture_rngs(),
    }
    file = io.BytesIO()
    torch.save(state, file)
    return hashes, file.getvalue()


def _train(case: Case, stops: tuple[int, ...], *, plain: bool = False) -> list[str]:
    saved, packed, hashes = None, b"", []
    for first, last in zip((0, *stops), (*stops, STEPS), strict=True):
        if first:
            # All the ranks' parameters are rank 0's; what a rank has of its own is its own.
            saved = torch.load(io.BytesIO(packed), weights_only=True)
        part, packed = _attempt(case, saved, range(first, last), plain=plain)
        hashes += part
    return hashes


def main(spec: dict[str, Any]) -> None:
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    method = f"file://{os.environ['RENDEZVOUS_FILE']}"
    dist.init_process_group("gloo", method, rank=rank, world_size=world_size)
    found = {}
    for name, case in CASES.items():
        if case.slow and world_size != 3:
            continue
        # DDP alone never reduces what thaws, so that the reference takes part, too.
        alone = not isinstance(case.make(), Frozen)
        found[name] = {
            "undisturbed": _train(case, (), plain=alone),
            "interrupted": {str(stops): _train(case, stops) for stops in STOPS},
        }
    Path(spec["run_dir"], f"found-{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    dist.destroy_process_group()
    os._exit(0)
