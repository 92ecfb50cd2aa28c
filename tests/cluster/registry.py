"""Which cluster numbers are taken, by whom, and how all that a cluster left is taken away."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cluster.layout import BASE, Layout
from tests.cluster.processes import Processes, Started, alive, kill_all, seen_mounting, start_ticks
from tests.cluster.shell import ClusterError, run, wait_until
from tests.cluster.spec import ClusterSpec

__all__ = ["claim", "existing", "in_use", "locked", "read_state", "remove"]

_HIGHEST = 250


@contextlib.contextmanager
def locked(base: Path = BASE) -> Iterator[None]:
    """Meanwhile nobody is given a number, and nothing that a dead owner left is taken away."""
    base.mkdir(parents=True, exist_ok=True)
    with (base / "numbers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def claim(spec: ClusterSpec, controller: str, *, detached: bool, base: Path = BASE) -> Layout:
    """Take the first free number, after removing every cluster whose owner is gone.

    Args:
        spec: Recorded for those who attach later.
        controller: Host name of this machine.
        detached: The cluster outlives this process, until somebody takes it down.
        base: Folder of all clusters.

    Raises:
        ClusterError: No number is free.
    """
    with locked(base):
        for stale in existing(base):
            if not in_use(stale):
                remove(stale)
        for index in range(1, _HIGHEST + 1):
            layout = Layout(index, controller, base)
            if layout.root.exists():
                continue
            layout.root.mkdir(mode=0o755)
            owner = {"pid": os.getpid(), "ticks": start_ticks(os.getpid()), "detached": detached}
            state = {"controller": controller, "owner": owner, "spec": spec.to_dict()}
            layout.state_file.write_text(json.dumps(state, indent=1))
            return layout
    raise ClusterError(f"all {_HIGHEST} cluster numbers are in use: take one down")


def read_state(root: Path) -> dict[str, Any]:
    """What is recorded of the cluster in that folder; empty when its making was cut short."""
    try:
        state: dict[str, Any] = json.loads((root / "state.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return state


def in_use(layout: Layout) -> bool:
    """Whether somebody still wants this cluster: its owner lives, or it was raised by hand."""
    owner = read_state(layout.root).get("owner")
    if owner is None:
        return False
    if alive(Started("owner", owner["pid"], owner["ticks"])):
        return True
    # Up until it is taken down; but nothing of it lives after a reboot.
    recorded = Processes(layout.process_file, layout.logs).recorded() if owner["detached"] else []
    return any(alive(started) for started in recorded)


def existing(base: Path = BASE) -> list[Layout]:
    """Every cluster that has a folder, in use or not."""
    # 0 is the template in the making, which has a lock of its own.
    numbers = sorted(int(p.name) for p in base.glob("[1-9]*") if p.name.isdigit())
    return [
        Layout(n, read_state(base / str(n)).get("controller", "localhost"), base) for n in numbers
    ]


def remove(layout: Layout) -> None:
    """End every process of the cluster, and take away its cable, its mounts and its folder.

    Works from what lies on disk and in /proc, so also for a cluster whose owner crashed.

    Raises:
        ClusterError: Something could not be taken away.
    """
    # The nodes first: a daemon of theirs would otherwise log the loss of the controller.
    kill_all(seen_mounting(layout.root))
    Processes(layout.process_file, layout.logs).kill_everything()
    _unplug(layout.host_interface)
    for mount in _mounts_below(layout.root):
        run(["umount", "--lazy", mount])
    # Its number is free with this name: whoever is given it next makes a folder of the same name.
    gone = Path(tempfile.mkdtemp(prefix="gone-", dir=layout.base))
    with contextlib.suppress(FileNotFoundError):
        layout.root.rename(gone)
    # Twice, as the lazy unmount of a folder that was busy a moment ago can trail behind.
    shutil.rmtree(gone, ignore_errors=True)
    if gone.exists():
        shutil.rmtree(gone)


def _unplug(interface: str) -> None:
    link = Path("/sys/class/net") / interface
    # The kernel takes the cable away with the switch, a moment later; whoever is first wins.
    if link.exists():
        run(["ip", "link", "delete", interface], check=False)
    wait_until(lambda: not link.exists(), f"{interface} to vanish", timeout_s=60)


def _mounts_below(folder: Path) -> list[str]:
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [row.split()[4] for row in rows]
    return sorted((p for p in points if p.startswith(f"{folder}/")), reverse=True)
