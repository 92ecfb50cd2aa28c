"""A GPU that the process does not see: how many it sees, and what to write for the one asked."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from hpc_train.training.failures.frame_text import nodes_of_file, shown_file
from hpc_train.training.failures.frame_values import failing_line, value_of

_ORDINAL = "invalid device ordinal"  # cudaErrorInvalidDevice
_NONE = "No CUDA GPUs are available"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_OF_PLACE = ("LOCAL_RANK", "RANK", "SLURM_LOCALID", "SLURM_PROCID")
_NUMBERED = re.compile(r"cuda:\d+\Z")


def few_gpus(
    error: BaseException,
    environ: Mapping[str, str] | None = None,
    own: Path = Path("/proc/self/environ"),
) -> str:
    """What to write; empty where the error is of something else, or nothing is known of it.

    Args:
        environ: Of this process; os.environ where it is not given.
        own: What the process was started with.
    """
    said, env = str(error), os.environ if environ is None else environ
    if not isinstance(error, RuntimeError) or (_ORDINAL not in said and _NONE not in said):
        return ""
    at = failing_line(error)
    if at is None:
        return ""
    if _NONE in said:
        return _hidden(at[0], env, own)
    torch = sys.modules.get("torch")
    return _beyond(at, torch.cuda.device_count() if torch else 0, env)


def _beyond(at: tuple[FrameType, Sequence[ast.AST]], count: int, env: Mapping[str, str]) -> str:
    """Of `cuda:1`, or of a rank that is no GPU's number."""
    frame, nodes = at
    if not count:
        return ""
    numbers = f"cuda:0 to cuda:{count - 1}" if count > 1 else "cuda:0"
    sees = f"this process sees {count} GPU{'s' * (count > 1)} ({numbers})"
    texts = [it.value for it in nodes if isinstance(it, ast.Constant) and type(it.value) is str]
    named = [str(value_of(it, frame)) for it in nodes if isinstance(it, ast.Name)]
    numbered = [it for it in (*texts, *named) if _NUMBERED.match(it)]
    asked = [it for it in numbered if int(it.partition(":")[2]) >= count]
    if asked:
        is_module = hasattr(type(frame.f_locals.get("self")), "training_step")
        write = "self.device" if is_module else '"cuda"'
        return f'{sees}: write {write} for "{asked[0]}"'
    place = next((it for it in texts if it in _OF_PLACE and env.get(it, "").isdigit()), "")
    if not place or int(env[place]) < count:
        return sees
    local = env.get("LOCAL_RANK", "")
    if place != "LOCAL_RANK" and local.isdigit() and int(local) < count:
        return f"{sees}, and {place} is {env[place]}: write LOCAL_RANK for it, which is {local}"
    return f"{sees}, and {place} is {env[place]}: start it with --gpus {count}"


def _hidden(frame: FrameType, env: Mapping[str, str], own: Path) -> str:
    """Of a script that sets CUDA_VISIBLE_DEVICES itself, to a GPU that is not there."""
    now, given = env.get(_VISIBLE), _started_with(own)
    if now is None or now == given:
        return ""
    line = next(_sets(frame), 0)
    where = f" ({shown_file(frame.f_code.co_filename)}:{line})" if line else ""
    had = f"it was started with {given}" if given else "it was started without it"
    return f"the script sets {_VISIBLE} to {now!r}{where}, and {had}: leave that out"


def _started_with(own: Path) -> str | None:
    try:
        entries = own.read_bytes().split(b"\0")
    except OSError:
        return None
    named = f"{_VISIBLE}=".encode()
    return next((it[len(named) :].decode() for it in entries if it.startswith(named)), None)


def _sets(frame: FrameType) -> Iterator[int]:
    for node in nodes_of_file(frame):
        if isinstance(node, ast.Assign):
            targets = [ast.unparse(it) for it in node.targets]
            if any(it.endswith(f"environ['{_VISIBLE}']") for it in targets):
                yield node.lineno
