"""The shell around Python: the lines that make the config's `env` true on a node."""

from __future__ import annotations

import re

from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.schema import EnvConfig
from hpc_train.plan.plan import ShellPlan
from hpc_train.plan.quoting import quote_path, quote_shell
from hpc_train.plan.setup_watch import FAILED, asks_for_module, watched

# What a job inherits and must not hand on. The bindings of an outer step silently put all ranks on
# one core, and SLURM_EXPORT_ENV=NONE, which sbatch --export leaves behind, would start the ranks
# without their environment (srun(1), --export). SLURM_CONF stays: a cluster may need it.
FORGET = f"unset ${{!SLURM_CPU_BIND*}} ${{!SLURM_MEM_BIND*}} SLURM_EXPORT_ENV {FAILED}"
BROUGHT = "python"  # of the environment that the lines activate
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_OURS = re.compile(
    r"(?:SLURM_|SLURMD_|HPC_TRAIN_|TORCHELASTIC_).*\Z"
    r"|(?:RANK|LOCAL_RANK|GROUP_RANK|NODE_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT"
    r"|CUDA_VISIBLE_DEVICES)\Z"
)


def is_launchers(name: str) -> bool:
    """Whether Slurm or the launcher sets a variable of this name: a config then may not."""
    return _OURS.match(name) is not None


def shell_plan(
    env: EnvConfig, *, workdir: str, python: str, origins: Origins = NOWHERE
) -> ShellPlan:
    """Turn `env` into complete lines of bash; ours end the job when they fail.

    Args:
        env: The section of the config.
        workdir: A relative `venv` starts here.
        python: The interpreter, unless the lines activate an environment that brings its own.
        origins: For the file and line of an error.

    Raises:
        ConfigError: for names that cannot be variables, and those that Slurm or the launcher sets.
    """
    for name in env.variables:
        _check_variable(f"env.variables.{name}", name, origins)
    for name in env.passthrough:
        _check_variable("env.passthrough", name, origins)
    activates = bool(env.conda or env.venv) or any("activate" in line for line in env.setup)
    ours = _setup_lines(env, workdir)
    return ShellPlan(
        setup=[*ours, *env.setup],
        variables=dict(env.variables),
        passthrough=list(env.passthrough),
        python=BROUGHT if activates else python,
        own_from=len(ours),
    )


def environment_lines(shell: ShellPlan) -> list[str]:
    """All lines of bash before Python: forget, set up, export, require."""
    ours = len(shell.setup) if shell.own_from is None else shell.own_from
    return [
        FORGET,
        *shell.setup[:ours],
        *watched(shell.setup[ours:]),
        *(
            f"export {name}={quote_shell(value, f'env.variables.{name}')}"
            for name, value in shell.variables.items()
        ),
        *(
            f': "${{{name}?hpc-train: error: env.passthrough: {name} is not set; fix: set it in the'
            ' shell that submits}"'
            for name in shell.passthrough
        ),
    ]


_NO_MODULE = "env.modules: this node has no command module"
# `env.setup` comes behind the modules: what makes the command there has to load them as well.
_BRING_MODULE = (
    "leave env.modules out, or load them in env.setup behind the init file that makes the command"
)
_NO_CONDA = "env.conda: conda is not on the PATH"
_BRING_CONDA = (
    "name the module that brings it in env.modules, or leave env.conda out, and in env.setup:"
    " source CONDA/etc/profile.d/conda.sh, conda activate NAME"
)
_NO_HOOK = "env.conda: conda has no hook for bash"


def _setup_lines(env: EnvConfig, workdir: str) -> list[str]:
    lines: list[str] = []
    if env.modules or asks_for_module(env.setup):
        # A batch shell is no login shell, and may not know `module` yet.
        lines.append("type module >/dev/null 2>&1 || . /etc/profile")
    if env.modules:
        lines.append(_or_stop("type module >/dev/null 2>&1", _NO_MODULE, _BRING_MODULE))
    for module in env.modules:
        failed = f"env.modules: module load {module} failed"
        fix = "`module avail` on that node shows what there is"
        lines.append(_or_stop(f"module load {quote_shell(module, 'env.modules')}", failed, fix))
    if env.conda:
        lines.append(_or_stop("type conda >/dev/null 2>&1", _NO_CONDA, _BRING_CONDA))
        fix = "a conda of 4.6 or later, first on the PATH"
        lines.append(_or_stop('eval "$(conda shell.bash hook)"', _NO_HOOK, fix))
        failed = f"env.conda: conda activate {env.conda} failed"
        fix = "`conda env list` on that node shows what there is"
        lines.append(_or_stop(f"conda activate {quote_path(env.conda, 'env.conda')}", failed, fix))
    if env.venv:
        folder = env.venv
        if not folder.startswith(("/", "~")) and workdir != ".":
            folder = f"{workdir}/{folder}"
        activate = quote_path(f"{folder}/bin/activate", "env.venv")
        prefix = "" if folder.startswith(("/", "~")) else "./"
        failed = f"env.venv cannot be activated: {folder}"
        fix = "write the folder of a venv that the nodes see as well"
        lines.append(_or_stop(f". {prefix}{activate}", failed, fix))
    return lines


def _or_stop(command: str, why: str, fix: str) -> str:
    said = quote_shell(f"hpc-train: error: {why}", "env")
    then = quote_shell(f"  fix: {fix}", "env")
    return f"{command} || {{ printf '%s\\n' {said} {then} >&2; exit 1; }}"


def _check_variable(key: str, name: str, origins: Origins) -> None:
    if _NAME.match(name) is None:
        hint = "write letters, digits and underscores, not a digit first"
        raise origins.error(key, f": {name!r} cannot be the name of a variable", hint)
    if is_launchers(name):
        raise origins.error(
            key, f": {name} is set by Slurm or the launcher, for each rank its own", "remove it"
        )
