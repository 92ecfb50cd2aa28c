"""Made InfiniBand of a node: /sys/class/infiniband, _mad and _verbs, and /dev/infiniband.

Each node's /sys/class is a folder of its own (see nodes.py), so what is written here is at once
what ``ibstat``, NCCL or a preflight on that node reads. Formats: the kernel's Documentation/ABI,
sysfs-class-infiniband.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.cluster import Cluster

__all__ = ["Hca", "Port", "healthy", "set_hcas", "set_port", "use_tree"]

_COUNTERS = (
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "port_rcv_constraint_errors",
    "port_rcv_data",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_packets",
    "port_xmit_wait",
    "symbol_error",
)
_DEFAULT_PKEY = "0xffff"
_NO_GID = ":".join(["0000"] * 8)
_CLASSES = ("infiniband", "infiniband_mad", "infiniband_verbs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Port:
    """One port; the texts are those of the files of the same names.

    ``gids`` holds rows of index, GID, type (``IB/RoCE v1``, ``RoCE v2``) and interface; "" is none.
    """

    state: str = "4: ACTIVE"
    phys_state: str = "5: LinkUp"
    rate: str = "400 Gb/sec (4X NDR)"
    link_layer: str = "InfiniBand"
    lid: str = "0x10"
    sm_lid: str = "0x1"
    gids: tuple[tuple[int, str, str, str], ...] = ()
    counters: tuple[tuple[str, int], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hca:
    """One adapter; ``pci`` is its path below /sys/devices."""

    name: str
    ports: tuple[Port, ...] = (Port(),)
    pci: str = "pci0000:16/0000:16:01.0/0000:17:00.0"
    numa_node: int = 0
    guid: str = "b83f:d203:0001:0001"
    hca_type: str = "MT4129"
    firmware: str = "28.39.1002"
    interfaces: tuple[str, ...] = ()


def healthy(number: int, *, hcas: int = 2, rate: str = "400 Gb/sec (4X NDR)") -> tuple[Hca, ...]:
    """The adapters of the healthy node ``number``: one port each, active, own LIDs and GIDs."""
    made = []
    for i in range(hcas):
        gid = f"fe80:0000:0000:0000:b83f:d203:00{number:02x}:00{i:02x}"
        port = Port(rate=rate, lid=hex(16 * number + i), gids=((0, gid, "", ""),))
        pci = f"pci0000:{16 + 16 * i:02x}/0000:{17 + 16 * i:02x}:00.0"
        guid = f"b83f:d203:00{number:02x}:00{i:02x}"
        made.append(Hca(name=f"mlx5_{i}", ports=(port,), pci=pci, numa_node=i % 2, guid=guid))
    return tuple(made)


def set_hcas(cluster: Cluster, node: str, hcas: Sequence[Hca], *, keep: bool = False) -> None:
    """Give a node these adapters in place of those it had; none takes InfiniBand away.

    Args:
        cluster: The cluster.
        node: Its node.
        hcas: The adapters.
        keep: They stay when the cluster is reset after a test.
    """
    folder = cluster.layout.node_dir(node)
    if hcas and not keep:
        cluster.on_reset(lambda: set_hcas(cluster, node, ()))
    _clear(folder)
    for number, hca in enumerate(hcas):
        _write_hca(folder, hca)
        _write_umad(folder, hca.name, number)
    if hcas:
        _put(folder / "class/infiniband_mad/abi_version", "5")
        _put(folder / "class/infiniband_verbs/abi_version", "6")
    _set_devices(cluster, node, len(hcas))


def set_port(cluster: Cluster, node: str, hca: str, port: int = 1, **files: str | int) -> None:
    """Rewrite files of one port, for example ``state="1: DOWN"`` or ``counters__link_downed=3``.

    A double underscore stands for the slash.
    """
    base = cluster.layout.node_dir(node) / "class/infiniband" / hca / "ports" / str(port)
    for name, text in files.items():
        file = base / name.replace("__", "/")
        # Renamed into place, so that a reader never finds half of it.
        made = file.with_name(f".{file.name}.new")
        made.write_text(f"{text}\n")
        made.replace(file)


def use_tree(cluster: Cluster, node: str, root: Path, *, keep: bool = False) -> None:
    """Give a node the adapters of a tree made elsewhere, with ``sys/class/infiniband`` in it.

    Args:
        cluster: The cluster.
        node: Its node.
        root: The folder that stands for the node's root; it is copied.
        keep: They stay when the cluster is reset after a test.
    """
    folder = cluster.layout.node_dir(node)
    if not keep:
        cluster.on_reset(lambda: set_hcas(cluster, node, ()))
    _clear(folder)
    for name in _CLASSES:
        source = root / "sys/class" / name
        if source.exists():
            shutil.copytree(source, folder / "class" / name, symlinks=True)
    if (root / "sys/devices").exists():
        shutil.copytree(root / "sys/devices", folder / "devices", symlinks=True)
    names = sorted(p.name for p in (folder / "class/infiniband").glob("*"))
    for number, name in enumerate(names):
        _settle(folder, name, number)
    if names:
        _put(folder / "class/infiniband_mad/abi_version", "5")
    _set_devices(cluster, node, len(names))


def _settle(folder: Path, name: str, number: int) -> None:
    base = folder / "class/infiniband" / name
    link = base / "device"
    if link.is_symlink():
        # Relative to the tree it led into its sys/devices; there is nothing in the real one.
        pci = str(link.readlink()).partition("devices/")[2]
        link.unlink()
        link.symlink_to(folder / "devices" / pci)
    for port in (base / "ports").glob("*"):
        # Without one ibstat calls the adapter missing.
        if not (port / "pkeys").exists():
            _put(port / "pkeys/0", _DEFAULT_PKEY)
    if not (folder / "class/infiniband_mad" / f"umad{number}").exists():
        _write_umad(folder, name, number)


def _clear(folder: Path) -> None:
    for name in _CLASSES:
        shutil.rmtree(folder / "class" / name, ignore_errors=True)
    shutil.rmtree(folder / "devices", ignore_errors=True)


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def _write_hca(folder: Path, hca: Hca) -> None:
    base = folder / "class/infiniband" / hca.name
    device = folder / "devices" / hca.pci
    _put(device / "numa_node", str(hca.numa_node))
    _put(device / "vendor", "0x15b3")
    for interface in hca.interfaces:
        (device / "net" / interface).mkdir(parents=True)
    texts = {
        "node_type": "1: CA",
        "node_guid": hca.guid,
        "sys_image_guid": hca.guid,
        "node_desc": hca.name,
        "hca_type": hca.hca_type,
        "fw_ver": hca.firmware,
        "hw_rev": "0x0",
    }
    for name, text in texts.items():
        _put(base / name, text)
    (base / "device").symlink_to(device)
    for number, port in enumerate(hca.ports, start=1):
        _write_port(base / "ports" / str(number), port)


def _write_port(base: Path, port: Port) -> None:
    for name in ("state", "phys_state", "rate", "link_layer", "lid", "sm_lid"):
        _put(base / name, getattr(port, name))
    _put(base / "lid_mask_count", "0")
    _put(base / "sm_sl", "0")
    _put(base / "cap_mask", "0xa651e848")
    _put(base / "pkeys/0", _DEFAULT_PKEY)
    for name in _COUNTERS:
        _put(base / "counters" / name, str(dict(port.counters).get(name, 0)))
    (base / "gid_attrs/types").mkdir(parents=True)
    (base / "gid_attrs/ndevs").mkdir()
    last = max((row[0] for row in port.gids), default=-1)
    for index in range(last + 2):
        _put(base / "gids" / str(index), _NO_GID)
    for index, gid, kind, interface in port.gids:
        _put(base / "gids" / str(index), gid)
        if kind:
            _put(base / "gid_attrs/types" / str(index), kind)
        if interface:
            _put(base / "gid_attrs/ndevs" / str(index), interface)


def _write_umad(folder: Path, name: str, number: int) -> None:
    umad = folder / "class/infiniband_mad" / f"umad{number}"
    _put(umad / "ibdev", name)
    _put(umad / "port", "1")
    _put(umad / "dev", f"231:{number}")
    verbs = folder / "class/infiniband_verbs" / f"uverbs{number}"
    _put(verbs / "ibdev", name)
    _put(verbs / "abi_version", "1")
    _put(verbs / "dev", f"231:{192 + number}")


# /dev is shared with the host, whose folder must stay as it is: the node gets a layer above it.
_LAYER_DEV = r"""
set -eu
dir=$1
mkdir -p "$dir/dev-upper/infiniband" "$dir/dev-work" "$dir/dev-shm" "$dir/dev-pts"
mount --rbind /dev/shm "$dir/dev-shm"
mount --rbind /dev/pts "$dir/dev-pts"
mount -t overlay overlay -o "lowerdir=/dev,upperdir=$dir/dev-upper,workdir=$dir/dev-work" /dev
mount --rbind "$dir/dev-shm" /dev/shm
mount --rbind "$dir/dev-pts" /dev/pts
"""


def _set_devices(cluster: Cluster, node: str, count: int) -> None:
    folder = cluster.layout.node_dir(node)
    if not (folder / "dev-upper").exists():
        if not count:
            return
        cluster.node_exec(node, ["sh", "-c", _LAYER_DEV, "layer", str(folder)])
    present = " ".join(
        f"/dev/infiniband/{kind}{i}" for kind in ("umad", "uverbs") for i in range(16)
    )
    cluster.node_exec(node, ["sh", "-c", f"rm -f {present}"])
    for i in range(count):
        for kind in ("umad", "uverbs"):
            device = f"/dev/infiniband/{kind}{i}"
            cluster.node_exec(node, ["mknod", "-m", "666", device, "c", "1", "3"])
