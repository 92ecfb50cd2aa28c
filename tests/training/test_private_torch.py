"""What hpc-train takes for granted of names that torch and submitit keep to themselves.

Runs first, in seconds: an upgrade that breaks one of them is told at once. Each test says which
names it holds, and what breaks for the user without them; docs/versions.md has what passes.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import pytest
import submitit
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

from hpc_train.backends.submit import _stderr_in
from hpc_train.supervisor.deaths import Death, deaths_in_elastic_log
from hpc_train.training.private import (
    loader_workers,
    torch_data,
    torch_ddp,
    torch_groups,
    torch_store,
)
from hpc_train.training.private.exchanges import exchanges_so_far
from hpc_train.training.resume.buckets import GradientBuckets

pytestmark = pytest.mark.filterwarnings("ignore")  # an old library warns; that breaks nothing


# -- torch: DistributedDataParallel -----------------------------------------------------------


@pytest.fixture
def alone() -> Iterator[None]:
    """A process group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_a_group_that_is_destroyed_stays_until_more_have_followed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # distributed_c10d: _world.pg_map, whose keys are the groups. Without: torch_groups.py keeps
    # none, and a rank that frees its DDP behind destroy_process_group() may wait for itself.
    for home in (dist, dist.distributed_c10d):  # both are put back
        monkeypatch.setattr(home, "destroy_process_group", home.destroy_process_group)
    torch_groups.keep_groups()
    torch_groups.keep_groups()  # of two that begin: the same
    groups = [dist.new_group() for _ in range(20)]
    first, last = weakref.ref(groups[0]), weakref.ref(groups[-1])
    for group in groups:
        dist.destroy_process_group(group)
    del groups, group
    gc.collect()
    assert last() is not None
    assert first() is None, "a training that makes groups again and again keeps not all of them"


def two_layers(**options: Any) -> Any:
    return DistributedDataParallel(nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2)), **options)


def begun(ddp: Any, saved: Any = None) -> GradientBuckets:
    buckets = GradientBuckets(saved)
    buckets.begin(model=ddp)
    return buckets


def step(ddp: Any) -> None:
    ddp(torch.ones(2, 6)).sum().backward()
    ddp.zero_grad()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("static", [False, True])
def test_ddp_tells_the_order_of_its_sums_and_a_new_one_takes_it(static: bool) -> None:
    # DDP: _ddp_init_helper, _has_rebuilt_buckets, _set_ddp_runtime_logging_sample_rate,
    # _get_ddp_logging_data, _build_params_for_reducer, _build_debug_param_to_name_mapping,
    # _remove_autograd_hooks, _static_graph_delay_allreduce_enqueued; Reducer: _rebuild_buckets,
    # _push_all_rebuilt_params, _set_static_graph; Logger: set_runtime_stats_and_log.
    # Without them the weights of a resumed run differ in their last bit, from three ranks on.
    first = two_layers(static_graph=static)
    buckets = begun(first)
    declared = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert buckets.capture()["model/"] == {
        "parameters": declared, "rebuilt": False, "order_is_next": False
    }  # fmt: skip
    for _ in range(2):
        step(first)
    saved = buckets.capture()
    assert saved["model/"]["parameters"] == declared[::-1]
    assert saved["model/"]["rebuilt"]
    other = {"model/": {**saved["model/"], "parameters": [declared[i] for i in (1, 3, 0, 2)]}}
    second = two_layers(static_graph=static)
    again = begun(second, other)
    for _ in range(3):
        step(second)
        assert again.capture() == other, "it keeps what it was given"


@pytest.mark.usefixtures("alone")
def test_a_new_reducer_compresses_as_the_old_one_did() -> None:
    # DDP: _comm_hooks, _register_builtin_comm_hook, the "comm_hook" of _get_ddp_logging_data;
    # torch.distributed: _register_comm_hook, BuiltinCommHookType.
    # Without them a resumed run adds gradients in full precision that were compressed before.
    asked: list[int] = []

    def hook(state, bucket):
        state.append(bucket.index())
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp = two_layers()
    ddp.register_comm_hook(asked, hook)
    torch_ddp.make_reducer(ddp, ["1.bias", "1.weight", "0.bias", "0.weight"], rebuilt=True)
    step(ddp)
    assert asked
    builtin = two_layers()
    builtin._register_builtin_comm_hook(torch_ddp.c10d.BuiltinCommHookType.FP16_COMPRESS)
    step(builtin)
    told = builtin._get_ddp_logging_data()["comm_hook"]
    torch_ddp.make_reducer(builtin, ["0.weight", "0.bias", "1.weight", "1.bias"], rebuilt=False)
    step(builtin)
    assert builtin._get_ddp_logging_data()["comm_hook"] == told != ""


@pytest.mark.usefixtures("alone")
def test_what_has_no_plain_buckets_is_known() -> None:
    # DDP._use_python_reducer, Parameter._in_backward_optimizers; "_orig_mod." of torch.compile;
    # Reducer._set_mixed_precision_param_dtype.
    # Without them a script with one of these fails at its start, or after torch.compile is added.
    from torch.distributed.optim import _apply_optimizer_in_backward

    ddp = two_layers()
    assert torch_ddp.has_buckets(ddp)
    assert ddp._use_python_reducer is False
    assert callable(ddp.reducer._set_mixed_precision_param_dtype)
    compiled = torch.compile(nn.Linear(1, 1))
    assert {torch_ddp.clean_name(name) for name, _ in compiled.named_parameters()} == {
        "weight", "bias"
    }  # fmt: skip
    _apply_optimizer_in_backward(torch.optim.SGD, ddp.parameters(), {"lr": 0.1})
    assert not torch_ddp.has_buckets(ddp)


# -- torch: data ------------------------------------------------------------------------------


class Numbered(list[int]):
    pass


def test_the_workers_of_a_loader_are_kept_where_a_killed_one_is_looked_for() -> None:
    """_MultiProcessingDataLoaderIter._workers; without it, a lost connection names no signal."""
    iterator = iter(DataLoader(cast("Any", range(4)), num_workers=2))
    assert [it.exitcode for it in loader_workers.workers_of([None, iterator])] == [None, None]
    assert loader_workers.workers_of([None]) == []


def test_batches_with_indices_of_a_kind_are_fetched_by_a_function() -> None:
    # _MapDatasetFetcher.fetch with its dataset and collate_fn.
    # Without it augmentation depends on the number of data workers and of ranks.
    torch_data.fetch_by(Numbered, lambda indices, it: (list(indices), it.collate_fn, it.dataset))
    data = [10, 11, 12]
    sampler: Any = [Numbered([0, 1]), [0, 2]]
    ours, plain = DataLoader(data, batch_sampler=sampler, collate_fn=sum)  # type: ignore[arg-type]
    assert ours == ([0, 1], sum, data)
    assert plain == 22


class Three(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


def test_iterators_of_loaders_keep_what_a_stream_goes_on_from() -> None:
    # DataLoader._iterator, _SingleProcessDataLoaderIter._dataset_fetcher.ended,
    # _MultiProcessingDataLoaderIter._worker_queue_idx_cycle.
    # Without them an iterable set repeats or leaves out samples behind an interruption.
    loader: Any = DataLoader(Three(), batch_size=2)
    batches = iter(loader)
    ended = [torch_data.has_ended(batches) for _ in batches]
    assert ended == [False, True]
    assert loader._iterator is None
    assert "_iterator" in DataLoader.__iter__.__code__.co_names
    loader._iterator = batches
    torch_data.forget_iterator(loader)
    assert loader._iterator is None
    rotated = torch_data._RotatedIterator
    assert "_worker_queue_idx_cycle" in rotated._reset.__code__.co_names
    iterator: Any = rotated.__new__(type("_", (rotated,), {"first": 2}))
    iterator._worker_queue_idx_cycle = cycle(range(3))
    assert [next(iterator._worker_queue_idx_cycle) for _ in range(4)] == [2, 0, 1, 2]


def test_normalisations_over_the_batch_are_known() -> None:
    # torch.nn.modules.batchnorm._BatchNorm: GPUs would normalise over their own samples alone.
    known = [nn.BatchNorm1d(2), nn.LazyBatchNorm2d(), nn.SyncBatchNorm(2), nn.LayerNorm(2)]
    assert list(map(torch_data.is_batch_norm, known)) == [True, True, True, False]


# -- torch: launching and saving --------------------------------------------------------------


def test_the_private_stores_are_the_public_ones() -> None:
    # torch._C._distributed_c10d: ranks could not meet.
    for name in torch_store.__all__:
        assert getattr(torch_store, name) is getattr(dist, name)


def test_shards_are_named_by_their_rank(tmp_path: Path) -> None:
    # torch.distributed.checkpoint's files __RANK_N.distcp and .metadata: each rank hashes its own.
    from torch.distributed.checkpoint.state_dict_saver import save

    save({"x": torch.ones(2)}, checkpoint_id=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"__0_0.distcp", ".metadata"}


def test_the_elastic_launchers_words_name_the_ranks_that_failed() -> None:
    # str(ChildFailedError): a rank that was killed would be nobody's, and its node not left out.
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    failures = {
        rank: ProcessFailure(local_rank=rank, pid=7, exitcode=code, error_file="")
        for rank, code in ((0, 1), (3, -9))
    }
    failures[0].timestamp, failures[3].timestamp = 2, 1
    found = deaths_in_elastic_log(str(ChildFailedError("train", failures)))
    assert found == [Death(rank=3, code=0, signal=9), Death(rank=0, code=1, signal=0)]


def test_collectives_are_numbered_barriers_too(alone: None) -> None:
    # _world.pg_map, _device_types, _get_backend, _get_sequence_number_for_group: else a script
    # whose ranks train apart is not told so.
    told = [exchanges_so_far()]
    dist.barrier()
    told.append(exchanges_so_far())
    dist.all_reduce(torch.ones(2))
    told.append(exchanges_so_far())
    assert told == [0, 1, 2]
    two_layers()(torch.ones(4, 6)).sum().backward()
    assert (exchanges_so_far() or 0) > 2


# -- submitit ---------------------------------------------------------------------------------


def test_submitit_repeats_sbatchs_words_in_its_error() -> None:
    # FailedJobError's text: "Slurm refused" could not say what, nor which key to change.
    command = ["sh", "-c", "echo sbatch: error: Invalid partition >&2; exit 1"]
    with pytest.raises(submitit.core.utils.FailedJobError) as caught:
        submitit.core.utils.CommandFunction(command, verbose=False)()
    assert _stderr_in(str(caught.value)) == "sbatch: error: Invalid partition"
