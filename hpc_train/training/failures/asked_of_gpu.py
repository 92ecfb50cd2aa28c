"""Code that asks for a GPU in a run that trains on CPUs: what to write in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from types import FrameType

from hpc_train.training.failures.frame_values import failing_line

_NO_GPU = re.compile(
    r"Torch not compiled with CUDA enabled|No CUDA GPUs are available|Found no NVIDIA driver"
    r"|'torch\._C' has no attribute '_cuda_"  # of torch.cuda.set_device, in a build for CPUs
)
_MOST = 3  # calls that are told one by one
_TO = "self.device"  # of a LightningModule, once it is where it trains
_BEFORE = ("__init__", "prepare_data", "setup", "configure_model")
_MOVES = "Lightning moves the model and each batch"

_on_cpus = ""  # why this process trains there; empty of others


def tell_cpus(wanted: str) -> None:
    """This process trains on its CPUs, as the config or the script wants it: cpu, or auto."""
    global _on_cpus
    _on_cpus = (
        "accelerator: auto, and torch sees no GPU" if wanted == "auto" else "accelerator: cpu"
    )


def asked_of_gpu(error: BaseException) -> str:
    """What to write; empty where the run is not on CPUs, or the error is of something else."""
    if not _on_cpus or not _NO_GPU.search(str(error)):
        return ""
    frame, nodes = failing_line(error) or (None, [])
    found = [*dict.fromkeys(_asked(nodes))] if frame else []
    said = f"this run is on CPUs ({_on_cpus})"
    if not found or frame is None:
        return f"{said}: leave out what asks for a GPU: {_MOVES}"
    if not _has_device(frame):
        return f"{said}: leave {found[0][0]} out: {_MOVES}"
    more = ", ..." if len(found) > _MOST else ""
    write = ", ".join(it for _, it in found[:_MOST])
    return f"{said}: write {write}{more}, or leave {found[0][0]} out: {_MOVES}"


def _asked(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """What is to be left out, as `.cuda()`, and what may be written for its call."""
    for call in nodes:
        if not isinstance(call, ast.Call):
            continue
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        named = [it.value for it in call.keywords if it.arg == "device"]
        if of is not None and isinstance(call.func, ast.Attribute) and ast.unparse(of) != "torch":
            name, given = call.func.attr, [*call.args, *named]
            is_to = name == "to" and len(given) == 1 and _is_cuda(given[0])
            if is_to or name == "cuda":
                yield (
                    f".{name}({', '.join(map(ast.unparse, given))})",
                    f"{ast.unparse(of)}.to({_TO})",
                )
                continue
        if named and _is_cuda(named[0]):
            yield f"device={ast.unparse(named[0])}", f"device={_TO}"


def _is_cuda(node: ast.expr) -> bool:
    """Of `"cuda"`, `"cuda:0"` and `torch.device("cuda")`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.device" and node.args:
        return _is_cuda(node.args[0])
    return isinstance(node, ast.Constant) and str(node.value).startswith("cuda")


def _has_device(frame: FrameType) -> bool:
    """Whether it is a method of a LightningModule that is called once that is where it trains."""
    kind = type(frame.f_locals.get("self"))
    is_module = hasattr(kind, "training_step") and hasattr(kind, "device")
    return is_module and frame.f_code.co_name not in _BEFORE
