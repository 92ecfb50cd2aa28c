"""Paths among the arguments of a config that this machine has not, and the keys of those."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpc_train.config.fit.data_paths import argument_texts, keys_of_path, notes_on_paths
from hpc_train.config.origins import Origins


def notes(model: Any = None, image: str = "", **arguments: Any) -> list[str]:
    data = {"class_path": "dm.Data", "init_args": arguments}
    config = SimpleNamespace(
        container=SimpleNamespace(image=image), model=model or {"class_path": "m.Net"}, data=data
    )
    origins = Origins({"data.init_args.root": "cfg.yaml:8"})
    return list(notes_on_paths(SimpleNamespace(config=config, origins=origins)))  # type: ignore[arg-type]


SEE = "write the path by which the nodes of the job see it"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("root", "/Users/me/daten"),
        ("anything", "/Users/me/daten"),
        ("root", "C:\\Users\\me\\daten"),
        ("root", "d:/daten"),
        ("root", "/there/is/none"),
        ("data_dir", "/there/is/none"),
        ("train_file", "/there/is/none.csv"),
        ("image_paths", ["/there/is/none"]),
        ("folder", "/etc/passwd/x"),
    ],
)
def test_a_path_that_is_not_here_is_noted_with_its_key(name, value) -> None:
    (said,) = notes(**{name: value})
    place = "cfg.yaml:8: " if name == "root" else ""
    text, index = (value[0], ".0") if isinstance(value, list) else (value, "")
    assert (
        said
        == f"{place}data.init_args.{name}{index} is {text}, which is not on this machine: {SEE}"
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"root": "/tmp"},
        {"root": "data"},
        {"root": "~/data"},
        {"root": ""},
        {"root": None},
        {"root": "s3://bucket/x"},
        {"root": "/data/*/x.csv"},
        {"pattern": "/there/is/none"},
        {"profile": "/there/is/none"},
        {"save_dir": "/there/is/none"},
        {"output_folder": "/there/is/none"},
        {"cache_dir": "/there/is/none"},
        {"root": "/there/is/none", "download": True},
        {"text": "a: b"},
        {"image": "x.sif", "root": "/Users/me"},
    ],
)
def test_what_may_be_there_or_is_no_path_is_not_noted(given) -> None:
    assert notes(**given) == []


def test_a_folder_that_may_not_be_looked_into_is_not_told_as_absent(monkeypatch) -> None:
    def refuses(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("hpc_train.config.fit.data_paths.os.stat", refuses)
    assert notes(root="/there/is/none") == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("data/trian.npz", ["data/train.npz"]),
        ("daata/train.npz", ["data/train.npz"]),
        ("data/vall.npz", ["data/val.npz"]),
        ("data/train3.npz", []),
        ("data/labels.npz", []),
        ("other/train.npz", []),
    ],
)
def test_a_whole_path_that_is_not_here_is_told_with_the_file_that_is_meant(
    tmp_path: Path, typed: str, meant: list[str]
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train.npz", "val.npz"):
        (tmp_path / "data" / name).touch()
    (said,) = notes(train_file=str(tmp_path / typed))
    fix = "".join(f"did you mean '{tmp_path / it}'?" for it in meant) or SEE
    assert said.endswith(f"which is not on this machine: {fix}")


def test_a_path_in_an_object_within_the_model_is_noted() -> None:
    inner = {"class_path": "m.Set", "init_args": {"root": "/Users/me/x"}}
    (said,) = notes({"class_path": "m.Net", "init_args": {"set": inner}})
    assert said.startswith("model.init_args.set.init_args.root is /Users/me/x")


TEXTS = argument_texts(
    {
        "data": {
            "class_path": "dm.Data",
            "init_args": {"root": "/Users/me/d", "split": "train", "sub": "/Users/me/d/sub/"},
        },
        "model": {"class_path": "m.Net", "init_args": {"root": "rel", "act": "relu", "at": "."}},
    }
)


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/Users/me/d", ["data.init_args.root"]),
        ("/Users/me/d/train.csv", ["data.init_args.root"]),
        ("/Users/me/d/sub/x", ["data.init_args.sub"]),
        ("/Users/me/data", []),
        ("/other/Users/me/d", []),
        ("no file '/Users/me/d/x.csv' here", ["data.init_args.root"]),
        ("rel/x.csv", ["model.init_args.root"]),
        ("train/x.csv", []),
        ("relu", []),
        ("./x", []),
    ],
)
def test_a_path_is_known_by_the_key_of_its_folder(path: str, keys: list[str]) -> None:
    assert keys_of_path(path, TEXTS) == keys


def test_the_texts_of_a_config_are_without_its_classes() -> None:
    assert "dm.Data" not in TEXTS.values()
    assert argument_texts({"data": {}, "model": None}) == {}
    assert Path(TEXTS["data.init_args.sub"]).name == "sub"
