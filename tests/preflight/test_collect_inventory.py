# ruff: noqa: N802 (made functions bear the names of NVML)
from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.plan.gpus_given import gpus_on_node
from hpc_train.preflight.inventory.cgroup import memory_available_bytes
from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.inventory.gpus import pci_distance
from hpc_train.preflight.inventory.interfaces import kind_of
from hpc_train.preflight.inventory.inventory import NodeInventory, Unreadable
from hpc_train.preflight.inventory.sysfs import Reader

from .made_sysfs import MadeInterface, bond_hca, docker0, ib_node, roce_node, tcp_node


def seen(node, folder: Path, **kwargs) -> NodeInventory:
    return collect_inventory(
        node.write(folder / node.name), {}, lambda: 1.0, node=node.name, **kwargs
    )


def test_a_healthy_infiniband_node_is_read_whole(tmp_path):
    node = seen(ib_node(3), tmp_path)
    assert [hca.name for hca in node.hcas] == ["mlx5_0", "mlx5_1"]
    port = node.hcas[0].ports[0]
    assert (port.state, port.phys_state, port.rate_gbps) == ("ACTIVE", "LinkUp", 400.0)
    assert (port.link_layer, port.lid, port.sm_lid) == ("InfiniBand", 48, 1)
    assert [gid.index for gid in port.gids] == [0]
    assert port.gids[0].is_link_local
    assert port.counters["symbol_error"] == 0
    assert node.hcas[0].pci_path.endswith("0000:40:00.0")
    assert node.verbs.openable
    assert node.verbs.library
    assert node.verbs.gpudirect == ("nvidia_peermem",)
    assert node.limits.memlock_bytes == -1
    assert node.limits.cpus == 8
    assert node.clock.unix_s == 1.0
    assert node.unreadable == ()


def test_interfaces_tell_their_kind_address_speed_and_mtu(tmp_path):
    node = seen(ib_node(2).plus(docker0(), bond_hca(2)[1]), tmp_path)
    kinds = {item.name: item.kind for item in node.interfaces}
    assert kinds == {
        "lo": "loopback",
        "docker0": "docker",
        "eth0": "ethernet",
        "ib0": "ipoib",
        "bond0": "bond",
    }
    assert node.interface("ib0").ipv4 == ("10.1.0.2/24",)
    assert node.interface("ib0").mtu == 4092
    assert node.interface("eth0").speed_mbps == 10_000


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("eth0", "ethernet"),
        ("enp3s0f1", "ethernet"),
        ("veth12ab", "veth"),
        ("docker0", "docker"),
        ("br-0123456789ab", "docker"),
        ("virbr0", "virbr"),
        ("cni0", "cni"),
        ("cali123", "cni"),
        ("tun0", "tunnel"),
    ],
)
def test_a_container_engines_interface_is_told_by_its_name(name, kind):
    assert kind_of(name, 1, frozenset()) == kind


def test_the_way_out_of_a_container_is_ethernet_although_it_is_a_veth(tmp_path):
    node = seen(tcp_node(1), tmp_path)
    assert node.interface("eth0").kind == "ethernet"


def test_roce_gids_carry_type_and_interface_and_absent_entries_are_skipped(tmp_path):
    node = seen(roce_node(1, v2_index=5), tmp_path)
    gids = node.hcas[0].ports[0].gids
    assert [gid.index for gid in gids] == [0, 1, 4, 5]
    assert gids[-1].type == "RoCE v2"
    assert gids[-1].interface == "rdma0"
    assert gids[-1].is_ipv4
    assert node.unreadable == ()


def test_an_hca_behind_a_bond_is_known_as_one(tmp_path):
    node = seen(ib_node(1).plus(*bond_hca(1)), tmp_path)
    assert {hca.name: hca.is_bond for hca in node.hcas} == {
        "mlx5_0": False,
        "mlx5_1": False,
        "mlx5_bond_0": True,
    }


def test_a_leg_of_a_bond_is_known_by_its_master(tmp_path):
    root = roce_node(1).write(tmp_path / "n")
    (root / "sys/class/net/bond0/bonding").mkdir(parents=True)
    (root / "sys/class/net/rdma1/master").symlink_to("../bond0")
    node = collect_inventory(root, {}, lambda: 1.0)
    assert {hca.name: hca.is_bond for hca in node.hcas} == {"mlx5_0": False, "mlx5_1": True}


@pytest.mark.parametrize(
    ("file", "text", "field", "reason"),
    [
        ("state", "", "state", "empty"),
        ("state", "4", "state", "malformed"),
        ("rate", "400 G", "rate_gbps", "malformed"),
        ("phys_state", "", "phys_state", "empty"),
        ("lid", "zero", "lid", "malformed"),
    ],
)
def test_a_truncated_file_is_unknown_and_its_path_is_told(tmp_path, file, text, field, reason):
    root = ib_node(1).write(tmp_path / "n")
    path = f"/sys/class/infiniband/mlx5_1/ports/1/{file}"
    (root / path[1:]).write_text(text)
    node = collect_inventory(root, {}, lambda: 1.0)
    assert getattr(node.hca("mlx5_1").ports[0], field) is None
    assert node.unreadable == (Unreadable(path, reason),)


def test_a_file_that_is_a_folder_is_unknown(tmp_path):
    root = ib_node(1).write(tmp_path / "n")
    path = root / "sys/class/infiniband/mlx5_0/ports/1/state"
    path.unlink()
    path.mkdir()
    node = collect_inventory(root, {}, lambda: 1.0)
    assert node.hca("mlx5_0").ports[0].state is None
    assert [item.reason for item in node.unreadable] == ["EISDIR"]


def test_an_hca_without_ports_is_told(tmp_path):
    root = ib_node(1).write(tmp_path / "n")
    (root / "sys/class/infiniband/mlx5_9").mkdir()
    node = collect_inventory(root, {}, lambda: 1.0)
    assert node.hca("mlx5_9").ports == ()
    assert ("/sys/class/infiniband/mlx5_9/ports", "empty") in [
        (item.path, item.reason) for item in node.unreadable
    ]


def test_an_empty_root_gives_an_inventory_without_anything(tmp_path):
    node = collect_inventory(tmp_path, {}, lambda: 1.0)
    assert node.hcas == ()
    assert node.interfaces == ()
    assert node.limits.memlock_bytes is None
    assert not node.verbs.library


def test_this_machine_is_read():
    node = collect_inventory(Path("/"), os.environ)
    assert node.interface("lo").ipv4 == ("127.0.0.1/8",)
    assert node.limits.cpus == len(os.sched_getaffinity(0))
    assert node.look_s > 0


def test_eight_hcas_with_full_gid_tables_are_read(tmp_path):
    made = roce_node(1, hcas=8, v2_index=255)
    node = seen(made, tmp_path)
    assert len(node.hcas) == 8
    assert all(len(hca.ports[0].gids) > 1 for hca in node.hcas)


def test_an_inventory_survives_json(tmp_path):
    node = seen(roce_node(1).plus(*bond_hca(1)), tmp_path)
    assert NodeInventory.from_json(node.to_json()) == node


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_garbage_from_another_node_is_a_value_error(garbage):
    with pytest.raises(ValueError, match="NodeInventory"):
        NodeInventory.from_json(garbage)


@pytest.mark.parametrize(
    ("key", "value"),
    [("hcas", [{"name": 3}]), ("node", None), ("limits", {"cpus": True}), ("look_s", "fast")],
)
def test_a_field_of_another_type_is_named(tmp_path, key, value):
    document = seen(ib_node(1), tmp_path).to_json() | {key: value}
    with pytest.raises(ValueError, match=f"NodeInventory.{key}"):
        NodeInventory.from_json(document)


@pytest.mark.parametrize(
    ("env", "count"),
    [
        ({}, None),
        ({"SLURM_GPUS_ON_NODE": "4"}, 4),
        ({"SLURM_JOB_GPUS": "0,1,2"}, 3),
        ({"SLURM_STEP_GPUS": "0-3,7"}, 5),
        ({"SLURM_GPUS_ON_NODE": "gpu:a100:4"}, None),
    ],
)
def test_slurm_says_how_many_gpus_it_gave(env, count):
    assert gpus_on_node(env) == count


def test_the_pci_way_has_nccls_names():
    switch = "/sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0"
    gpu = f"{switch}/0000:18:00.0/0000:19:00.0"
    near = f"{switch}/0000:18:01.0/0000:1a:00.0"
    deep = f"{switch}/0000:18:01.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0"
    assert pci_distance(gpu, near, same_numa=True) == "PIX"
    assert pci_distance(gpu, deep, same_numa=True) == "PXB"
    bridge = "/sys/devices/pci0000:16/0000:16:05.0/0000:40:00.0"
    assert pci_distance(gpu, bridge, same_numa=True) == "PHB"
    other = "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0"
    assert pci_distance(gpu, other, same_numa=True) == "NODE"
    assert pci_distance(gpu, other, same_numa=False) == "SYS"


class FakeNvml:
    """NVML's functions for two cards: the second supports neither ECC nor NVLink (a PCIe card)."""

    class NVMLError(Exception):
        pass

    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return b"NVIDIA H100" if handle == 0 else "NVIDIA L40S"

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{handle}000"

    def nvmlDeviceGetPciInfo(self, handle):
        return SimpleNamespace(busId=f"00000000:{0x1B + handle:02X}:00.0")

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=80 << 30, used=2 << 30)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=77)] if handle == 0 else []

    def nvmlDeviceGetRemappedRows(self, handle):
        return self._only_first(handle, (0, 0, 0, 0))

    def nvmlDeviceGetTotalEccErrors(self, handle, kind, counter):
        return self._only_first(handle, 0)

    def nvmlDeviceGetFieldValues(self, handle, ids):
        value = SimpleNamespace(uiVal=0)
        return [SimpleNamespace(nvmlReturn=0 if handle == 0 else 3, value=value)]

    def nvmlDeviceGetNvLinkState(self, handle, link):
        return self._only_first(handle, 0 if link == 4 else 1)

    def _only_first(self, handle, value):
        if handle != 0:
            raise self.NVMLError("Not Supported")
        return value


def test_gpus_are_read_and_not_supported_is_not_down(tmp_path):
    first, second = seen(ib_node(1), tmp_path, nvml=FakeNvml()).gpus
    assert (first.model, first.pci, first.used_mib) == ("NVIDIA H100", "0000:1b:00.0", 2048)
    assert (first.processes, first.recovery) == ((77,), "none")
    assert (first.nvlinks_up, first.nvlinks_down) == (17, 1)
    assert (second.ecc_uncorrected, second.nvlinks_down, second.recovery) == (None, None, None)


def test_only_the_gpus_of_this_step_are_read(tmp_path):
    root = ib_node(1).write(tmp_path / "n")
    gpus = collect_inventory(root, {"CUDA_VISIBLE_DEVICES": "1"}, lambda: 1.0, nvml=FakeNvml()).gpus
    assert [gpu.index for gpu in gpus] == [1]


def test_a_gpu_knows_its_nearest_hca(tmp_path):
    made = ib_node(1)
    root = made.write(tmp_path / "n")
    pci = "pci0000:17/0000:17:01.0/0000:1b:00.0"
    (root / "sys/devices" / pci).mkdir(parents=True)
    devices = root / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    (devices / "0000:1b:00.0").symlink_to(f"../../../devices/{pci}")
    gpu = collect_inventory(root, {}, lambda: 1.0, nvml=FakeNvml()).gpus[0]
    assert (gpu.nearest_hca, gpu.distance) == ("mlx5_1", "PIX")


def test_a_container_is_told(tmp_path):
    root = tcp_node(1).write(tmp_path / "n")
    assert collect_inventory(root, {}, lambda: 1.0).container is None
    assert (
        collect_inventory(root, {"APPTAINER_CONTAINER": "/x.sif"}, lambda: 1.0).container
        == "apptainer"
    )
    (root / ".dockerenv").touch()
    assert collect_inventory(root, {}, lambda: 1.0).container == "docker"


def test_the_tightest_cgroup_limit_on_the_way_up_counts(tmp_path):
    group = "sys/fs/cgroup/slice"
    extra = {
        f"{group}/job/memory.max": "max",
        f"{group}/memory.max": str(8 << 30),
        f"{group}/job/cpu.max": "150000 100000",
        f"{group}/cpu.max": "max 100000",
    }
    limits = seen(replace(tcp_node(1), extra=extra), tmp_path).limits
    assert limits.memory_max_bytes == 8 << 30
    assert limits.cpu_quota == 1.5


def test_memory_is_free_as_far_as_the_machine_and_every_group_has_some(tmp_path):
    group = "sys/fs/cgroup/slice"
    extra = {
        f"{group}/job/memory.max": "max",
        f"{group}/job/memory.current": str(1 << 30),
        f"{group}/memory.max": str(8 << 30),
        f"{group}/memory.current": str(6 << 30),
        "proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 4194304 kB\n",
    }
    reader = Reader(replace(tcp_node(1), extra=extra).write(tmp_path / "limited"))
    assert memory_available_bytes(reader) == 2 << 30
    free = {**extra, f"{group}/memory.max": "max"}
    reader = Reader(replace(tcp_node(1), extra=free).write(tmp_path / "free"))
    assert memory_available_bytes(reader) == 4 << 30
    assert memory_available_bytes(Reader(tmp_path / "nothing")) is None


def test_an_interface_that_is_down_has_no_speed_and_that_is_no_fault(tmp_path):
    made = tcp_node(1).plus(MadeInterface("eth1", 7, None, state="down", speed=-1))
    node = seen(made, tmp_path)
    assert node.interface("eth1").speed_mbps is None
    assert node.unreadable == ()


def test_looking_needs_neither_torch_nor_anything_outside_the_standard_library():
    code = (
        "import sys, hpc_train.preflight.choose.choose;"
        "import hpc_train.preflight.inventory.collect_inventory;"
        "print([m for m in sys.modules if m.partition('.')[0] in"
        " ('torch','numpy','psutil','pynvml','yaml','omegaconf','asyncio')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
