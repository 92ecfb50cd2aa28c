"""The GPUs of a machine whose nodes are simulated: who of its ranks gets which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpc_train.plan import env_names
from hpc_train.plan.plan import Shape
from hpc_train.plan.world import visible_devices
from hpc_train.preflight.inventory.gpus import load_nvml, read_gpus

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def gpus_here(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the GPUs that may be used, as CUDA_VISIBLE_DEVICES takes them.

    Where it is not set they are NVML's UUIDs: CUDA counts by speed and NVML by the bus (CUDA C++
    programming guide, CUDA_DEVICE_ORDER). None where NVML is absent, of AMD's GPUs for one.
    """
    if (visible := visible_devices(environ)) is not None:
        return visible
    nvml, _ = load_nvml()
    return tuple(gpu.uuid for gpu in read_gpus(nvml, environ) if gpu.uuid) if nvml else ()


def of_node(shape: Shape, node: int, names: Sequence[str]) -> dict[str, str]:
    """Variables of one simulated node: its own GPUs, where there are enough for all nodes.

    Args:
        node: From 0.
        names: As of `gpus_here`.
    """
    if not names:
        return {}
    told = {env_names.GPUS_HERE: str(len(names))}
    per_node = shape.gpus_per_node
    if shape.nodes > 1 and per_node and len(names) >= shape.nodes * per_node:
        told[_VISIBLE] = ",".join(names[node * per_node : (node + 1) * per_node])
    return told
