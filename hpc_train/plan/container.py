"""The image that the ranks run in, as words around their command line. Pure.

The supervisor, its probes of the network and Slurm's commands stay outside. Inside there are the
working folder, the runs, what `mounts` names, and by default hpc-train itself, the same as outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

import hpc_train
from hpc_train.config.origins import Origins
from hpc_train.config.schema import ContainerConfig
from hpc_train.errors import ConfigError
from hpc_train.plan.plan import Plan

_OWN_PLACE = "/opt/hpc-train"  # of hpc-train in the image
_OWN_PATH = f'PYTHONPATH={_OWN_PLACE}${{PYTHONPATH:+:$PYTHONPATH}} exec "$@"'
# Options without which a rank's variables would not come in (apptainer-exec(1)).
_CUTS_OFF = ("-e", "--cleanenv", "-C", "--containall")


def is_file(container: ContainerConfig) -> bool:
    """Whether an image is a path; `docker://IMAGE` and pyxis's `REGISTRY#IMAGE` are none."""
    image = container.image or ""
    if container.runtime == "pyxis":
        return image.startswith(("/", ".", "~"))
    return bool(image) and "://" not in image


def check_container(container: ContainerConfig, origins: Origins) -> None:
    """Refuse what cannot be started anywhere.

    Raises:
        ConfigError: for a mount, an option or an image that the runtime does not take.
    """
    image = container.image or ""
    for mount in container.mounts:
        if mount.count(":") > 2 or "," in mount or not mount.strip():
            hint = "write source, source:target or source:target:ro, without commas"
            raise origins.error("container.mounts", f": {mount!r}", hint)
    if container.runtime == "pyxis":
        return
    for option in container.options:
        if option in _CUTS_OFF:
            message = f": {option} keeps the variables of Slurm and hpc-train from the ranks"
            raise origins.error("container.options", message, "leave it out")
    if "://" in image:
        message = f"is {image}, which every rank of every attempt would fetch by itself"
        hint = f"fetch it once: {container.runtime} pull image.sif {image}, and name image.sif"
        raise origins.error("container.image", message, hint)


def check_runtime(plan: Plan, *, is_slurm: bool) -> None:
    """Raise a ConfigError for a container that only srun can start, where there is no Slurm."""
    if plan.container is not None and plan.container.runtime == "pyxis" and not is_slurm:
        raise ConfigError(
            "container.runtime is pyxis, a plugin of srun, and this run is not on Slurm",
            "write container.runtime: apptainer, or submit it to Slurm",
        )


def in_container(plan: Plan, argv: Sequence[str]) -> list[str]:
    """A rank's command line inside of the plan's image; pyxis takes its words from srun."""
    container = plan.container
    if container is None:
        return list(argv)
    inside = ["sh", "-c", _OWN_PATH, "sh", *argv] if container.mount_hpc_train else [*argv]
    if container.runtime == "pyxis":
        return inside
    binds = [word for mount in _mounts(plan, container) for word in ("--bind", mount)]
    nv = ["--nv"] if container.nv and plan.shape.gpus_per_node else []
    return [
        *(container.runtime, "exec", *nv, *binds, "--pwd", plan.workdir, *container.options),
        *(_image(plan, container), *inside),
    ]


def srun_options(plan: Plan) -> list[str]:
    """What pyxis adds to srun (its README); nothing for other runtimes."""
    container = plan.container
    if container is None or container.runtime != "pyxis":
        return []
    return [
        f"--container-image={_image(plan, container)}",
        f"--container-mounts={','.join(_mounts(plan, container))}",
        f"--container-workdir={plan.workdir}",
        *container.options,
    ]


def _image(plan: Plan, container: ContainerConfig) -> str:
    image = container.image or ""
    return _absolute(plan, image) if is_file(container) else image


def _mounts(plan: Plan, container: ContainerConfig) -> list[str]:
    """`source:target[:flags]`, each source once."""
    own = [plan.workdir, plan.runs_dir]
    mounts = [f"{folder}:{folder}" for folder in dict.fromkeys(own)]
    for mount in container.mounts:
        source, _, target = mount.partition(":")
        source = _absolute(plan, source)
        mounts.append(f"{source}:{target or source}")
    if container.mount_hpc_train:
        package = Path(hpc_train.__file__).resolve().parent
        mounts.append(f"{package}:{_OWN_PLACE}/hpc_train:ro")
    return mounts


def _absolute(plan: Plan, path: str) -> str:
    return str(PurePath(plan.workdir) / Path(path).expanduser())
