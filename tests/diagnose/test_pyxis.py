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


STARTED = FAILED.replace("child 912 failed", "container start failed").replace(
    f"{SAID}failed to import docker image\n", ""
)
HOOK = "[ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1"


def test_a_tool_that_enroot_lacks_is_the_cause_and_not_the_image(tmp_path):
    text = STARTED.format(f"[ERROR] Command not found: nvidia-container-cli, see x\n{ENROOT}{HOOK}")
    (found,) = diagnosed(tmp_path, text).findings
    assert found.name == "container_tool"
    assert "needs nvidia-container-cli" in found.cause
    assert "registry" not in found.fix


def test_a_start_that_failed_is_not_told_as_an_import(tmp_path):
    imported = f"slurmstepd: pyxis: imported docker image: x\n{FAILED.format(HOOK)}"
    for text in (
        STARTED.format(HOOK),
        imported.replace(f"{SAID}failed to import docker image\n", ""),
    ):
        (found,) = diagnosed(tmp_path, text).findings
        assert found.name == "container_start"
        assert "hooks.d/98-nvidia.sh" in found.cause
        assert "credentials" not in found.fix
    (found,) = diagnosed(tmp_path, FAILED.format("[ERROR] curl: 7")).findings
    assert "credentials" in found.fix
