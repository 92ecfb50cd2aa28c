"""A whole model that torch.save wrote is refused before the queue, by the words of its pickle."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from hpc_train.backends.find_weights import find_weights, settle_weights
from hpc_train.backends.whole_models import whole_model_in
from hpc_train.config.load import load
from hpc_train.errors import CheckError


class Net:
    """As torch.nn.Module: what it is pickled with, in its order."""

    def __init__(self) -> None:
        self.training = True
        self._parameters: dict[str, Any] = {}
        self._buffers: dict[str, Any] = {}
        self._modules: dict[str, Any] = {"lin": 1}


class Settings:
    def __init__(self) -> None:
        self.training = True


class Named(OrderedDict[str, Any]):
    pass


def saved(path: Path, held: object, protocol: int = 2) -> Path:
    """As torch.save lays it out, without tensors."""
    stream = io.BytesIO()
    pickle.dump(held, stream, protocol)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/data.pkl", stream.getvalue())
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_whole_model_is_told_with_its_class_and_what_makes_its_state(
    tmp_path: Path, protocol: int
) -> None:
    file = saved(tmp_path / "net.pt", Net(), protocol)
    with pytest.raises(CheckError) as refused:
        find_weights(str(file), (), tmp_path)
    assert refused.value.message == (
        f"init_from: {file} is a whole model, {__name__}.Net, as torch.save(model, PATH) writes"
        " it, and no state_dict"
    )
    new = tmp_path / "net-state.pt"
    load = f"torch.load('{file}', map_location='cpu', weights_only=False)"
    assert refused.value.hint == (
        f"python -c \"import torch; torch.save({load}.state_dict(), '{new}')\", and name {new}; or"
        " torch.save(model.state_dict(), PATH) where the model was made"
    )


def test_a_class_of_a_notebook_is_saved_again_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import __main__

    monkeypatch.setattr(__main__, "Net", Net, raising=False)
    monkeypatch.setattr(Net, "__module__", "__main__")
    file = saved(tmp_path / "net.pt", Net())
    with pytest.raises(CheckError, match=r"a whole model, __main__\.Net, ") as refused:
        find_weights(str(file), (), tmp_path)
    assert refused.value.hint == (
        "write torch.save(model.state_dict(), PATH) in the program that has the model"
    )


def test_the_config_is_told_with_its_line(tmp_path: Path) -> None:
    file, config = saved(tmp_path / "net.pt", Net()), tmp_path / "cfg.yaml"
    classes = "model: {class_path: a.B}\ndata: {class_path: a.C}\n"
    config.write_text(f"name: x\nglobal_batch_size: 4\ninit_from: {file}\n{classes}")
    with pytest.raises(CheckError) as refused:
        settle_weights(load(config), (), tmp_path)
    assert refused.value.message.startswith(f"{config}:3: init_from: {file} is a whole model, ")


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    "held",
    [
        OrderedDict(a=1),
        {"a": 1},
        {"state_dict": {"a": 1}, "model": Net()},
        Named(training=1, _parameters=1, _buffers=1, _modules=1),
        Settings(),
        [Net()],
        1,
        "training",
    ],
)
def test_another_file_is_taken(tmp_path: Path, held: object, protocol: int) -> None:
    file = saved(tmp_path / "held.pt", held, protocol)
    assert find_weights(str(file), (), tmp_path).path == file


def test_a_file_that_does_not_tell_is_no_whole_model(tmp_path: Path) -> None:
    file = tmp_path / "broken.pt"
    for content in (b"", b"\x80\x02", b"PK\x03\x04"):
        file.write_bytes(content)
        assert whole_model_in(file) == ""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("broken/data.pkl", b"\x80\x02cnets\nNet\n)\x81}q")
    assert whole_model_in(file) == ""
    assert whole_model_in(tmp_path / "none.pt") == ""


def test_nothing_of_the_file_is_run(tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return Path.touch, (Path(tmp_path / "ran"),)  # type: ignore[return-value]

    file = saved(tmp_path / "net.pt", Runs())
    assert whole_model_in(file) == ""
    assert not (tmp_path / "ran").exists()
