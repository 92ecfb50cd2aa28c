"""What a rank gets ready before it trains: threads, device, peers, the user's classes.

Imports of torch and Lightning are inside the functions, so that what can be refused without them
is refused at once.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.errors import ConfigError
from hpc_train.plan import env_names
from hpc_train.plan.plan import Plan
from hpc_train.plan.world import World
from hpc_train.runs.layout import AttemptDir
from hpc_train.runs.ranks import leave_note
from hpc_train.training.failures.asked_of_gpu import tell_cpus
from hpc_train.training.rank_config import installed_versions

if TYPE_CHECKING:
    from hpc_train.training.devices import Device, LoaderSettings
    from hpc_train.training.private.lightning import pl
    from hpc_train.training.private.torch_store import Store

_RENDEZVOUS_S = 120.0  # from torch's import here to the last rank's; on a cold file system, minutes
_GROUP_TIMEOUT_S = 600.0  # of a collective, at least; the watchdog sees a hang long before


def threads_are_users(world: World, plan: Plan) -> bool:
    """Whether OMP_NUM_THREADS is somebody's decision.

    torchrun sets it to 1 where it is not set and there are several ranks (torch/distributed/run.py,
    config_from_args): safe for a machine it knows nothing of, and a waste of the CPUs that Slurm
    gave. So under torchrun only the config's own value counts.
    """
    if "OMP_NUM_THREADS" in plan.shell.variables:
        return True
    set_to = os.environ.get("OMP_NUM_THREADS")
    return set_to is not None and not (world.launcher == "torchrun" and set_to == "1")


def announce_threads(cpus: int, world: World) -> None:
    """Tell OpenMP, before numpy and torch are imported, whose pools read it then.

    Outside Slurm the CPUs are shared with others. Threads that spin while they wait for one that
    is not scheduled then cost a factor of ten and more (measured; libgomp's manual,
    OMP_WAIT_POLICY and GOMP_SPINCOUNT).
    """
    os.environ["OMP_NUM_THREADS"] = str(cpus)
    if world.launcher != "slurm":
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def own_device(wanted: str, world: World, *, of_script: bool = False) -> Device:
    """The device of this rank, see `devices.choose_device`.

    Raises:
        CheckError: GPUs are wanted and cannot be had, or there are fewer than ranks.
    """
    from hpc_train.plan.gpus_given import gpus_were_given
    from hpc_train.training.devices import (
        OF_A_CONFIG,
        OF_A_SCRIPT,
        Shared,
        choose_device,
        ranks_on_host,
        see_devices,
    )

    here = os.environ.get(env_names.GPUS_HERE, "")
    return choose_device(
        wanted,
        given=gpus_were_given(os.environ),
        seen=see_devices(os.environ),
        local_rank=world.local_rank,
        ranks_per_node=world.ranks_per_node,
        key=OF_A_SCRIPT if of_script else OF_A_CONFIG,
        shared=Shared(int(here), ranks_on_host(world)) if here.isdigit() else None,
    )


def device_of_rank(
    wanted: str,
    precision: str | int | None,
    world: World,
    attempt: AttemptDir,
    *,
    of_script: bool = False,
) -> Device:
    """Where this rank trains, checked against the precision; rank 0 says what has to be said.

    Args:
        wanted: gpu, cuda, cpu or auto.
        attempt: Where rank 0 leaves it to be told as well, when it is on the CPU.
        of_script: A script's Trainer or Fabric wants it, and no config.

    Raises:
        CheckError: see `own_device` and `devices.check_precision`.
    """
    from hpc_train.training.devices import check_precision

    device = own_device(wanted, world, of_script=of_script)
    check_precision(precision, device, of_script=of_script)
    if device.kind == "cpu":
        tell_cpus(wanted)
    if device.note and world.rank == 0:
        print(device.note, flush=True)  # noqa: T201 - a rank's log
        if device.kind == "cpu":
            leave_note(attempt, device.note.removeprefix("WARNING: "))
    return device


def enter_workdir(plan: Plan) -> None:
    """Modules and relative paths of a config mean the folder it is run from."""
    from hpc_train.training.build import put_on_path

    workdir = Path(plan.workdir)
    if workdir.is_dir():
        os.chdir(workdir)
    put_on_path(workdir)


def meet(plan: Plan, world: World, device: Device, plan_hash: str, node: str) -> None:
    """Meet all ranks, then make the process group; Lightning is imported while others arrive.

    Raises:
        PeerError: ranks did not come within the deadline.
        CheckError: they came and do not fit together.
    """
    if world.world_size == 1:
        return

    from hpc_train.training.private.torch_groups import keep_groups
    from hpc_train.training.private.torch_store import PrefixStore
    from hpc_train.training.world_check import RankReport, announce, open_store, verify

    deadline_s = min(_RENDEZVOUS_S, plan.watchdog.start_timeout_s)
    store = open_store(world, os.environ, timeout_s=deadline_s)
    report = RankReport(
        rank=world.rank,
        node_rank=world.node_rank,
        world_size=world.world_size,
        host=node,
        plan_hash=plan_hash,
        device=device.kind,
        gpu_uuid=device.uuid,
        versions=installed_versions(),
    )
    announce(store, report)
    if plan.script is None:
        import_model(plan)  # takes seconds, in which the others come
    verify(store, world, deadline_s=deadline_s)
    timeout_s = max(_GROUP_TIMEOUT_S, plan.watchdog.start_timeout_s)
    keep_groups()
    make_group(PrefixStore("group", store), world, device, timeout_s=timeout_s)


def import_model(plan: Plan) -> None:
    """Import the model's class, which brings the one of Lightning's two packages that is meant.

    Raises:
        ConfigError: there is no such class; an exception of its module passes unchanged.
    """
    from hpc_train.training.build import import_class
    from hpc_train.training.resume.seeds import seed_everything

    seed_everything(plan.training.seed)  # a module may draw while it is imported
    import_class(plan.training.model.class_path, key="model")
    import hpc_train.training.private.lightning  # noqa: F401 - looks at what is imported by now


def make_group(
    store: Store, world: World, device: Device, *, timeout_s: float, connect: bool = True
) -> None:
    """The process group of all ranks, over a store that they have met in; collective.

    Args:
        timeout_s: Of a collective.
        connect: NCCL connects at once, and not with the first collective (init_process_group,
            device_id).
    """
    import torch

    gpu = None if device.index is None else torch.device("cuda", device.index)
    if gpu is not None:
        torch.cuda.set_device(gpu)
    torch.distributed.init_process_group(
        device.backend,
        store=store,
        rank=world.rank,
        world_size=world.world_size,
        device_id=gpu if connect else None,
        timeout=timedelta(seconds=timeout_s),
    )


def make_model_and_data(
    plan: Plan, world: World, device: Device, loader: LoaderSettings
) -> tuple[pl.LightningModule, pl.LightningDataModule]:
    """Build the user's classes, with the same weights on every rank.

    The generators stay alike on all ranks until the first step: `setup` may split a set at random.

    Args:
        loader: Given to a DataModule that takes its fields by name and leaves them open.

    Raises:
        ConfigError: a class does not fit; an exception of its own code passes unchanged.
    """
    from hpc_train.training.build import build
    from hpc_train.training.private.lightning import pl
    from hpc_train.training.resume.seeds import seed_everything
    from hpc_train.training.trainer import batch_norm_note, quiet_lightning

    quiet_lightning()
    training = plan.training
    seed_everything(training.seed)  # the same on every rank, so the same weights
    model = build(training.model, key="model")
    data = build(
        training.data,
        key="data",
        defaults={"batch_size": plan.batch.micro_batch_size},
        fallbacks=asdict(loader),
    )
    _check_base("model", model, pl.LightningModule)
    _check_base("data", data, pl.LightningDataModule)
    note = batch_norm_note(model, world, device)
    if note and world.rank == 0:
        print(note, flush=True)  # noqa: T201 - a rank's log
    return model, data


def _check_base(key: str, item: object, wanted: type) -> None:
    from hpc_train.training.private.lightning import PACKAGE

    if not isinstance(item, wanted):
        raise ConfigError(
            f"{key}.class_path: {type(item).__module__}.{type(item).__name__} is no "
            f"{PACKAGE}.{wanted.__name__}",
            "derive it from that class; pytorch_lightning and lightning.pytorch have classes of "
            "their own, so model and data import the same of the two",
        )
