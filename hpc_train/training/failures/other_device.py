"""Which value of a failed line is on another device than the others, and what to write for it.

torch tells the two devices, and since 2.10 the argument by the name that its kernel has for it
("got mat1 is on cuda:0"); it never tells which name of the user's that is
(torch/csrc/autograd, aten/src/ATen/TensorUtils.cpp `checkSameGPU`, c10's `common_device_check`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import nodes_of, shown_file
from hpc_train.training.failures.frame_values import failing_line, shape_of, value_of
from hpc_train.training.failures.layers import frames_of
from hpc_train.training.failures.unset_attributes import value_of_attribute

_DIFFER = re.compile(
    r"Expected all tensors to be on the same device|is not on the expected device"
    r"|Input type \(torch\.(?:cuda\.)?(?P<kind>\w+)\) and weight type"
    r" \(torch\.(?:cuda\.)?(?P=kind)\) should be the same"
)
_ACCELERATOR = re.compile(r"\b(?:cuda|mps|xpu|hpu|meta)(?::\d+)?\b")
_FACTORIES = (
    *("tensor", "zeros", "ones", "full", "empty", "eye", "arange", "linspace", "logspace"),
    *("rand", "randn", "randint", "randperm", "normal", "as_tensor", "from_numpy"),
)
_NO_DEVICE = ("from_numpy",)  # takes none
_MOVES = ("to", "cuda", "type_as", "cpu")
_CONTAINERS: dict[type, str] = {
    list: "nn.ModuleList",
    tuple: "nn.ModuleList",
    dict: "nn.ModuleDict",
}
_MOST = 80  # characters of a call that is told with its device
_CPU = "cpu"


@dataclass(frozen=True)
class _Held:
    node: ast.expr
    value: Any  # a tensor, or a module; None of a call that makes a tensor
    device: str

    @property
    def written(self) -> str:
        return ast.unparse(self.node)

    @property
    def is_tensor(self) -> bool:
        return shape_of(self.value) is not None

    @property
    def is_number(self) -> bool:
        """One number without dimensions, which an operation takes from the CPU as well."""
        given = self.node.args[:1] if isinstance(self.node, ast.Call) else []
        return shape_of(self.value) == () or any(isinstance(it, ast.Constant) for it in given)


def other_device(error: BaseException) -> str:
    """What is where, and what to write; empty where the line's names do not tell it."""
    at = failing_line(error) if _is_told(error) else None
    if at is None:
        return ""
    frame, nodes = at
    found = [*_held(_of_statement(nodes), frame, _MovedBack.of(error))]
    here = [it for it in found if it.device != _CPU]
    on_cpu = [it for it in found if it.device == _CPU]
    strays = [it for it in on_cpu if not it.is_number] or on_cpu
    if not here or not strays:
        return ""
    said = f"{_named(strays)} on {_CPU} and {here[0].written} on {here[0].device}"
    return f"{said}: {_fix(strays, _target(frame, here), frame)}"


@dataclass(frozen=True)
class _MovedBack:
    """What belongs to Lightning's model: by its tear-down it is on the CPU when it is judged.

    Source: lightning/pytorch/strategies/strategy.py, `Strategy.teardown`.
    """

    device: str  # that it was on, as the exception tells it
    parts: frozenset[int]

    @classmethod
    def of(cls, error: BaseException) -> _MovedBack:
        named = _ACCELERATOR.search(str(error))
        holders: list[Any] = [frame.f_locals.get("self") for frame in frames_of(error)]
        models = [it for it in holders if _is_lightnings(it)]
        parts = (
            part
            for model in models
            for part in (*model.modules(), *model.parameters(), *model.buffers())
        )
        return cls(named[0] if named else "", frozenset(map(id, parts)))


def _is_lightnings(value: Any) -> bool:
    held = getattr(value, "__dict__", {})
    return "_modules" in held and hasattr(type(value), "training_step")


def _is_told(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and _DIFFER.search(str(error)) is not None


def _of_statement(nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """All of the statement that failed, which may have more lines; not the body of a block."""
    plain = [it for it in nodes if isinstance(it, ast.stmt) and not hasattr(it, "body")]
    return [node for it in plain for node in ast.walk(it)] or [*nodes]


def _held(nodes: Sequence[ast.AST], frame: FrameType, moved_back: _MovedBack) -> Iterator[_Held]:
    """What the line reads that has a device, from left to right and once each."""
    named = [it for it in nodes if isinstance(it, ast.Name | ast.Attribute | ast.Call)]
    moved = {it.value for it in named if isinstance(it, ast.Attribute) and it.attr in _MOVES}
    seen = set()
    for node in sorted(named, key=lambda it: (it.lineno, it.col_offset)):
        text = ast.unparse(node)
        is_read = isinstance(node, ast.Call) or isinstance(node.ctx, ast.Load)
        if not is_read or node in moved or text in seen or text == "self":
            continue
        seen.add(text)
        value = None if isinstance(node, ast.Call) else value_of(node, frame)
        is_new = isinstance(node, ast.Call) and _is_made_on_cpu(node)
        is_part = id(value) in moved_back.parts
        if device := _CPU if is_new else moved_back.device if is_part else _device_of(value):
            yield _Held(node, value, device)


def _device_of(value: Any) -> str:
    """Of a tensor, or of a module by its first parameter; empty of anything else."""
    if type(value).__name__ in ("Tensor", "Parameter"):
        return str(value.device)
    if "_parameters" not in getattr(value, "__dict__", {}):
        return ""
    first = next(iter(value.parameters()), None)
    return "" if first is None else str(first.device)


def _is_made_on_cpu(call: ast.Call) -> bool:
    """Whether it is torch's, of a new tensor without a device, which is on the CPU then."""
    is_torchs = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "torch"
    if not is_torchs or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr in _FACTORIES and not any(it.arg == "device" for it in call.keywords)


def _named(held: Sequence[_Held]) -> str:
    names = [it.written if len(it.written) <= _MOST else "a new tensor" for it in held]
    last = names.pop()
    return f"{', '.join(names)} and {last} are" if names else f"{last} is"


def _target(frame: FrameType, here: Sequence[_Held]) -> str:
    """How the line may write the device: `self.device`, `device`, `x.device`, `"cuda:0"`."""
    kind = type(frame.f_locals.get("self"))
    if hasattr(kind, "training_step") and hasattr(kind, "device"):
        return "self.device"
    of_name = frame.f_locals.get("device", frame.f_globals.get("device"))
    if str(of_name).partition(":")[0] == here[0].device.partition(":")[0]:
        return "device"
    tensors = (it.written for it in here if it.is_tensor)
    return next((f"{name}.device" for name in tensors), f'"{here[0].device}"')


def _fix(strays: Sequence[_Held], device: str, frame: FrameType) -> str:
    first = strays[0]
    if len(strays) > 1 and all(it.is_tensor and _is_name(it.node) for it in strays):
        moved = ", ".join(f"{it.written}.to({device})" for it in strays)
        return f"write {', '.join(it.written for it in strays)} = {moved} in front of it"
    if isinstance(first.node, ast.Call):
        return f"write {_on(first.node, device)}"
    if not first.is_tensor:
        return _of_module(first, device, frame)
    made = _made_above(first, frame)
    if made is not None:
        place = f"{shown_file(frame.f_code.co_filename)}:{made.lineno}"
        return f"write {_on(made, device)} ({place})"
    if plain := _of_plain_tensor(first, frame):
        return plain
    name = first.written
    return f"write {name} = {name}.to({device}) in front of it"


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _on(call: ast.Call, device: str) -> str:
    """`torch.zeros(3, device=x.device)`, or with `.to(...)` where it is long, or takes none."""
    text = ast.unparse(call)
    is_short = len(text) <= _MOST and isinstance(call.func, ast.Attribute)
    if not is_short or text.partition("(")[0].endswith(_NO_DEVICE):
        return f"{text if len(text) <= _MOST else '(...)'}.to({device})"
    return f"{text.removesuffix(')')}{', ' * bool(call.args or call.keywords)}device={device})"


def _made_above(stray: _Held, frame: FrameType) -> ast.Call | None:
    """The call of torch's that its name was given, where its function gives it that alone."""
    if not _is_name(stray.node):
        return None
    given = [
        it
        for it in nodes_of(frame)
        if isinstance(it, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For)
        and stray.written in {ast.unparse(node) for node in _targets(it)}
    ]
    value = given[0].value if len(given) == 1 and isinstance(given[0], ast.Assign) else None
    return value if isinstance(value, ast.Call) and _is_made_on_cpu(value) else None


def _targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For) -> Iterator[ast.AST]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        yield from ast.walk(target)


def _of_plain_tensor(stray: _Held, frame: FrameType) -> str:
    """Of `self.mean`, which the module does not know as its own, so that nothing moves it."""
    name, owner = stray.written.removeprefix("self."), frame.f_locals.get("self")
    held = getattr(owner, "__dict__", {})
    if "_buffers" not in held or held.get(name) is not stray.value:
        return ""
    place, value = value_of_attribute(type(owner), name)
    given = ast.unparse(value) if value is not None else "..."
    given = given if len(given) <= _MOST else "..."
    where = f" ({shown_file(place)})" if place else ""
    write = f'self.register_buffer("{name}", {given})'
    return f"a plain attribute does not move with the model: write {write}{where}"


def _of_module(stray: _Held, device: str, frame: FrameType) -> str:
    owner = frame.f_locals.get("self")
    for name, held in getattr(owner, "__dict__", {}).items():
        inside = held.values() if type(held) is dict else held
        if name.startswith("_") or type(held) not in _CONTAINERS:
            continue
        if any(it is stray.value for it in inside):
            kind = type(held).__name__
            write = f"write {_CONTAINERS[type(held)]}(...) for it"
            return f"self.{name} is a plain {kind}, which does not move with the model: {write}"
    return f"write {stray.written}.to({device}) in front of it"
