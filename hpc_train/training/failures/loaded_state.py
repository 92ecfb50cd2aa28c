"""A `load_state_dict` of the user's whose names do not fit: a whole checkpoint, another prefix."""

from __future__ import annotations

import ast
import itertools
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from hpc_train.training.failures.frame_text import is_users, nodes_at
from hpc_train.training.failures.frame_values import shape_of, value_of

_METHOD = "load_state_dict"
_UNFIT = "in loading state_dict for"
_SHAPES = re.compile(r"size mismatch for |While copying the parameter")
_HELD_IN = ("state_dict", "model_state_dict", "model", "net", "weights")  # as checkpoints call it
_MOST_NAMES = 4
_LIGHTNINGS = "pytorch-lightning_version"
_ARGUMENTS = "hyper_parameters"  # LightningModule.CHECKPOINT_HYPER_PARAMS_KEY


@dataclass(frozen=True)
class _Loading:
    """A call, what it was given, and the names that its module has."""

    call: ast.Call
    frame: FrameType
    module: Any
    given: Mapping[str, Any]
    wanted: frozenset[str]

    @property
    def of(self) -> ast.expr:
        """`net` of `net.load_state_dict(...)`."""
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func.value

    def written(self, given: str, of: str = "") -> str:
        """The call with another argument, or of another module."""
        more = [f"{it.arg}={ast.unparse(it.value)}" for it in self.call.keywords if it.arg]
        rest = [*map(ast.unparse, self.call.args[1:]), *more]
        return f"{of or ast.unparse(self.of)}.{_METHOD}({', '.join([given, *rest])})"


def loaded_state(error: BaseException) -> str:
    """What to write; empty where the error is of something else, or no prefix tells it."""
    if not isinstance(error, RuntimeError) or _UNFIT not in str(error):
        return ""
    loading = None if _SHAPES.search(str(error)) else _loading(error)
    if loading is None:
        return ""
    given = ast.unparse(loading.call.args[0])
    key = next((it for it in _HELD_IN if _holds_weights(loading.given.get(it))), "")
    if not key:
        return _of_prefix(loading, loading.given, given) or _of_more(loading, given)
    said = f"that is a whole checkpoint, which has the weights under {key!r}: write "
    inner = f"{given}[{key!r}]"
    if other := _of_prefix(loading, loading.given[key], inner):
        return f"{said.removesuffix(': write ')}, and {other}"
    if not loading.wanted <= set(loading.given[key]):
        return f"{said}{loading.written(inner)}"
    return f"{said}{loading.written(inner)}{_or_whole(loading)}"


def _loading(error: BaseException) -> _Loading | None:
    """The user's own call of a module's load_state_dict."""
    walked = [*traceback.walk_tb(error.__traceback__)]
    for (frame, line), (below, _) in itertools.pairwise(walked):
        is_torchs = below.f_globals.get("__name__") == "torch.nn.modules.module"
        if not is_torchs or below.f_code.co_name != _METHOD:
            continue
        held = below.f_locals
        given, missing, unexpected = (
            held.get(it) for it in ("state_dict", "missing_keys", "unexpected_keys")
        )
        calls = [it for it in nodes_at(frame, line) if isinstance(it, ast.Call) and _is_load(it)]
        if not is_users(frame.f_code.co_filename) or not isinstance(given, Mapping):
            return None
        if len(calls) != 1 or not isinstance(missing, list) or not isinstance(unexpected, list):
            return None
        wanted = {*missing, *(set(given) - {*unexpected})}
        return _Loading(calls[0], frame, held.get("self"), given, frozenset(wanted))
    return None


def _is_load(call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == _METHOD
    return is_method and bool(call.args)


def _holds_weights(value: Any) -> bool:
    is_named = isinstance(value, Mapping) and bool(value)
    return is_named and any(shape_of(it) is not None for it in value.values())


def _or_whole(loading: _Loading) -> str:
    """`, or Net.load_from_checkpoint(PATH)`, of a checkpoint that has the arguments as well."""
    kind, load = type(loading.module), loading.call.args[0]
    is_of_file = isinstance(load, ast.Call) and ast.unparse(load.func) == "torch.load"
    is_lightnings = {_LIGHTNINGS, _ARGUMENTS} <= set(loading.given)
    if not is_lightnings or not hasattr(kind, "load_from_checkpoint"):
        return ""
    if not isinstance(load, ast.Call) or not is_of_file or not load.args:
        return ""
    return f", or {kind.__name__}.load_from_checkpoint({ast.unparse(load.args[0])})"


def _of_prefix(loading: _Loading, given: Mapping[str, Any], written: str) -> str:
    """What to write where nothing but the beginning of the names differs."""
    wanted, has = loading.wanted, set(given)
    if not wanted or not has or wanted <= has:
        return ""
    of = ast.unparse(loading.of)
    if prefix := _added(has, wanted):  # in what is given
        said = f"its names begin with {prefix!r}, and those of {of} without: write "
        if whole := _owner(loading, prefix, has):
            return f"{said}{loading.written(written, whole)}"
        some = "" if all(it.startswith(prefix) for it in has) else f" if k.startswith({prefix!r})"
        cut = f"{{k.removeprefix({prefix!r}): v for k, v in {written}.items(){some}}}"
        return f"{said}{loading.written(cut)}"
    prefix = _added(wanted, has)
    if not prefix or any(it.startswith(prefix) for it in has):
        return ""
    inner = f"{of}.{prefix.removesuffix('.')}"
    said = f"its names are those of {inner}: write "
    return f"{said}{loading.written(written, inner)}" if "." not in prefix[:-1] else ""


def _of_more(loading: _Loading, written: str) -> str:
    """The call that passes over names that the module lacks, where it has all others."""
    more = [it for it in loading.given if it not in loading.wanted]
    names = {it.arg for it in loading.call.keywords}
    has_strict = len(loading.call.args) > 1 or "strict" in names
    if not loading.wanted or not loading.wanted <= set(loading.given) or not more or has_strict:
        return ""
    shown = ", ".join(more[:_MOST_NAMES]) + (" ..." if len(more) > _MOST_NAMES else "")
    all_others = f"it has all that {ast.unparse(loading.of)} has"
    write = f"{loading.written(written).removesuffix(')')}, strict=False)"
    return f"{all_others}, and {shown} more: write {write}, which passes over the rest"


def _added(names: set[str] | frozenset[str], to: set[str] | frozenset[str]) -> str:
    """The one prefix with which all of the others are among the names; empty without one."""
    one = min(to)
    found = {it.removesuffix(one) for it in names if it.endswith(f".{one}")}
    fit = [prefix for prefix in found if all(f"{prefix}{it}" in names for it in to)]
    return fit[0] if len(fit) == 1 else ""


def _owner(loading: _Loading, prefix: str, has: set[str]) -> str:
    """`net` of `net.layers`, where that is whose names these are."""
    of = loading.of
    if not isinstance(of, ast.Attribute) or f"{of.attr}." != prefix:
        return ""
    owner = value_of(of.value, loading.frame)
    if "_parameters" not in getattr(owner, "__dict__", {}):
        return ""
    names = {name for name, _ in owner.named_parameters()}
    others = {name for name, _ in owner.named_buffers()}  # of which some may not be saved
    return ast.unparse(of.value) if names <= has <= names | others else ""
