from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hpc_train.errors import CheckError, ConfigError
from hpc_train.plan.gpus_given import gpus_were_given
from hpc_train.training.devices import (
    OF_A_SCRIPT,
    Device,
    DevicesSeen,
    HostSeen,
    Shared,
    check_precision,
    choose_device,
    cpus_per_rank,
    loader_settings,
    ranks_on_host,
    see_devices,
    see_host,
    threads_per_rank,
)
from tests.training.launched import make_world

CPU_BUILD = DevicesSeen(torch_version="2.13.0+cpu", cuda_build=None)
NO_GPU_HERE = DevicesSeen(torch_version="2.13.0", cuda_build="12.8")
CPU = Device(kind="cpu")


def hidden(visible: str) -> DevicesSeen:
    return DevicesSeen(
        torch_version="2.11.0",
        cuda_build="13.0",
        device_files=True,
        driver="580.159",
        visible=visible,
    )


def gpus(count: int, capability: tuple[int, int] = (9, 0)) -> DevicesSeen:
    return DevicesSeen(
        torch_version="2.13.0",
        cuda_build="12.8",
        capabilities=(capability,) * count,
        uuids=tuple(f"uuid-{index}" for index in range(count)),
        device_files=True,
        driver="570.1",
    )


def choose(wanted: str, seen: DevicesSeen, *, given: bool = True, local_rank: int = 2) -> Device:
    return choose_device(wanted, given=given, seen=seen, local_rank=local_rank, ranks_per_node=4)


def test_a_rank_that_sees_all_gpus_takes_the_one_of_its_number() -> None:
    device = choose("gpu", gpus(4))
    assert (device.kind, device.index, device.uuid, device.backend) == (
        "cuda",
        2,
        "uuid-2",
        "nccl",
    )


def test_a_rank_that_sees_only_its_own_gpu_takes_that() -> None:
    device = choose("auto", gpus(1))
    assert (device.index, device.own_only, device.uuid) == (0, True, "uuid-0")


def test_fewer_gpus_than_ranks_is_refused_with_what_to_ask_for() -> None:
    with pytest.raises(CheckError, match="4 ranks a node, and this process sees 2 GPUs"):
        choose("gpu", gpus(2))


@pytest.mark.parametrize(("count", "ranks"), [(1, 4), (1, 2), (2, 4), (3, 4)])
def test_on_a_machine_with_fewer_gpus_than_ranks_auto_takes_the_cpu_and_gpu_is_refused(
    count: int, ranks: int
) -> None:
    """Two simulated nodes of two ranks, as the first example has, on a workstation with one GPU."""

    def chosen(wanted: str, key: str = "trainer.accelerator") -> Device:
        return choose_device(
            wanted,
            given=False,
            seen=gpus(count),
            local_rank=0,
            ranks_per_node=2,
            key=key,
            shared=Shared(count, ranks),
        )

    what = f"{ranks} ranks on this machine and {count} GPU{'s' * (count > 1)}"
    device = chosen("auto")
    assert (device.kind, device.index) == ("cpu", None)
    assert device.note == (
        f"{what}: trains on the CPU (accelerator: auto); --nodes 1 --gpus {count} trains on GPUs"
    )
    for key in ("trainer.accelerator", "script.accelerator"):
        with pytest.raises(CheckError, match=what) as caught:
            chosen("gpu", key)
        fix = f"--nodes 1 --gpus {count} trains on GPUs; {key}: cpu trains all {ranks} on the CPU"
        assert caught.value.hint == fix
    assert chosen("cpu").note == ""


@pytest.mark.parametrize("shared", [Shared(4, 4), Shared(8, 4), None])
def test_with_enough_gpus_on_the_machine_auto_takes_them(shared: Shared | None) -> None:
    device = choose_device(
        "auto", given=False, seen=gpus(4), local_rank=1, ranks_per_node=4, shared=shared
    )
    assert (device.kind, device.index) == ("cuda", 1)


def test_more_gpus_than_ranks_is_said_aloud() -> None:
    assert "8 GPUs visible, 4 used" in choose("gpu", gpus(8)).note


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        (CPU_BUILD, "torch 2.13.0+cpu is a build without CUDA"),
        (NO_GPU_HERE, "without --nv"),
        (
            DevicesSeen(torch_version="2.13.0", cuda_build="12.8", device_files=True),
            "kernel driver is not loaded",
        ),
        (
            DevicesSeen(
                torch_version="2.13.0", cuda_build="13.0", device_files=True, driver="470.57"
            ),
            "torch is built for CUDA 13.0 and the driver is 470.57",
        ),
        (hidden(""), "CUDA_VISIBLE_DEVICES is empty, which hides all GPUs: unset it"),
        (hidden("5"), "CUDA_VISIBLE_DEVICES is 5: is that a GPU of this job"),
        (hidden("GPU-00000000"), "Else torch is built for CUDA 13.0 and the driver is 580.159"),
    ],
)
def test_a_config_that_asks_for_gpus_never_trains_on_the_cpu(seen: DevicesSeen, cause: str) -> None:
    with pytest.raises(CheckError, match="asks for GPUs and torch sees none") as caught:
        choose("gpu", seen)
    assert cause in caught.value.hint


@pytest.mark.parametrize(
    ("key", "asks", "other"),
    [
        ("trainer.accelerator", "the config asks for GPUs", "script.accelerator"),
        ("script.accelerator", "the script is to train on GPUs", "trainer.accelerator"),
    ],
)
def test_the_key_that_trains_on_cpus_is_the_one_of_this_run(
    key: str, asks: str, other: str
) -> None:
    """Both were named, and a script has not the one of a config."""
    with pytest.raises(CheckError, match=f"{asks} and torch sees none") as caught:
        choose_device("gpu", given=True, seen=CPU_BUILD, local_rank=0, ranks_per_node=1, key=key)
    assert caught.value.hint.endswith(f"or write {key}: cpu")
    assert other not in caught.value.hint


def test_auto_falls_back_to_the_cpu_and_says_so() -> None:
    device = choose("auto", CPU_BUILD, given=True)
    assert device.backend == "gloo"
    assert device.note.startswith("WARNING: GPUs were given and torch sees none")
    said = choose("auto", NO_GPU_HERE, given=False).note
    assert said.startswith("the node shows no GPU: trains on the CPU (accelerator: auto)")
    with_files = DevicesSeen(torch_version="2.13.0", cuda_build=None, device_files=True)
    said = choose("auto", with_files, given=False).note
    assert said.startswith("torch sees no GPU: trains on the CPU (accelerator: auto): torch 2.13.0")
    assert choose("cpu", NO_GPU_HERE, given=True).note == ""


def test_an_accelerator_that_is_not_supported_is_named() -> None:
    with pytest.raises(ConfigError, match=r"trainer\.accelerator: 'tpu' is not supported"):
        choose("tpu", CPU_BUILD)
    with pytest.raises(ConfigError, match="the script's accelerator 'ddp' is not") as caught:
        choose_device(
            "ddp", given=True, seen=CPU_BUILD, local_rank=0, ranks_per_node=1, key=OF_A_SCRIPT
        )
    assert caught.value.hint == 'write strategy="ddp", or leave it out'


@pytest.mark.parametrize(
    ("environ", "given"),
    [
        ({}, False),
        ({"SLURM_JOB_GPUS": "0,1"}, True),
        ({"SLURM_STEP_GPUS": "0"}, True),  # the one GPU of index 0
        ({"SLURM_GPUS_ON_NODE": "4"}, True),
        ({"SLURM_GPUS_ON_NODE": "0"}, False),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1a2b"}, True),
        ({"CUDA_VISIBLE_DEVICES": ""}, False),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, False),
    ],
)
def test_slurms_variables_tell_whether_gpus_were_given(
    environ: dict[str, str], given: bool
) -> None:
    assert gpus_were_given(environ) is given


@pytest.mark.parametrize(
    ("precision", "device", "message", "hint"),
    [
        ("16-mixed", CPU, "16-mixed does not work on a CPU", "bf16-mixed or 32-true"),
        (16, CPU, "16-mixed does not work on a CPU", "bf16-mixed or 32-true"),
        (
            "bf16-mixed",
            Device(kind="cuda", index=0, capability=(7, 0)),
            "needs compute capability 8.0, this GPU has 7.0",
            "write precision: 16-mixed",
        ),
        (
            "bf16-true",
            Device(kind="cuda", index=0, capability=(7, 5)),
            "bf16-true needs",
            "write precision: 16-mixed",
        ),
        (
            "transformer-engine",
            Device(kind="cuda", index=0, capability=(8, 0)),
            "needs a GPU of compute capability 8.9",
            "bf16-mixed",
        ),
        (
            "transformer-engine",
            Device(kind="cuda", index=0, capability=(9, 0)),
            "needs the package transformer_engine",
            "pip install transformer-engine",
        ),
    ],
)
def test_a_precision_the_device_cannot_do_is_refused_with_what_to_write(
    precision: str | int, device: Device, message: str, hint: str
) -> None:
    with pytest.raises(CheckError) as caught:
        check_precision(precision, device)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_precision_of_a_script_is_told_as_a_script_has_it() -> None:
    with pytest.raises(CheckError, match="the script's precision 16-mixed does") as caught:
        check_precision(16, CPU, of_script=True)
    assert caught.value.hint == 'write precision="bf16-mixed" or "32-true"'


@pytest.mark.parametrize("precision", [None, 32, "32-true", "bf16-mixed", "64-true"])
def test_a_precision_the_cpu_can_do_passes(precision: str | int | None) -> None:
    check_precision(precision, CPU)


@pytest.mark.parametrize(
    ("environ", "affinity", "quota", "cpus"),
    [
        ({}, 64, None, 16),  # four ranks share what the machine gives
        ({}, 64, 8.0, 2),  # a container's quota counts
        ({}, 2, None, 1),  # never less than one
        ({"SLURM_PROCID": "1", "SLURM_CPUS_PER_TASK": "12"}, 64, None, 12),
        ({"SLURM_PROCID": "1", "SLURM_CPUS_PER_TASK": "12"}, 6, None, 6),
        ({"SLURM_PROCID": "1", "SLURM_CPUS_ON_NODE": "64"}, 16, None, 16),  # bound by Slurm
        ({"SLURM_PROCID": "1", "SLURM_CPUS_ON_NODE": "64"}, 64, None, 16),  # not bound
    ],
)
def test_a_rank_counts_the_cpus_that_the_job_really_has(
    environ: dict[str, str], affinity: int, quota: float | None, cpus: int
) -> None:
    host = HostSeen(affinity_cpus=affinity, quota_cpus=quota, available_mib=1000)
    assert cpus_per_rank(environ, host, 4) == cpus


def test_nodes_that_are_simulated_on_one_machine_share_its_cpus() -> None:
    place = make_world(3, 1, launcher="torchrun")
    assert ranks_on_host(place) == 3
    assert ranks_on_host(dataclasses.replace(place, master_addr="node1")) == 1
    assert ranks_on_host(dataclasses.replace(place, launcher="slurm")) == 1


def test_workers_and_threads_share_the_cpus_of_the_rank() -> None:
    host = HostSeen(affinity_cpus=64, quota_cpus=None, available_mib=100_000)
    gpu = choose("gpu", gpus(4))
    assert loader_settings(make_world(1), gpu, 6, host).num_workers == 5
    assert threads_per_rank(6, gpu) == 1
    assert loader_settings(make_world(1), CPU, 8, host).num_workers == 2
    assert threads_per_rank(8, CPU) == 6
    assert loader_settings(make_world(1), CPU, 1, host).num_workers == 0


def test_memory_is_pinned_for_gpus_and_only_where_the_host_has_enough() -> None:
    gpu = choose("gpu", gpus(4))
    rich = HostSeen(affinity_cpus=8, quota_cpus=None, available_mib=100_000)
    poor = HostSeen(affinity_cpus=8, quota_cpus=None, available_mib=4_000)
    assert loader_settings(make_world(1), gpu, 2, rich).pin_memory
    assert not loader_settings(make_world(1), gpu, 2, poor).pin_memory
    assert not loader_settings(make_world(1), CPU, 2, rich).pin_memory


def test_limits_of_the_control_group_and_its_parents_are_seen(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job_7/step_0\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable:  8388608 kB\n")
    step = tmp_path / "sys/fs/cgroup/job_7/step_0"
    step.mkdir(parents=True)
    (step / "cpu.max").write_text("max 100000\n")
    (step.parent / "cpu.max").write_text("600000 100000\n")
    (step / "memory.max").write_text("max\n")
    (step.parent / "memory.max").write_text(f"{4 * 2**30}\n")
    (step.parent / "memory.current").write_text(f"{2**30}\n")
    host = see_host(tmp_path)
    assert host.quota_cpus == 6.0
    assert host.available_mib == 3 * 1024


def test_what_torch_shows_here_is_seen() -> None:
    seen = see_devices({})
    assert seen.torch_version
    assert len(seen.capabilities) == len(seen.uuids)
