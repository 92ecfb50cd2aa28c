"""What installs hpc-train once more: from where this one came, since no index need have it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hpc_train.runs.installed import install_command

CLONE = Path(__file__).parents[2]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The metadata of an installed hpc-train, in front of any other; nothing tells its origin."""
    metadata = tmp_path / "site" / "hpc_train-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hpc-train\nVersion: 0.1.0\n")
    monkeypatch.setattr(sys, "path", [str(metadata.parent), *sys.path])
    return metadata / "direct_url.json"


def test_a_clone_that_is_only_on_the_path_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [it for it in sys.path if "site-packages" not in it])
    assert install_command() == f"pip install {CLONE}"
    assert install_command(pip="/v/bin/pip", extra="top") == f"/v/bin/pip install '{CLONE}[top]'"


@pytest.mark.parametrize("info", [{"dir_info": {"editable": True}}, {"archive_info": {}}])
def test_the_folder_or_the_wheel_that_pip_was_given_is_named(
    installed: Path, tmp_path: Path, info: dict[str, object]
) -> None:
    given = tmp_path / "my clone"
    given.mkdir()
    installed.write_text(json.dumps({"url": given.as_uri(), **info}))
    assert install_command(pip="/v/bin/pip") == f"/v/bin/pip install '{given}'"
    assert install_command(extra="top") == "pip install 'hpc-train[top]'"
    given.rmdir()
    assert install_command() == "pip install /path/to/hpc-train, as the README has it"


def test_a_repository_is_named_with_its_kind(installed: Path) -> None:
    given = {"url": "https://git.example.org/hpc-train", "vcs_info": {"vcs": "git"}}
    installed.write_text(json.dumps(given))
    assert install_command() == "pip install git+https://git.example.org/hpc-train"
