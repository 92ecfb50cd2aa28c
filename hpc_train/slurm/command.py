"""The one place that starts Slurm's programs and reads what they say."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc_train.errors import SlurmError

DEFAULT_TIMEOUT_S = 60.0
PATIENCE_S = 5.0  # of a person who waits for words that Slurm's answer only makes better
NO_ANSWER = "gave no answer"
# Of a job that was federated, the cluster on which it ran has the record (sacct(1)).
SACCT = ("sacct", "--federation", "-n", "-P")


@dataclass(frozen=True)
class CommandResult:
    """What a program said: its exit status, and both streams as text."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def wordless(self) -> bool:
        """Whether it failed and left no reason: it was ended before it could hear the answer."""
        return self.returncode != 0 and not (self.stdout.strip() or self.stderr.strip())


def is_available(program: str = "sbatch") -> bool:
    """Whether Slurm's commands are on this machine's PATH."""
    return shutil.which(program) is not None


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
) -> CommandResult:
    """Run one of Slurm's programs to its end, with this process's environment or with `env`.

    SIGTERM does not reach it: Slurm sends that to every process of the batch step when it requeues
    or cancels the job, also to the very scontrol that asked for it and still waits for the answer.

    Raises:
        SlurmError: when it is not installed, cannot be configured or does not answer in
            `timeout_s`. A refusal is not raised here: the caller knows what it means.
    """
    conf = (os.environ if env is None else env).get("SLURM_CONF")
    if conf == "":  # each command would look for a file without a name for a minute
        hint = "unset it, or let it name slurm.conf; --cluster local trains on this machine"
        raise SlurmError("SLURM_CONF is set and empty: no command of Slurm works so", hint)
    if conf and not Path(conf).exists() and _is_slurms_own(argv[0]):
        # It would look for that file again and again for a minute, and then fail.
        hint = "let it name the site's slurm.conf, or unset it: `unset SLURM_CONF`"
        raise SlurmError(f"SLURM_CONF is {conf}, and there is no such file", hint)
    try:
        with _sigterm_blocked():
            process = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        with process:
            stdout, stderr = _communicate(process, stdin, timeout_s)
    except FileNotFoundError as error:
        raise SlurmError(
            f"{argv[0]} is not on this machine's PATH, so there is no Slurm to talk to",
            "log in to a node of the cluster, load its slurm module, or train here with"
            " --cluster local",
        ) from error
    except subprocess.TimeoutExpired as error:
        hint = "the controller may be down or busy: `scontrol ping` tells; try again later"
        if conf and not Path(conf).is_file():
            hint = f"SLURM_CONF names {conf}, and there is no such file: unset it, or correct it"
        raise SlurmError(f"{argv[0]} {NO_ANSWER} in {timeout_s:.0f} s", hint) from error
    return CommandResult(process.returncode, stdout, stderr)


def _is_slurms_own(program: str) -> bool:
    """Whether it is a binary: a site's wrapper script may set the variable by itself."""
    try:
        with open(shutil.which(program) or "", "rb") as stream:  # noqa: PTH123 - '' is no Path
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return False


@contextlib.contextmanager
def _sigterm_blocked() -> Iterator[None]:
    """A program that is started in this block inherits the mask (execve(2)); we hear it after."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _communicate(process: subprocess.Popen[str], stdin: str, timeout_s: float) -> tuple[str, str]:
    try:
        return process.communicate(stdin, timeout=timeout_s)
    except BaseException:  # out of time, or a Ctrl-C
        process.kill()
        raise
