"""What somebody sees of hpc-train who types `import hpc_train` and Tab."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import pytest

import hpc_train

NAMES = {
    *("Run", "Session", "Sweep", "list_runs", "load", "render", "run_here", "submit"),
    *("submit_sweep", "test_only"),
}


def test_the_interface_is_listed_although_it_is_loaded_later() -> None:
    code = "import hpc_train, sys; print(*dir(hpc_train)); print('hpc_train.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed, loaded = done.stdout.splitlines()
    assert {name for name in listed.split() if not name.startswith("_")} == NAMES
    assert loaded == "False"


@pytest.mark.torch
def test_help_explains_each_part_of_it() -> None:
    text = pydoc.render_doc(hpc_train, renderer=pydoc.plaintext)
    for name in NAMES:
        assert getattr(hpc_train, name).__doc__.splitlines()[0] in text, name
    assert "run = hpc_train.submit(loaded)" in text


@pytest.mark.torch
def test_no_package_of_ours_takes_the_place_of_a_name() -> None:
    modules = "hpc_train.api, hpc_train.runs.registry, hpc_train.plan.plan, hpc_train.cli.main"
    code = (
        f"import {modules}\nassert all(callable(getattr(hpc_train, n)) for n in hpc_train.__all__)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
