"""Containers of pyxis and enroot: which of their lines are causes, and which tell of progress."""

from __future__ import annotations

from hpc_train.diagnose.diagnosis import told
from hpc_train.diagnose.read_logs import diagnose_logs

SAID = "slurmstepd: error: pyxis: "
ENROOT = f"{SAID}    "
FAILED = f"""{SAID}child 912 failed with error code: 1
{SAID}failed to import docker image
{SAID}printing enroot log file:
{ENROOT}[INFO] Querying registry for permission grant
{ENROOT}[INFO] Authenticating with user: <anonymous>
{ENROOT}{{}}
{SAID}couldn't start container
"""


def diagnosed(tmp_path, text: str):
    (tmp_path / "a.log").write_text(text)
    return diagnose_logs([str(tmp_path / "a.log")])


def test_lines_of_progress_in_enroots_log_are_no_failures(tmp_path):
    found = diagnosed(tmp_path, FAILED.format("[INFO] Fetching image manifest"))
    assert "[INFO]" not in "\n".join(told(found))
    assert found.findings[0].cause == "the container was refused: failed to import docker image"
    assert "enroot import docker://IMAGE" in found.findings[0].fix
    alone = diagnosed(tmp_path, f"{ENROOT}[INFO] Querying registry for permission grant\nstep 1\n")
    assert alone.findings == ()


def test_what_enroot_says_of_its_error_is_the_cause(tmp_path):
    error = "[ERROR] URL https://registry.example/v2/x returned error code: 404 Not Found"
    (found,) = diagnosed(tmp_path, FAILED.format(error)).findings
    assert found.cause.endswith(
        ": URL https://registry.example/v2/x returned error code: 404 Not Found"
    )


def test_a_file_that_was_taken_for_an_image_of_a_registry_is_told_first(tmp_path):
    text = f"slurmstepd: pyxis: importing docker image: train.sqsh\n{FAILED}"
    (found,) = diagnosed(tmp_path, text.format("[ERROR] error code: 401 Unauthorized")).findings
    assert found.name == "container_file"
    assert "--container-image=./train.sqsh" in found.fix
