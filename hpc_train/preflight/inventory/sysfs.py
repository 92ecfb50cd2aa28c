"""The only reader of /sys and /proc: every path lies under an injected root.

Paths and formats: the kernel's Documentation/ABI (sysfs-class-infiniband, sysfs-class-net).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from hpc_train.preflight.inventory.inventory import Gid, Hca, Port, Unreadable

COUNTERS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
)

# A GID table has up to 256 entries a port, nearly all empty; each read is a call into the driver.
_MAX_GIDS = 256
_MAX_FILE = 1 << 20
_EMPTY_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
_GID = re.compile(r"[0-9a-fA-F]{4}(:[0-9a-fA-F]{4}){7}")
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


class Reader:
    """Reads small files under a root and remembers what it could not read.

    Args:
        root: `/`, or the root of a made tree.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._base = str(root).rstrip("/")
        self.unreadable: list[Unreadable] = []

    def path(self, path: str) -> str:
        """Return where `path` (with a leading slash) lies on this machine."""
        return self._base + path

    def text(self, path: str, *, required: bool = True) -> str | None:
        """Return the stripped text of a file, or None; a failure is noted unless it may be absent.

        A file that exists and is empty tells nothing: sysfs never writes one for these questions,
        so it counts as truncated. EINVAL is the kernel's answer for what does not apply: the entry
        of a table that is not in use, the speed of an interface that is down.
        """
        try:
            # os.open instead of open(): a third of the time, and there are a thousand files.
            handle = os.open(self._base + path, os.O_RDONLY)
            try:
                raw = _whole(handle)
            finally:
                os.close(handle)
        except OSError as error:
            if required or error.errno not in (errno.ENOENT, errno.EINVAL):
                self.note(path, _name(error))
            return None
        text = raw.decode("utf-8", "replace").strip()
        if not text:
            if required:
                self.note(path, "empty")
            return None
        return text

    def number(self, path: str, *, required: bool = True) -> int | None:
        """Return the integer in a file (decimal, or hex with 0x), or None."""
        text = self.text(path, required=required)
        if text is None:
            return None
        try:
            return int(text, 0)
        except ValueError:
            self.note(path, "malformed")
            return None

    def names(self, path: str) -> list[str]:
        """Return the sorted entries of a folder; an absent folder has none and is no failure."""
        try:
            return sorted(os.listdir(self._base + path))  # noqa: PTH208 (three times faster)
        except FileNotFoundError:
            return []
        except OSError as error:
            self.note(path, _name(error))
            return []

    def exists(self, path: str) -> bool:
        """Return whether the path is there."""
        return os.path.lexists(self._base + path)

    def real(self, path: str) -> str:
        """Return the path with its links followed, seen from the root."""
        real = os.path.realpath(self._base + path)
        base = os.path.realpath(self._base or "/")
        return real[len(base) :] if base != "/" and real.startswith(base) else real

    def note(self, path: str, reason: str) -> None:
        """Remember a path that did not tell what it should."""
        self.unreadable.append(Unreadable(path, reason))


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def _whole(handle: int) -> bytes:
    """Read to the end: procfs gives a page at a time, whatever is asked for."""
    raw = piece = os.read(handle, 65536)
    while piece and len(raw) < _MAX_FILE:
        piece = os.read(handle, 65536)
        raw += piece
    return raw


def read_hcas(reader: Reader) -> tuple[Hca, ...]:
    """Return all HCAs, in order of their PCI path as NCCL sorts them."""
    hcas = [_hca(reader, name) for name in reader.names("/sys/class/infiniband")]
    return tuple(sorted(hcas, key=lambda hca: (hca.pci_path or "~", hca.name)))


def read_counters(reader: Reader) -> dict[str, int]:
    """Return every error counter as `mlx5_0:1/symbol_error -> value`, for a change over time."""
    return {
        f"{name}:{number}/{counter}": value
        for name in reader.names("/sys/class/infiniband")
        for number in reader.names(f"/sys/class/infiniband/{name}/ports")
        for counter, value in _counters(reader, f"/sys/class/infiniband/{name}/ports/{number}")
    }


def _hca(reader: Reader, name: str) -> Hca:
    base = f"/sys/class/infiniband/{name}"
    real = reader.real(f"{base}/device")
    interfaces = tuple(reader.names(f"{base}/device/net"))
    numbers = sorted(int(text) for text in reader.names(f"{base}/ports") if text.isdigit())
    if not numbers:
        reader.note(f"{base}/ports", "empty")
    ports = tuple(_port(reader, f"{base}/ports/{number}", number) for number in numbers)
    tied = {gid.interface for port in ports for gid in port.gids if gid.interface}
    return Hca(
        name=name,
        ports=ports,
        pci_path=real if _PCI.fullmatch(os.path.basename(real)) else None,  # noqa: PTH119
        numa=reader.number(f"{base}/device/numa_node", required=False),
        interfaces=interfaces,
        is_bond="bond" in name or any(_is_bonded(reader, i) for i in {*interfaces, *tied}),
        model=reader.text(f"{base}/hca_type", required=False),
    )


def _is_bonded(reader: Reader, interface: str) -> bool:
    base = f"/sys/class/net/{interface}"
    return reader.exists(f"{base}/bonding") or reader.exists(f"{base}/master/bonding")


def _port(reader: Reader, base: str, number: int) -> Port:
    link_layer = reader.text(f"{base}/link_layer")
    on_ib = link_layer != "Ethernet"
    return Port(
        number=number,
        state=_after_colon(reader, f"{base}/state"),
        phys_state=_after_colon(reader, f"{base}/phys_state"),
        rate_gbps=_rate(reader, f"{base}/rate"),
        link_layer=link_layer,
        # RoCE has no subnet manager: some drivers leave the files out, and 0 means nothing there.
        lid=reader.number(f"{base}/lid", required=on_ib),
        sm_lid=reader.number(f"{base}/sm_lid", required=on_ib),
        gids=tuple(_gids(reader, base)),
        counters=dict(_counters(reader, base)),
    )


def _after_colon(reader: Reader, path: str) -> str | None:
    text = reader.text(path)
    if text is None:
        return None
    number, colon, word = text.partition(":")
    if not colon or not number.strip().isdigit() or not word.strip():
        reader.note(path, "malformed")
        return None
    return word.strip()


def _rate(reader: Reader, path: str) -> float | None:
    text = reader.text(path)
    if text is None:
        return None
    match = re.match(r"([0-9.]+)\s*Gb/sec", text)
    if match is None:
        reader.note(path, "malformed")
        return None
    return float(match.group(1))


def _gids(reader: Reader, base: str) -> Iterator[Gid]:
    indices = sorted(int(text) for text in reader.names(f"{base}/gids") if text.isdigit())
    for index in indices[:_MAX_GIDS]:
        gid = reader.text(f"{base}/gids/{index}", required=False)
        if gid is None or gid == _EMPTY_GID:
            continue
        if not _GID.fullmatch(gid):
            reader.note(f"{base}/gids/{index}", "malformed")
            continue
        yield Gid(
            index=index,
            gid=gid,
            type=reader.text(f"{base}/gid_attrs/types/{index}", required=False),
            interface=reader.text(f"{base}/gid_attrs/ndevs/{index}", required=False),
        )


def _counters(reader: Reader, base: str) -> Iterator[tuple[str, int]]:
    for name in COUNTERS:
        # Which of them exist depends on the driver: an absent one is not a fault.
        value = reader.number(f"{base}/counters/{name}", required=False)
        if value is not None:
            yield name, value
