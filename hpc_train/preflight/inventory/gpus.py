"""GPUs by NVML. `Not supported` is an answer (None), not a fault; no GPU is an empty tuple."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hpc_train.preflight.inventory.inventory import Gpu, Hca
from hpc_train.preflight.inventory.sysfs import Reader

_NVML = "libnvidia-ml.so.1"
_MIB = 1024 * 1024
_MAX_NVLINKS = 18
# NVML_FI_DEV_GET_GPU_RECOVERY_ACTION of nvml.h; old bindings lack the name, so the number stands.
_FI_RECOVERY_ACTION = 230
_RECOVERY = {0: "none", 1: "reset", 2: "reboot", 3: "drain", 4: "drain-and-reset"}

# pynvml, or a made module of the same functions.
Nvml = Any


def load_nvml() -> tuple[Nvml | None, str]:
    """Return (pynvml, initialised, `ok`), or (None, why): `absent`, or NVML's own error."""
    import ctypes

    try:
        ctypes.CDLL(_NVML)  # where it is absent the bindings are a tenth of a probe for nothing
        nvml = importlib.import_module("pynvml")
    except (ImportError, OSError):
        return None, "absent"
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded):
        return None, "absent"
    except nvml.NVMLError as error:
        return None, f"{error}"
    return nvml, "ok"


def read_gpus(nvml: Nvml, env: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs this step may use, in NVML's order (CUDA_VISIBLE_DEVICES is honoured)."""
    count = _ask(nvml, nvml.nvmlDeviceGetCount) or 0
    gpus = tuple(_gpu(nvml, index) for index in range(count))
    wanted = env.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return gpus
    # Under Slurm's device cgroups the numbers count from 0 among the GPUs that are visible, and
    # NVML sees the same ones; where they match nothing they do not speak of NVML's numbering.
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    uuids = tuple(name for name in names if name.startswith("GPU-"))
    kept = tuple(g for g in gpus if str(g.index) in names or any(map(g.uuid.startswith, uuids)))
    return kept if kept or not names else gpus


def _ask(nvml: Nvml, function: Callable[..., Any], *args: Any) -> Any:
    """Return NVML's answer, or None where it has none for this card."""
    try:
        return function(*args)
    except nvml.NVMLError:
        return None


def _gpu(nvml: Nvml, index: int) -> Gpu:
    handle = _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        # The card is counted and does not answer: a lost GPU ("fell off the bus").
        return Gpu(index=index, recovery="lost")
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    processes = _ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
    remapped = _ask(nvml, nvml.nvmlDeviceGetRemappedRows, handle)
    kind, counter = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    ecc = _ask(nvml, nvml.nvmlDeviceGetTotalEccErrors, handle, kind, counter)
    links = [
        bool(state)
        for link in range(_MAX_NVLINKS)
        if (state := _ask(nvml, nvml.nvmlDeviceGetNvLinkState, handle, link)) is not None
    ]
    return Gpu(
        index=index,
        uuid=_text(_ask(nvml, nvml.nvmlDeviceGetUUID, handle)) or "",
        model=_text(_ask(nvml, nvml.nvmlDeviceGetName, handle)),
        pci=_pci(nvml, handle),
        memory_mib=None if memory is None else int(memory.total) // _MIB,
        used_mib=None if memory is None else int(memory.used) // _MIB,
        processes=tuple(sorted(int(item.pid) for item in processes)),
        ecc_uncorrected=None if ecc is None else int(ecc),
        remap_pending=None if remapped is None else bool(remapped[2]),
        remap_failed=None if remapped is None else bool(remapped[3]),
        recovery=_recovery(nvml, handle),
        nvlinks_up=links.count(True) if links else None,  # a card without NVLink tells of none
        nvlinks_down=links.count(False) if links else None,
    )


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _pci(nvml: Nvml, handle: Any) -> str | None:
    info = _ask(nvml, nvml.nvmlDeviceGetPciInfo, handle)
    if info is None:
        return None
    # NVML writes an eight-digit domain, sysfs a four-digit one.
    match = re.fullmatch(r"(?:0000)?([0-9A-Fa-f]{4,8}:\S+)", _text(info.busId) or "")
    return match.group(1).lower() if match else None


def _recovery(nvml: Nvml, handle: Any) -> str | None:
    answer = _ask(nvml, nvml.nvmlDeviceGetFieldValues, handle, [_FI_RECOVERY_ACTION])
    if not answer or answer[0].nvmlReturn != 0:
        return None
    return _RECOVERY.get(int(answer[0].value.uiVal), f"action {answer[0].value.uiVal}")


def with_nearest_hca(
    gpus: tuple[Gpu, ...], hcas: tuple[Hca, ...], reader: Reader
) -> tuple[Gpu, ...]:
    """Return the GPUs, each with the HCA that has the shortest PCI way to it."""
    return tuple(_near(gpu, hcas, reader) for gpu in gpus)


def _near(gpu: Gpu, hcas: tuple[Hca, ...], reader: Reader) -> Gpu:
    if gpu.pci is None or not reader.exists(f"/sys/bus/pci/devices/{gpu.pci}"):
        return gpu
    path = reader.real(f"/sys/bus/pci/devices/{gpu.pci}")
    numa = reader.number(f"/sys/bus/pci/devices/{gpu.pci}/numa_node", required=False)
    ranked = [
        (_RANK.index(distance), hca.name, distance)
        for hca in hcas
        if hca.pci_path
        for distance in [pci_distance(path, hca.pci_path, same_numa=numa == hca.numa)]
    ]
    if not ranked:
        return gpu
    _, name, distance = min(ranked)
    return replace(gpu, nearest_hca=name, distance=distance)


_RANK = ("PIX", "PXB", "PHB", "NODE", "SYS")


def pci_distance(first: str, second: str, *, same_numa: bool) -> str:
    """Return the way between two PCI devices in NCCL's words.

    PIX: under one switch; PXB: over several switches of one root port; PHB: over one host bridge;
    NODE: over bridges of one NUMA node; SYS: over the sockets' interconnect (NCCL's user guide,
    NCCL_NET_GDR_LEVEL).

    Args:
        first: Path below /sys/devices, e.g. `/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0`.
        second: The other one.
        same_numa: Whether the kernel puts both on one NUMA node.
    """
    a, b = _below_devices(first), _below_devices(second)
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    if shared == 0:
        return "NODE" if same_numa else "SYS"
    if shared == 1:
        return "PHB"
    # From the last shared bridge down to each device: one hop each under a single switch's ports.
    hops = max(len(a), len(b)) - shared
    return "PIX" if hops <= 2 else "PXB"


def _below_devices(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return parts[parts.index("devices") + 1 :] if "devices" in parts else parts
