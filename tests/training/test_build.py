from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import ConfigError
from hpc_train.plan.plan import ObjectSpec
from hpc_train.training.build import build, put_on_path

MODULE = """
import collections

class Net:
    def __init__(self, width, depth=2, inner=None, parts=()):
        self.width, self.depth, self.inner, self.parts = width, depth, inner, parts

class Loader:
    def __init__(self, batch_size=32, num_workers=0, pin_memory=True):
        self.batch_size, self.num_workers = batch_size, num_workers
        self.pin_memory = pin_memory

class Any_:
    def __init__(self, **options):
        self.options = options

class Broken:
    def __init__(self):
        raise KeyError("vocabulary")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.path", ["/nowhere"])
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    put_on_path(tmp_path)
    return name


def test_a_class_beside_the_config_is_found_and_gets_its_arguments(module: str) -> None:
    made = build(ObjectSpec(f"{module}.Net", {"width": 4}), key="model")
    assert (made.width, made.depth) == (4, 2)


def test_classes_among_the_arguments_are_built_wherever_they_stand(module: str) -> None:
    inner = {"class_path": f"{module}.Net", "init_args": {"width": 1}}
    spec = ObjectSpec(f"{module}.Net", {"width": 2, "inner": inner, "parts": [inner, {"x": inner}]})
    made = build(spec, key="model")
    assert made.inner.width == 1
    assert made.parts[0].width == 1
    assert made.parts[1]["x"].width == 1


@pytest.mark.parametrize(
    ("class_path", "init_args", "message", "hint"),
    [
        ("Net", {"width": 1, "dept": 3}, "takes no argument 'dept'", "did you mean 'depth'?"),
        ("Net", {"depth": 3}, "needs width", "add width: VALUE under model.init_args"),
        ("Netz", {}, "has no Netz", "did you mean 'Net'?"),
    ],
)
def test_what_does_not_fit_is_named_with_the_nearest_that_does(
    module: str, class_path: str, init_args: dict[str, int], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(ObjectSpec(f"{module}.{class_path}", init_args), key="model")
    assert message in caught.value.message
    assert caught.value.hint == hint


def test_a_wrong_argument_deep_inside_is_named_with_its_path(module: str) -> None:
    inner = {"class_path": f"{module}.Net", "init_args": {}}
    with pytest.raises(ConfigError, match=r"model\.init_args\.inner\.init_args: Net needs width"):
        build(ObjectSpec(f"{module}.Net", {"width": 1, "inner": inner}), key="model")


def test_a_class_with_open_arguments_takes_any(module: str) -> None:
    assert build(ObjectSpec(f"{module}.Any_", {"x": 1}), key="model").options == {"x": 1}


def test_a_module_that_is_not_there_is_told_from_one_that_lacks_a_package(
    module: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no module nowhere_at_all for"):
        build(ObjectSpec("nowhere_at_all.Net", {}), key="model")
    (tmp_path / f"{module}_needy.py").write_text("import flash_attn_of_nobody.ops\n")
    with pytest.raises(ConfigError, match="needs the package flash_attn_of_nobody") as caught:
        build(ObjectSpec(f"{module}_needy.Net", {}), key="model")
    assert "pip install flash_attn_of_nobody" in caught.value.hint


def test_an_exception_of_the_users_own_code_passes_unchanged(module: str) -> None:
    with pytest.raises(KeyError, match="vocabulary"):
        build(ObjectSpec(f"{module}.Broken", {}), key="model")


def test_settings_reach_a_class_that_takes_them_and_leaves_them_open(module: str) -> None:
    made = build(
        ObjectSpec(f"{module}.Loader", {}),
        key="data",
        defaults={"batch_size": 8, "unknown": 1},
        fallbacks={"num_workers": 3, "pin_memory": False},
    )
    assert (made.batch_size, made.num_workers, made.pin_memory) == (8, 3, True)


def test_settings_never_override_what_the_config_says(module: str) -> None:
    made = build(
        ObjectSpec(f"{module}.Loader", {"batch_size": 2, "num_workers": 1}),
        key="data",
        defaults={"batch_size": 8},
        fallbacks={"num_workers": 3},
    )
    assert (made.batch_size, made.num_workers) == (2, 1)
