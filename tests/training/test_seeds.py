from __future__ import annotations

import random

import numpy as np
import torch

from hpc_train.training.resume.seeds import choose_determinism, seed_everything, seed_of_rank


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_every_library_draws_the_same_after_the_same_seed() -> None:
    seed_everything(5)
    first = draw()
    draw()
    seed_everything(5)
    assert draw() == first
    seed_everything(6)
    assert all(a != b for a, b in zip(draw(), first, strict=True))


def test_ranks_and_seeds_do_not_share_streams() -> None:
    seeds = {seed_of_rank(seed, rank) for seed in range(20) for rank in range(20)}
    assert len(seeds) == 400


def test_reproducible_moves_both_switches() -> None:
    assert choose_determinism(reproducible=True) == {"deterministic": "warn", "benchmark": False}
    assert choose_determinism(reproducible=False) == {"deterministic": False, "benchmark": True}
