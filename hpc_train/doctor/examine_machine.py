"""Everything about one machine, in the order in which it is shown."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hpc_train import __version__
from hpc_train.config.python_text.distributions import install_here
from hpc_train.doctor.examine_folder import check_in_time, existing_parent
from hpc_train.doctor.examine_slurm import check_scontrol_in_job, check_slurm
from hpc_train.doctor.torch_and_driver import ask_driver, ask_torch, check_torch
from hpc_train.preflight.checks.check_context import Context
from hpc_train.preflight.checks.findings import Finding
from hpc_train.preflight.checks.node_checks import run_checks
from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.training.private.versions import untried_versions

# A data worker holds descriptors for each tensor on its way (torch.multiprocessing, "Sharing
# strategies"), and a rank starts tens of threads.
NOFILE_WARN = 4096
NPROC_WARN = 4096


def examine_machine(folder: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Look at this machine, and at the file system that holds `folder`."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        asked = beside.submit(ask_torch)  # takes longest
        driver = ask_driver()
        inventory = collect_inventory(Path("/"), environ)
        findings = [*_gpus_and_network(inventory, environ)]
        findings += [*check_limits(_limits()), *check_in_time(existing_parent(folder))]
        findings += check_scontrol_in_job(environ)
        return [*_versions(), *check_torch(asked.result(), driver, len(inventory.gpus)), *findings]


def examine_with_slurm(folder: Path, environ: Mapping[str, str]) -> list[Finding]:
    """The same, and what Slurm says, asked meanwhile."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        slurm = beside.submit(check_slurm, environ)
        return [*examine_machine(folder, environ), *slurm.result()]


def _versions() -> Iterator[Finding]:
    yield Finding("", "", "python", "ok", f"{platform.python_version()}, {sys.executable}")
    yield Finding("", "", "hpc-train", "ok", __version__)
    found = [
        f"{name} {at}" for name in ("pytorch-lightning", "lightning") if (at := _version(name))
    ]
    if not found:
        fix = install_here("pytorch-lightning")
        yield Finding("", "", "lightning", "fail", "neither package of it is installed", fix)
        return
    yield Finding("", "", "lightning", "ok", ", ".join(found))
    if untried := untried_versions():
        yield Finding(
            "", "", "versions", "warn", untried, "install one that docs/versions.md names"
        )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _gpus_and_network(inventory: NodeInventory, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The preflight's own checks of a node; each that is not right is a line."""
    models = sorted({gpu.model or "GPU" for gpu in inventory.gpus})
    text = f"{len(inventory.gpus)} x {', '.join(models)}" if models else "none"
    yield Finding("", "", "gpus", "ok", text)
    context = Context.of([inventory], environ, is_nccl=bool(inventory.gpus))
    said = run_checks(context).findings
    for item in said:
        if item.level in ("warn", "fail"):
            evidence = f"{item.part}: {item.evidence}" if item.part else item.evidence
            yield Finding("", "", item.check, item.level, evidence, item.fix)
    if inventory.hcas:
        names = ", ".join(hca.name for hca in inventory.hcas)
    else:
        names = ", ".join(i.name for i in inventory.interfaces if i.is_between_nodes and i.is_ready)
    passed = sum(item.level == "ok" for item in said)
    yield Finding(
        "", "", "network", "ok", f"{names or 'none'}; {passed} checks of the preflight pass"
    )


def _limits() -> dict[str, int]:
    """Soft limits of this process (getrlimit(2)); -1 is unlimited."""
    names = ("MEMLOCK", "NOFILE", "NPROC")
    return {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in names}


def check_limits(limits: Mapping[str, int]) -> Iterator[Finding]:
    """Descriptors and processes for data workers; lockable memory is judged where an HCA is."""
    shown = {name: "unlimited" if value == -1 else f"{value}" for name, value in limits.items()}
    text = f"memlock {shown['MEMLOCK']} bytes, nofile {shown['NOFILE']}, nproc {shown['NPROC']}"
    low = [
        f"ulimit -{letter} {least}"
        for name, letter, least in (("NOFILE", "n", NOFILE_WARN), ("NPROC", "u", NPROC_WARN))
        if 0 <= limits[name] < least
    ]
    fix = f"{'; '.join(low)} in env.setup, or raise it in limits.conf" if low else ""
    yield Finding("", "", "limits", "warn" if low else "ok", text, fix)
